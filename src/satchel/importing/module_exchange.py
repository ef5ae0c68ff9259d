"""Exchange the loaded modules of an installed distribution for those of another version.

Modules of distributions have public names, so only one version can be in `sys.modules`. An older
version in use keeps the modules that it has; later imports get those of the newest version.
"""

import os
import site
import sys
import threading
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from satchel.importing.distributions import DistributionFinding
from satchel.importing.editable_imports import (
    PathEntry,
    entries_of,
    install_entries,
    uninstall_entries,
)
from satchel.importing.module_ownership import (
    VERSION,
    ModuleOwnership,
    lies_at,
    loaded_by_name,
    places,
    version_of,
)
from satchel.importing.module_paths import LocatedModule, path_lines
from satchel.importing.process_state import module_names

# Names set in the modules of a distribution: whether Satchel imported them, the imports that hold
# them, and the plugins that have started on them.
_OURS, _HOLDERS = "__satchel_imported__", "__satchel_holders__"
_CLAIMS = "__satchel_claims__"

# Held while modules are exchanged, never while plugin code runs. Reentrant, because the garbage
# collector may release a version in the same thread during an exchange.
_lock = threading.RLock()


class DistributionModules:
    """The modules that one import of a distribution adds, and those that it replaces."""

    def __init__(self, finding: DistributionFinding, edited: LocatedModule | None) -> None:
        self._finding, self._edited = finding, edited
        self._ownership = ModuleOwnership(finding, edited)
        owner = self._ownership.owner
        self._version = (owner, finding.path + finding.digest)
        self._entry = PathEntry(owner, edited)
        self._before: dict[str, Callable[[], Any]] = {}
        self._evicted: dict[str, Callable[[], Any]] = {}
        self._evicted_finders: list[Callable[[], Any]] = []
        self._evicted_entries: list[Callable[[], PathEntry | None]] = []
        self._all: dict[str, Any] = {}
        self._own: dict[str, Any] = {}

    def evict(self) -> list[Any]:
        """Remove the modules of another version, and return them.

        The caller must keep the result until the import has ended, because `undo` needs it. Modules
        on which the same plugin has already started count as another version.
        """
        with _lock:
            before = self._ownership.loaded()
            self._before = {name: _weak(module) for name, module in before.items()}
            finders = []
            if any(self._is_other_version(name, module) for name, module in before.items()):
                self._evicted = self._before
                finders = _forget(before)
                self._evicted_finders = [_weak(finder) for finder in finders]
            old = [entry for entry in entries_of(self._entry.owner) if self._is_stale(entry)]
            self._evicted_entries = [weakref.ref(entry) for entry in old]
            self._remove_paths(old)
            uninstall_entries(old)
            if self._edited is not None:
                install_entries(self._entry)
        return [*before.values(), *finders, *old]

    def replay_path_files(self) -> None:
        """Add the folders of an editable install to `sys.path`, as a new interpreter would."""
        before, own_paths = tuple(sys.path), self._own_paths()
        for name in self._path_files():
            site.addpackage(self._finding.site, name, set(map(os.path.abspath, sys.path)))
        added = tuple(path for path in sys.path if path in own_paths.difference(before))
        if added:
            with _lock:
                uninstall_entries([self._entry])
                self._entry = PathEntry(self._entry.owner, self._edited, added)
                install_entries(self._entry)

    def check(self, name: str) -> None:
        """Raise `ImportError` if a module was imported from another location than expected."""
        module, home = sys.modules.get(name), self._ownership.home(name)
        if home and not lies_at(module, home):
            here, there = ", ".join(places(module)), os.path.dirname(home)
            raise ImportError(f"{name} is installed in {there}, but Python imports {here}")

    def take(self) -> None:
        """Mark the loaded modules with this version, and hold those that Satchel imported."""
        with _lock:
            self._all = self._ownership.loaded()
            for name, module in self._all.items():
                if self._mark(module, is_new=self._is_new(name)):
                    self._own[name] = module
            self._bind_foreign_modules()

    def own(self) -> None:
        """Mark the modules as started by the plugin."""
        with _lock:
            for module in self._all.values():
                if isinstance(module, ModuleType):
                    vars(module).setdefault(_CLAIMS, set()).add(self._finding.name)

    def undo(self) -> None:
        """Remove the modules, and restore what was evicted and is still in use.

        Modules that another import shares are not removed.
        """
        with _lock:
            if not self._all:  # The import failed.
                self._all = self._ownership.loaded()
                self._own = {name: it for name, it in self._all.items() if self._is_new(name)}
            self.purge()
            evicted = {name: module() for name, module in self._evicted.items()}
            if evicted.keys().isdisjoint(sys.modules):
                self._restore(evicted)

    def _restore(self, evicted: Mapping[str, Any]) -> None:
        for name, module in evicted.items():
            if module is not None:
                sys.modules[name] = module
                _bind(name, module)
        sys.meta_path += [it for finder in self._evicted_finders if (it := finder()) is not None]
        entries = [it for entry in self._evicted_entries if (it := entry()) is not None]
        sys.path += [it for entry in entries for it in entry.paths if it not in sys.path]
        install_entries(*reversed(entries))
        self._bind_foreign_modules()

    def purge(self) -> None:
        """Remove the modules that no other import holds."""
        self._remove(lambda _module: False)

    def release(self) -> None:
        """Remove the modules that are no longer installed.

        Installed modules stay, because other code may have imported them as well.
        """
        is_installed = os.path.exists(self._finding.path)
        self._remove(lambda module: is_installed and _is_on_disk(module))

    def _remove(self, keeps: Callable[[Any], bool]) -> None:
        with _lock:
            removed = {}
            for name, module in (*self._own.items(), *self._late().items()):
                names = module_names(module)
                holders = names.get(_HOLDERS, set())
                holders.discard(id(self))
                # A newer version may have the name by now.
                is_last = not holders and sys.modules.get(name) is module
                if is_last and not keeps(module):
                    removed[name] = module
            for name in self._shared_packages(removed):
                del removed[name]
            _forget(removed)
            self._remove_paths([self._entry])
            uninstall_entries([self._entry])
        clear_type_caches()

    def _is_new(self, name: str) -> bool:
        return name in self._evicted or name not in self._before

    def _late(self) -> dict[str, Any]:
        """Return modules of these packages that were imported after `take`."""
        return {
            name: module
            for name, module in self._ownership.loaded().items()
            if not version_of(module)
            and (package := name.rpartition(".")[0]) in self._own
            and sys.modules.get(package) is self._own[package]
        }

    def _shared_packages(self, modules: Mapping[str, Any]) -> set[str]:
        """Return the packages among `modules` that contain modules of other distributions."""
        return {
            package
            for name, module in loaded_by_name().items()
            if (package := name.rpartition(".")[0]) in modules
            and not self._ownership.owns(name, module)
        }

    def _mark(self, module: object, *, is_new: bool) -> bool:
        """Set the version of a module; return whether Satchel imported it, not the host."""
        if not isinstance(module, ModuleType):
            return is_new
        names = vars(module)
        names[VERSION] = self._version
        is_ours = bool(names.setdefault(_OURS, is_new))
        if is_ours:
            names.setdefault(_HOLDERS, set()).add(id(self))
        return is_ours

    def _is_other_version(self, name: str, module: object) -> bool:
        if not isinstance(module, ModuleType):
            return True  # The version is unknown.
        if version := version_of(module):
            claims = module_names(module).get(_CLAIMS, ())
            return version != self._version or self._finding.name in claims
        home = self._ownership.home(name)
        return bool(home) and not lies_at(module, home)

    def _is_stale(self, entry: PathEntry) -> bool:
        old, new = entry.package, self._edited
        is_moved = old != new and (not old or not new or old.name == new.name)
        return is_moved or not self._own_paths().issuperset(entry.paths)

    def _path_files(self) -> list[str]:
        return [it for it in self._finding.files if it.endswith(".pth") and "/" not in it]

    def _own_paths(self) -> set[str]:
        """Return the folders that the path files of the distribution add to `sys.path`."""
        files = (os.path.join(self._finding.site, name) for name in self._path_files())
        return {line for file in files for line in path_lines(file)}

    def _remove_paths(self, entries: Iterable[PathEntry]) -> None:
        """Remove the paths of these entries from `sys.path`, except those that a path file adds."""
        paths = {path for entry in entries for path in entry.paths} - self._own_paths()
        for path in paths.intersection(sys.path):
            sys.path.remove(path)

    def _bind_foreign_modules(self) -> None:
        """Set modules of other distributions as attributes of the exchanged packages."""
        for name, module in loaded_by_name().items() if self._evicted else ():
            if name.rpartition(".")[0] in self._all and not self._ownership.owns(name, module):
                _bind(name, module)


