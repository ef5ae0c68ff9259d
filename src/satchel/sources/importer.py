"""Importing plugin code: privately, from the bytes that were read, within a time limit.

A folder plugin becomes a package with a name of its own for each version, served from a
snapshot of its bytes. So `wave.py` in a plugin never replaces the standard library's, two
versions can live side by side while one is being replaced, and neither a stale `.pyc` nor a
later edit can mix into a version that is running.
"""

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import re
import site
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from satchel.sources.distributions import DistributionFinding
from satchel.sources.guard import guarded
from satchel.sources.process import PRIVATE_PREFIX

if TYPE_CHECKING:
    from importlib.resources.abc import TraversableResources

# On the module of an entry point: which version of the distribution it was imported from.
_VERSION = "__satchel_version__"

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ImportedCode:
    """One imported version of a plugin.

    Its modules live as long as this handle. Every catalog that serves the version holds it, and
    so does a call that began on such a catalog; when the last of them lets go, `release` runs.
    """

    thing: Any
    """The module, or the object that an entry point names."""
    purge: Callable[[], None] = field(compare=False)
    """Makes the interpreter forget the modules at once."""
    release: Callable[[], None] = field(compare=False)
    """Makes it forget them if nobody else can have a claim on them."""
    meddled: tuple[str, ...] = ()
    """What importing changed in the process and we put back."""

    def __post_init__(self) -> None:
        weakref.finalize(self, self.release).atexit = False


def import_folder(
    folder: str, sources: Mapping[str, bytes], module: str, limit: float
) -> ImportedCode:
    """Import `module` of a plugin folder from a snapshot of its sources.

    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    slug = re.sub(r"\W+", "_", os.path.basename(folder)).strip("_").lower() or "plugin"
    package = f"{PRIVATE_PREFIX}{slug}_{next(_serial)}"
    _finder.snapshots[package] = _Snapshot(package, folder, MappingProxyType(dict(sources)))
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)

    def purge() -> None:
        _finder.snapshots.pop(package, None)
        _forget(lambda name: name == package or name.startswith(package + "."))

    def load() -> ModuleType:
        try:
            return importlib.import_module(f"{package}.{module}")
        finally:
            if package not in _finder.snapshots:  # It was given up, and has only ended now.
                purge()

    try:
        imported, meddled = guarded(load, limit, "plugin_import", folder)
    except BaseException:
        purge()
        raise
    return ImportedCode(imported, purge, purge, meddled)


def import_distribution(found: DistributionFinding, limit: float) -> ImportedCode:
    """Import what an entry point names; what is imported already is shared, if it is this version.

    The modules of an earlier version are set aside first and put back when the new one fails, so
    that the version that still serves keeps working.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    importlib.invalidate_caches()
    # "module:attribute [extra]"; extras are long obsolete and mean nothing to us.
    value = found.value.partition("[")[0]
    name, _, attribute = (part.strip() for part in value.partition(":"))
    owned = _modules_of(found, name)
    before = {name: module for name, module in sys.modules.items() if owned(name)}
    version = (found.path, found.digest)
    if getattr(sys.modules.get(name), _VERSION, version) != version:
        _forget(owned)

    def load() -> Any:
        _replay_path_files(found)
        thing: Any = importlib.import_module(name)
        setattr(thing, _VERSION, version)
        for part in attribute.split(".") if attribute else ():
            thing = getattr(thing, part)
        return thing

    try:
        imported, meddled = guarded(load, limit, "plugin_import")
    except BaseException:
        _forget(owned)
        sys.modules.update(before)
        raise
    # What the host had imported by itself stays the host's.
    mine = {
        name: module
        for name, module in sys.modules.items()
        if owned(name) and before.get(name) is not module
    }

    def purge() -> None:
        # A newer version may have taken the names over since.
        for name, module in mine.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def release() -> None:
        # What is still installed is anybody's to import, and others may have imported it.
        if not os.path.exists(found.path):
            purge()

    return ImportedCode(imported, purge, release, meddled)


def _modules_of(found: DistributionFinding, entry: str) -> Callable[[str], bool]:
    """Return a test for the names of the modules that a distribution installed."""
    recorded = {_module_name(path) for path in found.files if path.endswith(".py")} - {""}
    if not recorded.intersection(_with_parents(entry)):
        # An editable install records no modules; the entry point's own package is what it has.
        recorded.add(entry.partition(".")[0])

    def owned(module: str) -> bool:
        names = _with_parents(module)
        return names[0] != "satchel" and not recorded.isdisjoint(names)

    return owned


