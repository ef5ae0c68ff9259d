"""Import editable packages from where they are edited, and these and locked ones from source.

The import path may still lead to their former location. And Python trusts a `.pyc` if the time
(in whole seconds) and the size of the source match. So it would miss a second edit of the same
length within a second, and it would run a forged one.
"""

import importlib.abc
import os
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

from satchel.importing.module_paths import LocatedModule
from satchel.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PathEntry:
    """Where imports find the modules of one imported distribution; compared by identity."""

    owner: str
    """The distribution."""
    package: LocatedModule | None = None
    """The package or module that is compiled from source at every import."""
    paths: tuple[str, ...] = ()
    """The paths that were added to `sys.path`."""


def install_entries(*entries: PathEntry) -> None:
    """Use these entries for imports; of two for the same name the last one wins."""
    _finder.entries = (*reversed(entries), *_finder.entries)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def import_from_source(distribution: str, site: str, files: Iterable[str]) -> None:
    """Compile the modules of an installed distribution at every import, until this process ends.

    `files` are those that it installed in the folder `site`.
    """
    # An owner of its own: entries of an import are removed when it ends, these stay.
    owner = f"locked {distribution}"
    modules = {re.split(r"[/.]", name)[0] for name in files if name.endswith(".py")}
    before = {entry.package for entry in entries_of(owner)}
    packages = {LocatedModule(name, os.path.join(site, name)) for name in modules if name}
    install_entries(*(PathEntry(owner, package) for package in packages - before))


def uninstall_entries(entries: Iterable[PathEntry]) -> None:
    """Stop using these entries for imports."""
    removed = set(entries)
    _finder.entries = tuple(entry for entry in _finder.entries if entry not in removed)


def entries_of(owner: str) -> tuple[PathEntry, ...]:
    """Return the entries of a distribution, the last one first."""
    return tuple(entry for entry in _finder.entries if entry.owner == owner)


class _SourceLoader(SourceFileLoader):
    """Compiles a module from its current source, as another loader compiles it, if one is given."""

    def __init__(self, name: str, path: str, compiler: SourceFileLoader | None = None) -> None:
        super().__init__(name, path)
        self._compiler = compiler or self

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled source, without reading or writing a `.pyc`."""
        path = self.get_filename(fullname)
        code: CodeType = self._compiler.source_to_code(self.get_data(path), path)
        return code


class _EditableFinder(importlib.abc.MetaPathFinder):
    """Finds editable packages where they are edited, and loads their modules from source."""

    def __init__(self) -> None:
        self.entries: tuple[PathEntry, ...] = ()
        """Replaced, never mutated, because other threads import at the same time."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of an editable module: our own, or another finder's with our loader."""
        packages = [entry.package for entry in self.entries if entry.package]
        package = next((it for it in packages if f"{fullname}.".startswith(f"{it.name}.")), None)
        if package is None:
            return None
        if package.name == fullname and package.file:
            is_package = package.is_regular_package
            return spec_from_file_location(
                package.name,
                package.file,
                loader=_SourceLoader(package.name, package.file),
                submodule_search_locations=[os.path.abspath(package.path)] if is_package else None,
            )
        for finder in tuple(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                # Libraries that check types at run time have loaders of their own.
                if isinstance(spec.loader, SourceFileLoader):
                    spec.loader = _SourceLoader(spec.loader.name, spec.loader.path, spec.loader)
                return spec
        return None


_finder = _EditableFinder()