def clear_type_caches() -> None:
    """Clear the caches of `typing`, which hold removed classes, as in `Optional[X]`.

    CPython clears them in the same way in its own leak tests; there is no public function.
    """
    for clear in getattr(typing, "_cleanups", ()):
        clear()


def _is_on_disk(module: object) -> bool:
    """Return whether the file of a module exists; modules without a file count as existing."""
    file = module_names(module).get("__file__")
    return not isinstance(file, str) or os.path.exists(file)


def _forget(modules: Mapping[str, Any]) -> list[Any]:
    """Remove modules, also as attributes of packages that stay; return their import finders."""
    for name, module in modules.items():
        sys.modules.pop(name, None)
        package, _, last = name.rpartition(".")
        names = _names_of(package) if package not in modules else {}
        if names.get(last) is module:
            del names[last]
    # An editable install of an older version may have added its own finder.
    finders = [it for it in sys.meta_path if str(getattr(it, "__module__", "")) in modules]
    removed = set(map(id, finders))
    sys.meta_path[:] = [it for it in sys.meta_path if id(it) not in removed]
    return finders


def _bind(name: str, module: object) -> None:
    """Set a module as an attribute of its package, as an import does."""
    package, _, last = name.rpartition(".")
    _names_of(package).setdefault(last, module)


def _names_of(package: str) -> dict[str, Any]:
    """Return the mutable namespace of a loaded package, or an empty dict."""
    module = sys.modules.get(package)
    return vars(module) if isinstance(module, ModuleType) else {}


def _weak(target: Any) -> Callable[[], Any]:
    """Return a weak reference, or a strong one if the type allows no weak ones."""
    try:
        return weakref.ref(target)
    except TypeError:
        return lambda: target
