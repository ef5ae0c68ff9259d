"""Import plugin code from in-memory snapshots, each as a private package.

Every version of a folder plugin is a package with its own name, imported from a snapshot of its
sources. So `wave.py` in a plugin never replaces the standard library's, two versions can run at
the same time, and neither a stale `.pyc` nor a later edit can get into a running version.
"""

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from types import CodeType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from satchel.importing.process_state import PRIVATE_PREFIX
from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from importlib.resources.abc import TraversableResources


def serve_snapshot(package: str, folder: str, sources: Mapping[str, bytes]) -> None:
    """Make `package` importable from these sources, until `withdraw_snapshot`."""
    _finder.snapshots[package] = CodeSnapshot(
        package=package, folder=folder, sources=MappingProxyType(dict(sources))
    )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def is_served(package: str) -> bool:
    """Return whether a private package is importable now."""
    return package in _finder.snapshots


def withdraw_snapshot(package: str) -> None:
    """Make a private package no longer importable."""
    snapshot = _finder.snapshots.pop(package, None)
    for path, entry in snapshot.lines.items() if snapshot else ():
        if linecache.cache.get(path) is entry:
            linecache.cache.pop(path, None)


def show_lines(package: str) -> None:
    """Make tracebacks and `inspect` show the source lines of this version.

    They look up lines by file name, and the file on disk may be a later, broken edit.
    """
    snapshot = _finder.snapshots[package]
    for file, source in snapshot.sources.items():
        with suppress(SyntaxError, UnicodeDecodeError):  # It cannot have been imported.
            text = importlib.util.decode_source(source)
            path = snapshot.path_of(file)
            # Without a modification time, linecache never compares it with the file.
            snapshot.lines[path] = (len(text), None, text.splitlines(keepends=True), path)
    linecache.cache.update(snapshot.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSnapshot:
    """The sources of one version of a plugin folder, as a package."""

    package: str
    folder: str
    sources: Mapping[str, bytes]
    lines: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The entries added to `linecache`."""
    builtins: dict[str, Any] = field(init=False, compare=False, repr=False)
    """The built-ins of its modules, with an `__import__` that finds modules of the snapshot."""

    def __post_init__(self) -> None:
        # Shared by all modules of a version, because it is larger than most of them.
        own = {**vars(builtins), "__import__": self.import_}
        object.__setattr__(self, "builtins", own)

    def path_of(self, file: str) -> str:
        """Return the path that a file of the snapshot was read from."""
        return os.path.join(self.folder, *file.split("/"))

    def find(self, fullname: str) -> tuple[str, bytes, bool] | None:
        """Return (file, source, is_package) of a module in this snapshot."""
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
        """Return whether a path is a folder with modules but without `__init__.py`."""
        return f"{stem}/__init__.py" not in self.sources and any(
            name.startswith(stem + "/") for name in self.sources
        )

    def serves_sibling(self, name: str) -> bool:
        """Return whether `import name` in plugin code imports a file beside it.

        The standard library wins: `import json` never imports a plugin's `json.py`. An installed
        package wins over a folder without `__init__.py`, as everywhere in Python.
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
        """Import like `__import__`, but also find modules beside the plugin's files."""
        if level or not self.serves_sibling(name):
            return builtins.__import__(name, globals, locals, tuple(fromlist or ()), level)
        module = importlib.import_module(f"{self.package}.{name}")
        if not fromlist:
            return sys.modules[f"{self.package}.{name.partition('.')[0]}"]
        names = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for item in names:
            if not hasattr(module, item) and self.find(f"{module.__name__}.{item}") is not None:
                importlib.import_module(f"{module.__name__}.{item}")
        return module


class _SnapshotLoader(importlib.abc.InspectLoader):
    """Loads a module from its snapshot, never from a cached `.pyc`."""

    def __init__(self, snapshot: CodeSnapshot, file: str, source: bytes, *, package: bool) -> None:
        self._snapshot, self._source, self._package = snapshot, source, package
        self.path = snapshot.path_of(file)

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002 - the loader's protocol
        return self._package

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 - the loader's protocol
        return self.path

    def get_source(self, fullname: str) -> str:  # noqa: ARG002 - the loader's protocol
        """Return the source text, for tracebacks and `inspect`."""
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader's protocol
        code: CodeType = compile(self._source, self.path, "exec", dont_inherit=True)
        return code

    def get_data(self, path: str) -> bytes:
        """Return a data file from disk, for `pkgutil.get_data`; snapshots have no data files."""
        with open(path, "rb") as file:
            return file.read()

    def get_resource_reader(self, fullname: str) -> "TraversableResources | None":  # noqa: ARG002
        """Return a reader for `importlib.resources`, for packages only."""
        # Lazy: few plugins read data, and the readers cost more to import than a plugin.
        from importlib.readers import FileReader

        return FileReader(self) if self._package else None  # type: ignore[arg-type] # it needs a path

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the `__import__` of its snapshot."""
        module.__dict__["__builtins__"] = self._snapshot.builtins
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - what importing is


class _SnapshotFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of all served snapshots."""

    def __init__(self) -> None:
        self.snapshots: dict[str, CodeSnapshot] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the finder's protocol
        target: ModuleType | None = None,  # noqa: ARG002 - the finder's protocol
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module in a snapshot.

        Raises `ModuleNotFoundError` for other private names: no other finder has them.
        """
        if not fullname.startswith(PRIVATE_PREFIX):
            return None
        snapshot = self.snapshots.get(fullname.partition(".")[0])
        module = snapshot.find(fullname) if snapshot else None
        if snapshot is None or module is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        file, source, package = module
        loader = _SnapshotLoader(snapshot, file, source, package=package)
        spec = importlib.machinery.ModuleSpec(
            fullname, loader, origin=loader.path, is_package=package
        )
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [os.path.dirname(loader.path)]
        return spec


_finder = _SnapshotFinder()
