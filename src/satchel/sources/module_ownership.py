"""Which of the modules that are loaded are those of one installed distribution."""

import os
import sys
from importlib.machinery import all_suffixes
from typing import Any

from satchel.sources.distributions import DistributionFinding, normalized
from satchel.sources.file_reader import is_inside
from satchel.sources.module_paths import LocatedModule
from satchel.sources.process_state import loaded_modules, module_names

VERSION = "__satchel_version__"
"""The name in a module that says which distribution, and which version of it, it is of."""

_SUFFIXES = tuple(sorted(all_suffixes(), key=len, reverse=True))


class ModuleOwnership:
    """Tells which modules are those of one distribution."""

    def __init__(self, found: DistributionFinding, edited: LocatedModule | None) -> None:
        self.owner = normalized(found.distribution)
        self._edited, self._site = edited, found.site
        self._top = found.module.partition(".")[0]
        self._recorded = {
            name: os.path.join(found.site, *name.split("."))
            for name in map(_module_name, found.files)
            if name
        }
        names = _with_parents(found.module)
        if edited or not self._recorded.keys().isdisjoint(names):
            self._whole = ""
        else:  # Where it lies is not known, or not told: then all of its package is ours.
            stems = (
                LocatedModule(name, os.path.join(found.site, *name.split("."))) for name in names
            )
            self._whole = next((stem.name for stem in stems if stem.file), self._top)

    def home(self, name: str) -> str:
        """Return the path without a suffix where a module must lie, `""` if that is not known."""
        edited = self._edited
        if edited and edited.name in _with_parents(name):
            return edited.path
        return self._recorded.get(name, "")

    def owns(self, name: str, module: object) -> bool:
        """Tell whether a module that is loaded came with the distribution.

        Of a package of packages others may have parts. A module of the right name that lies
        elsewhere is ours if ours could not be imported otherwise.
        """
        parts, edited = _with_parents(name), self._edited
        if parts[0] == "satchel" or parts[0] in sys.stdlib_module_names:
            return False
        if version := version_of(module):
            # Of what is edited each package has a version of its own.
            is_one = edited is None or edited.name in parts or lies_at(module, self._site)
            return is_one and bool(version[0] == self.owner)
        if home := self.home(name):
            return lies_at(module, home) or self._is_in_our_way(name, module)
        if self._whole in parts:
            return True
        # What is made of no file belongs to the package that made it.
        is_made = not places(module) and len(parts) > 1
        return is_made and self.owns(parts[-2], sys.modules.get(parts[-2]))

    def _is_in_our_way(self, name: str, module: object) -> bool:
        """Tell whether a module that lies elsewhere keeps ours from being imported."""
        edited = self._edited
        if edited and edited.name in _with_parents(name):
            home = edited.path + name.removeprefix(edited.name).replace(".", os.sep)
            is_needed = bool(LocatedModule(name, home).file)
        else:
            home = self.home(name)
            is_needed = name.partition(".")[0] == self._top
        # What looks for its parts in our folder, too, is in nobody's way.
        shared = map(os.path.realpath, _folders(module))
        return is_needed and os.path.realpath(home) not in shared

    def loaded(self) -> dict[str, Any]:
        """Return the modules of the distribution that are loaded now."""
        return {name: it for name, it in loaded_by_name().items() if self.owns(name, it)}


def loaded_by_name() -> dict[str, Any]:
    """Return what is loaded under a name, which is text unless somebody meddled."""
    return {name: it for name, it in loaded_modules().items() if type(name) is str}


def lies_at(module: object, stem: str) -> bool:
    """Tell whether all of a module is a file, or lies in a folder, with this path."""
    homes = _real(stem), os.path.realpath(stem)
    return all(
        any(is_inside(_without_suffix(path), home) for home in homes for path in paths)
        for place in places(module)
        if (paths := (_real(place), os.path.realpath(place)))
    )


def _real(path: str) -> str:
    """Return a path in its real folder; the last part may be a link, as some installers make."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def places(module: object) -> list[str]:
    """Return the file of a module, or the folders that it consists of; nothing if it was made."""
    file = module_names(module).get("__file__")
    return [file] if type(file) is str else _folders(module)


def _folders(module: object) -> list[str]:
    """Return where a package looks for its modules; of what is no package's, no code runs."""
    path = module_names(module).get("__path__")
    is_pythons = type(path) in {list, tuple} or type(path).__module__.startswith("_frozen_")
    return [folder for folder in path if type(folder) is str] if path and is_pythons else []


def _without_suffix(path: str) -> str:
    """Return the path of a module without what tells its kind."""
    return next((path.removesuffix(it) for it in _SUFFIXES if path.endswith(it)), path)


def version_of(module: object) -> tuple[Any, ...]:
    """Return which version a module is of; read from its names, so that no code of it runs."""
    known = module_names(module).get(VERSION)
    return known if type(known) is tuple else ()


def _with_parents(module: str) -> list[str]:
    """Return the names of a module and of the packages it is in, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _module_name(path: str) -> str:
    """Return the name of the module that a file is, `""` if it is none."""
    parts = _without_suffix(path).removesuffix("/__init__").split("/")
    is_module = path.endswith(_SUFFIXES) and all(part.isidentifier() for part in parts)
    return ".".join(parts) if is_module else ""
