"""Packages that are edited where they lie: imported from there, from their source.

The import path may still lead to where they lay before. And Python believes a `.pyc` whose
whole-second time and size match its source, so of two edits of one length within a second the
second would not run.
"""

import importlib.abc
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

from satchel.sources.module_paths import LocatedModule


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PathEntry:
    """A way to modules that one import of a distribution laid; each is only equal to itself."""

    owner: str
    """The distribution."""
    package: LocatedModule | None = None
    """The package, or the module, that is compiled anew whenever it is imported."""
    entries: tuple[str, ...] = ()
    """What was added to `sys.path`."""


def install_entries(*routes: PathEntry) -> None:
    """Let imports go these ways; of two for one name the last counts."""
    _fresh.routes = (*reversed(routes), *_fresh.routes)
    if _fresh not in sys.meta_path:
        sys.meta_path.insert(0, _fresh)


def uninstall_entries(routes: Iterable[PathEntry]) -> None:
    """Let imports go these ways no more."""
    gone = set(routes)
    _fresh.routes = tuple(route for route in _fresh.routes if route not in gone)


def routes_of(owner: str) -> tuple[PathEntry, ...]:
    """Return the ways that lead to the modules of a distribution, the last first."""
    return tuple(route for route in _fresh.routes if route.owner == owner)


class _SourceLoader(SourceFileLoader):
    """Compile a module from its source as it is now."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source, and leave none behind."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Fresh(importlib.abc.MetaPathFinder):
    """Find edited packages where they lie, and load what is in them anew."""

    def __init__(self) -> None:
        self.routes: tuple[PathEntry, ...] = ()
        """Never changed but replaced: other threads import meanwhile."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return a spec of our own, or that of another finder with a loader of ours."""
        packages = [route.package for route in self.routes if route.package]
        package = next((it for it in packages if f"{fullname}.".startswith(f"{it.name}.")), None)
        if package is None:
            return None
        if package.name == fullname and package.file:
            return _spec(package)
        for finder in tuple(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
                return spec
        return None


def _spec(package: LocatedModule) -> ModuleSpec | None:
    is_package = package.is_regular_package
    return spec_from_file_location(
        package.name,
        package.file,
        loader=_SourceLoader(package.name, package.file),
        submodule_search_locations=[os.path.abspath(package.path)] if is_package else None,
    )


_fresh = _Fresh()