def _with_parents(module: str) -> list[str]:
    """Return the names of a module and of the packages it is in, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _module_name(path: str) -> str:
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _replay_path_files(found: DistributionFinding) -> None:
    """Add the folders of an editable install to `sys.path`, as a new interpreter would."""
    folder = os.path.dirname(found.path)
    for name in found.files:
        if name.endswith(".pth") and "/" not in name:
            site.addpackage(folder, name, set(map(os.path.abspath, sys.path)))


def _forget(test: Callable[[str], bool]) -> None:
    for name in [name for name in sys.modules if test(name)]:
        del sys.modules[name]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The sources of one version of a plugin folder, as a package."""

    package: str
    folder: str
    sources: Mapping[str, bytes]

    def find(self, fullname: str) -> tuple[str, bytes, bool] | None:
        """Return (file, source, is it a package) of a module of this version."""
        stem = fullname.removeprefix(self.package).lstrip(".").replace(".", "/")
        initial = f"{stem}/__init__.py" if stem else "__init__.py"
        if initial in self.sources:
            return initial, self.sources[initial], True
        if stem and f"{stem}.py" in self.sources:
            return f"{stem}.py", self.sources[f"{stem}.py"], False
        # A folder without __init__.py is a package too, and so is the plugin's own folder.
        if not stem or self.is_bare_folder(stem):
            return initial, b"", True
        return None

    def is_bare_folder(self, stem: str) -> bool:
        """Tell whether a path is a folder with modules but without `__init__.py`."""
        return f"{stem}/__init__.py" not in self.sources and any(
            name.startswith(stem + "/") for name in self.sources
        )

    def serves_sibling(self, name: str) -> bool:
        """Tell whether `import name` in plugin code means a file beside it.

        The standard library wins: a plugin's `json.py` must not be what `import json` means. An
        installed package wins over a bare folder, as it does everywhere in Python.
        """
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top == "satchel":
            return False
        if self.find(f"{self.package}.{top}") is None:
            return False
        is_module = f"{top}.py" in self.sources
        return is_module or not self.is_bare_folder(top) or importlib.util.find_spec(top) is None

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the signature of `__import__`
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Iterable[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Do what `__import__` does, but find modules beside the plugin's own files."""
        if level or not self.serves_sibling(name):
            return builtins.__import__(name, globals, locals, tuple(fromlist or ()), level)
        module = importlib.import_module(f"{self.package}.{name}")
        if not fromlist:
            return sys.modules[f"{self.package}.{name.partition('.')[0]}"]
        wanted = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for item in wanted:
            if not hasattr(module, item) and self.find(f"{module.__name__}.{item}") is not None:
                importlib.import_module(f"{module.__name__}.{item}")
        return module


class _SnapshotLoader(importlib.abc.InspectLoader):
    """Compile a module from its snapshot, never from a cached `.pyc`."""

    def __init__(self, snapshot: _Snapshot, file: str, source: bytes, *, package: bool) -> None:
        self._snapshot, self._source, self._package = snapshot, source, package
        self.path = os.path.join(snapshot.folder, *file.split("/"))

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002 - the loader's protocol
        """Tell whether the module is a package."""
        return self._package

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 - the loader's protocol
        """Return the file that the snapshot was taken of."""
        return self.path

    def get_source(self, fullname: str) -> str:  # noqa: ARG002 - the loader's protocol
        """Return the text of the snapshot, for tracebacks and `inspect`."""
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader's protocol
        """Compile the bytes of the snapshot."""
        code: CodeType = compile(self._source, self.path, "exec", dont_inherit=True)
        return code

    def get_data(self, path: str) -> bytes:
        """Read a file beside the code, for `pkgutil.get_data`; data is not part of the snapshot."""
        with open(path, "rb") as file:
            return file.read()

    def get_resource_reader(self, fullname: str) -> "TraversableResources | None":  # noqa: ARG002
        """Let `importlib.resources` find the files of a package beside its code."""
        # Lazy: few plugins read data, and the readers cost more to import than a plugin.
        from importlib.readers import FileReader

        return FileReader(self) if self._package else None  # type: ignore[arg-type] # it needs a path

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with an `import` that knows the files beside it."""
        module.__dict__["__builtins__"] = {
            **vars(builtins),
            "__import__": self._snapshot.import_,
        }
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - what importing is


class _Finder(importlib.abc.MetaPathFinder):
    """Find the modules of the private packages that are alive."""

    def __init__(self) -> None:
        self.snapshots: dict[str, _Snapshot] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the finder's protocol
        target: ModuleType | None = None,  # noqa: ARG002 - the finder's protocol
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of a snapshot; a private name is nobody else's."""
        if not fullname.startswith(PRIVATE_PREFIX):
            return None
        snapshot = self.snapshots.get(fullname.partition(".")[0])
        found = snapshot.find(fullname) if snapshot else None
        if snapshot is None or found is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        file, source, package = found
        loader = _SnapshotLoader(snapshot, file, source, package=package)
        spec = importlib.machinery.ModuleSpec(
            fullname, loader, origin=loader.path, is_package=package
        )
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [os.path.dirname(loader.path)]
        return spec


_finder = _Finder()
