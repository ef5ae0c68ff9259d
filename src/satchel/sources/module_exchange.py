"""Exchanging the modules of an installed distribution for those of another version.

They have public names, so two versions cannot both have them. A version that still serves goes on
with the modules that it has; what is imported from then on is of the version that came last.
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

from satchel.sources.distributions import DistributionFinding
from satchel.sources.editable_imports import (
    PathEntry,
    install_entries,
    routes_of,
    uninstall_entries,
)
from satchel.sources.module_ownership import (
    VERSION,
    ModuleOwnership,
    lies_at,
    loaded_by_name,
    places,
    version_of,
)
from satchel.sources.module_paths import LocatedModule, path_lines
from satchel.sources.process_state import module_names

# On the modules of a distribution, beside their version: whether we imported them, which imports
# hold them, and which plugins have begun a life on them.
_OURS, _HOLDERS = "__satchel_imported__", "__satchel_holders__"
_CLAIMS = "__satchel_claims__"

# Held while names change hands, never while foreign code runs; a collection of garbage may let go
# of a version in the midst of it.
_lock = threading.RLock()


class DistributionModules:
    """The modules that one import of a distribution brings, and those that it displaces."""

    def __init__(self, found: DistributionFinding, edited: LocatedModule | None) -> None:
        self._found, self._edited = found, edited
        self._ownership = ModuleOwnership(found, edited)
        owner = self._ownership.owner
        self._version = (owner, found.path + found.digest)
        self._route = PathEntry(owner, edited)
        self._before: dict[str, Callable[[], Any]] = {}
        self._aside: dict[str, Callable[[], Any]] = {}
        self._finders: list[Callable[[], Any]] = []
        self._routes: list[Callable[[], PathEntry | None]] = []
        self._all: dict[str, Any] = {}
        self._mine: dict[str, Any] = {}

    def make_way(self) -> list[Any]:
        """Set aside what is loaded of another version; what is returned must be held meanwhile.

        Another life of the same plugin counts as another version.
        """
        with _lock:
            before = self._ownership.loaded()
            self._before = {name: _weak(module) for name, module in before.items()}
            finders = []
            if any(self._is_other(name, module) for name, module in before.items()):
                self._aside = self._before
                finders = _forget(before)
                self._finders = [_weak(finder) for finder in finders]
            old = [route for route in routes_of(self._route.owner) if self._is_stale(route)]
            self._routes = [weakref.ref(route) for route in old]
            self._drop_entries(old)
            uninstall_entries(old)
            if self._edited is not None:
                install_entries(self._route)
        return [*before.values(), *finders, *old]

    def replay_path_files(self) -> None:
        """Add the folders of an editable install to `sys.path`, as a new interpreter would."""
        known, named = tuple(sys.path), self._named()
        for name in self._path_files():
            site.addpackage(self._found.site, name, set(map(os.path.abspath, sys.path)))
        added = tuple(entry for entry in sys.path if entry in named.difference(known))
        if added:
            with _lock:
                uninstall_entries([self._route])
                self._route = PathEntry(self._route.owner, self._edited, added)
                install_entries(self._route)

    def check(self, name: str) -> None:
        """Raise `ImportError` if a module came from elsewhere than where it was found."""
        module, home = sys.modules.get(name), self._ownership.home(name)
        if home and not lies_at(module, home):
            here, there = ", ".join(places(module)), os.path.dirname(home)
            raise ImportError(f"{name} is installed in {there}, but Python imports {here}")

    def take(self) -> None:
        """Take over the modules that are loaded now, after the import."""
        with _lock:
            self._all = self._ownership.loaded()
            for name, module in self._all.items():
                if self._mark(module, is_new=self._is_new(name)):
                    self._mine[name] = module
            self._bind_parts_of_others()

    def claim(self) -> None:
        """Say that the plugin begins a life on these modules."""
        with _lock:
            for module in self._all.values():
                if isinstance(module, ModuleType):
                    vars(module).setdefault(_CLAIMS, set()).add(self._found.name)

    def undo(self) -> None:
        """Forget the modules, and put back what was displaced, as far as it still serves.

        What others have begun to share meanwhile stays.
        """
        with _lock:
            if not self._all:  # The import failed.
                self._all = self._ownership.loaded()
                self._mine = {name: it for name, it in self._all.items() if self._is_new(name)}
            self.purge()
            displaced = {name: module() for name, module in self._aside.items()}
            if displaced.keys().isdisjoint(sys.modules):
                self._put_back(displaced)

    def _put_back(self, displaced: Mapping[str, Any]) -> None:
        for name, module in displaced.items():
            if module is not None:
                sys.modules[name] = module
                _bind(name, module)
        sys.meta_path += [it for finder in self._finders if (it := finder()) is not None]
        routes = [it for route in self._routes if (it := route()) is not None]
        sys.path += [it for route in routes for it in route.entries if it not in sys.path]
        install_entries(*reversed(routes))
        self._bind_parts_of_others()

    def purge(self) -> None:
        """Make the interpreter forget the modules that nobody else holds."""
        self._let_go(lambda _module: False)

    def release(self) -> None:
        """Make it forget those that are not installed any more.

        What is still installed is anybody's to import, and others may have imported it.
        """
        is_installed = os.path.exists(self._found.path)
        self._let_go(lambda module: is_installed and _is_there(module))

    def _let_go(self, spared: Callable[[Any], bool]) -> None:
        with _lock:
            gone = {}
            for name, module in (*self._mine.items(), *self._late().items()):
                names = module_names(module)
                holders = names.get(_HOLDERS, set())
                holders.discard(id(self))
                # A newer version may have taken the name over since.
                is_last = not holders and sys.modules.get(name) is module
                if is_last and not spared(module):
                    gone[name] = module
            for name in self._hosts_of_others(gone):
                del gone[name]
            _forget(gone)
            self._drop_entries([self._route])
            uninstall_entries([self._route])
        clear_type_caches()

    def _is_new(self, name: str) -> bool:
        return name in self._aside or name not in self._before

    def _late(self) -> dict[str, Any]:
        """Return what was imported into our packages since."""
        return {
            name: module
            for name, module in self._ownership.loaded().items()
            if not version_of(module)
            and (package := name.rpartition(".")[0]) in self._mine
            and sys.modules.get(package) is self._mine[package]
        }

    def _hosts_of_others(self, ours: Mapping[str, Any]) -> set[str]:
        """Return the packages among ours that others have something in."""
        return {
            package
            for name, module in loaded_by_name().items()
            if (package := name.rpartition(".")[0]) in ours
            and not self._ownership.owns(name, module)
        }

    def _mark(self, module: object, *, is_new: bool) -> bool:
        """Mark the version of a module, and tell whether we imported it.

        What the host had imported by itself stays the host's.
        """
        if not isinstance(module, ModuleType):
            return is_new
        names = vars(module)
        names[VERSION] = self._version
        is_ours = bool(names.setdefault(_OURS, is_new))
        if is_ours:
            names.setdefault(_HOLDERS, set()).add(id(self))
        return is_ours

    def _is_other(self, name: str, module: object) -> bool:
        if not isinstance(module, ModuleType):
            return True  # Nobody can tell.
        if version := version_of(module):
            claims = module_names(module).get(_CLAIMS, ())
            return version != self._version or self._found.name in claims
        home = self._ownership.home(name)
        return bool(home) and not lies_at(module, home)

    def _is_stale(self, route: PathEntry) -> bool:
        old, new = route.package, self._edited
        is_moved = old != new and (not old or not new or old.name == new.name)
        return is_moved or not self._named().issuperset(route.entries)

    def _path_files(self) -> list[str]:
        return [it for it in self._found.files if it.endswith(".pth") and "/" not in it]

    def _named(self) -> set[str]:
        """Return what the path files of the distribution add to `sys.path`, as they are now."""
        files = (os.path.join(self._found.site, name) for name in self._path_files())
        return {line for file in files for line in path_lines(file)}

    def _drop_entries(self, routes: Iterable[PathEntry]) -> None:
        """Remove from `sys.path` what was added for an install that is gone."""
        entries = {entry for route in routes for entry in route.entries} - self._named()
        for entry in entries.intersection(sys.path):
            sys.path.remove(entry)

    def _bind_parts_of_others(self) -> None:
        """Let packages of ours that were exchanged know what others have in them."""
        for name, module in loaded_by_name().items() if self._aside else ():
            if name.rpartition(".")[0] in self._all and not self._ownership.owns(name, module):
                _bind(name, module)


def clear_type_caches() -> None:
    """Let `typing` forget what it was asked for last, such as `Optional[X]` of a class that goes.

    They are caches: whoever asks again gets an equal answer. CPython clears them in the same way
    when it looks for leaks, and has no public name for it.
    """
    for clear in getattr(typing, "_cleanups", ()):
        clear()


def _is_there(module: object) -> bool:
    """Tell whether a module is still what it was made of; one that was made of no file is."""
    file = module_names(module).get("__file__")
    return not isinstance(file, str) or os.path.exists(file)


def _forget(modules: Mapping[str, Any]) -> list[Any]:
    """Forget modules, also where a package that stays knows them; return their finders.

    So does a namespace that other distributions have a part of.
    """
    for name, module in modules.items():
        sys.modules.pop(name, None)
        package, _, last = name.rpartition(".")
        names = _names_of(package) if package not in modules else {}
        if names.get(last) is module:
            del names[last]
    # What an editable install added to find its modules may be of an older version, too.
    finders = [it for it in sys.meta_path if str(getattr(it, "__module__", "")) in modules]
    gone = set(map(id, finders))
    sys.meta_path[:] = [it for it in sys.meta_path if id(it) not in gone]
    return finders


def _bind(name: str, module: object) -> None:
    """Let a package know a module in it, as an import does."""
    package, _, last = name.rpartition(".")
    _names_of(package).setdefault(last, module)


def _names_of(package: str) -> dict[str, Any]:
    """Return the names in a package, to be changed; without one, in nothing."""
    module = sys.modules.get(package)
    return vars(module) if isinstance(module, ModuleType) else {}


def _weak(thing: Any) -> Callable[[], Any]:
    """Return a way to a thing as long as somebody else holds it."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
