"""Packages that are edited where they lie: imported from their source, never from a `.pyc`.

Python believes a `.pyc` whose whole-second time and size match its source, so of two edits of one
length within a second the second would not run.
"""

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType


def import_from_source(package: str) -> None:
    """Let a module, and all below it, be compiled anew whenever it is imported."""
    _fresh.packages.add(package)
    if _fresh not in sys.meta_path:
        sys.meta_path.insert(0, _fresh)


class _SourceLoader(SourceFileLoader):
    """Compile a module from its source as it is now."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source, and leave none behind."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Fresh(importlib.abc.MetaPathFinder):
    """Find the modules that the other finders find, and load those of some packages anew."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of another finder with a loader of ours."""
        if not any(f"{fullname}.".startswith(f"{package}.") for package in self.packages):
            return None
        for finder in tuple(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
                return spec
        return None


_fresh = _Fresh()
