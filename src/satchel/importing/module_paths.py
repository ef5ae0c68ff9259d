"""Locate the modules of a distribution without importing them."""

import os
from collections.abc import Iterable, Iterator

from satchel.files.file_reader import read_or_none
from satchel.lazy_dataclass import dataclass

_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModuleBase:
    """A location of modules: the package `name` is at `path`, or all modules are below `path`."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class LocatedModule:
    """A module or package: its full name and its path without suffix."""

    name: str
    path: str

    @property
    def file(self) -> str:
        """Return the file with its Python code, `""` if there is none."""
        files = (os.path.join(self.path, "__init__.py"), f"{self.path}.py")
        return next(filter(os.path.isfile, files), "")

    @property
    def is_regular_package(self) -> bool:
        """Return whether it is a folder with an `__init__.py`."""
        return os.path.isfile(os.path.join(self.path, "__init__.py"))


def edited_bases(site: str, files: Iterable[str]) -> tuple[ModuleBase, ...]:
    """Return the locations of the modules of an editable install in the folder `site`.

    `files` are the files that it installed: path files, and finders with a table of modules.
    """
    return tuple(base for name in files if "/" not in name for base in _bases(site, name))


def _bases(site: str, name: str) -> Iterator[ModuleBase]:
    path = os.path.join(site, name)
    if name.endswith(".pth"):
        for folder in path_lines(path):
            yield ModuleBase("", folder)
    elif name.startswith("_") and name.endswith(".py"):
        from satchel.formats.editable_finders import (
            mapped_modules,  # lazy: only for editable installations
        )

        for module, target in mapped_modules(read_or_none(path, _LARGEST) or b"").items():
            stem = target.removesuffix(".py").removesuffix(f"{os.sep}__init__")
            yield ModuleBase(module, os.path.join(site, stem))


def path_lines(path: str) -> Iterator[str]:
    """Yield the folders that a path file adds to `sys.path`, without running its code."""
    data = read_or_none(path, _LARGEST) or b""
    for line in data.decode("utf-8-sig", "surrogateescape").splitlines():
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield os.path.normpath(os.path.join(os.path.dirname(path), line.rstrip()))


def locate(module: str, bases: Iterable[ModuleBase]) -> tuple[LocatedModule, ...]:
    """Return a module and its packages, the innermost first; nothing if it does not exist."""
    for base in bases:
        modules = parents(module, base)
        if modules and (modules[0].file or os.path.isdir(modules[0].path)):
            return modules
    return ()


def parents(module: str, base: ModuleBase) -> tuple[LocatedModule, ...]:
    """Return a module and its packages, the innermost first; they need not exist.

    Returns nothing if the module is not in `base`.
    """
    prefix = f"{base.name}." if base.name else ""
    if not f"{module}.".startswith(prefix) or not module:
        return ()
    rest = module.removeprefix(base.name).lstrip(".") if base.name else module
    modules = [LocatedModule(base.name, base.path)] if base.name else []
    name, path = base.name, base.path
    for part in rest.split(".") if rest else ():
        name, path = f"{name}.{part}" if name else part, os.path.join(path, part)
        modules.append(LocatedModule(name, path))
    return tuple(reversed(modules))
