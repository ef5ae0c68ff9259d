"""Decide which loaded modules belong to an installed distribution."""

import os
import sys
from importlib.machinery import all_suffixes
from typing import Any

from satchel.files.file_reader import is_inside
from satchel.importing.distributions import DistributionFinding, normalized
from satchel.importing.module_paths import LocatedModule
from satchel.importing.process_state import loaded_modules, module_names

VERSION = "__satchel_version__"
"""The name set in a module, with the distribution and version that it belongs to."""

_SUFFIXES = tuple(sorted(all_suffixes(), key=len, reverse=True))


class ModuleOwnership:
    """Decides which modules belong to one distribution."""

    def __init__(self, finding: DistributionFinding, edited: LocatedModule | None) -> None:
        self.owner = normalized(finding.distribution)
        self._edited, self._site = edited, finding.site
        self._top = finding.module.partition(".")[0]
        self._recorded = {
            name: os.path.join(finding.site, *name.split("."))
            for name in map(_module_name, finding.files)
            if name
        }
        names = _with_parents(finding.module)
        if edited or not self._recorded.keys().isdisjoint(names):
            self._whole = ""
        else:  # The location is unknown, so the whole package counts as the distribution's.
            stems = (
                LocatedModule(name, os.path.join(finding.site, *name.split("."))) for name in names
            )
            self._whole = next((stem.name for stem in stems if stem.file), self._top)

    def home(self, name: str) -> str:
        """Return the expected path of a module, without suffix; `""` if it is unknown."""
        edited = self._edited
        if edited and edited.name in _with_parents(name):
            return edited.path
        return self._recorded.get(name, "")

    def owns(self, name: str, module: object) -> bool:
        """Return whether a loaded module belongs to the distribution.

        Other distributions may have modules in the same namespace package. A module with the
        right name in another location counts if it keeps ours from being imported.
        """
        parts, edited = _with_parents(name), self._edited
        if parts[0] == "satchel" or parts[0] in sys.stdlib_module_names:
            return False
        if version := version_of(module):
            # In an editable install, each package has its own version.
            is_one = edited is None or edited.name in parts or lies_at(module, self._site)
            return is_one and bool(version[0] == self.owner)
        if home := self.home(name):
            return lies_at(module, home) or self._is_obstacle(name, module)
        if self._whole in parts:
            return True
        # A module without a file belongs to the package that created it.
        is_generated = not places(module) and len(parts) > 1
        return is_generated and self.owns(parts[-2], sys.modules.get(parts[-2]))

    def _is_obstacle(self, name: str, module: object) -> bool:
        """Return whether a module in another location keeps ours from being imported."""
        edited = self._edited
        if edited and edited.name in _with_parents(name):
            home = edited.path + name.removeprefix(edited.name).replace(".", os.sep)
            is_needed = bool(LocatedModule(name, home).file)
        else:
            home = self.home(name)
            is_needed = name.partition(".")[0] == self._top
        # A namespace package that also searches our folder is no obstacle.
        shared = map(os.path.realpath, _folders(module))
        return is_needed and os.path.realpath(home) not in shared

    def loaded(self) -> dict[str, Any]:
        """Return the loaded modules of the distribution."""
        return {name: it for name, it in loaded_by_name().items() if self.owns(name, it)}


def loaded_by_name() -> dict[str, Any]:
    """Return the loaded modules whose key is a plain text; plugin code may add other keys."""
    return {name: it for name, it in loaded_modules().items() if type(name) is str}


def lies_at(module: object, stem: str) -> bool:
    """Return whether every file and folder of a module is at or below this path."""
    homes = _real(stem), os.path.realpath(stem)
    return all(
        any(is_inside(_without_suffix(path), home) for home in homes for path in paths)
        for place in places(module)
        if (paths := (_real(place), os.path.realpath(place)))
    )


def _real(path: str) -> str:
    """Resolve the folder of a path; the last part may be a link, as some installers make."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def places(module: object) -> list[str]:
    """Return the file of a module, or the folders of a namespace package."""
    file = module_names(module).get("__file__")
    return [file] if type(file) is str else _folders(module)


def _folders(module: object) -> list[str]:
    """Return the folders in `__path__`; a path of an unknown type is ignored, not iterated."""
    path = module_names(module).get("__path__")
    is_plain = type(path) in {list, tuple} or type(path).__module__.startswith("_frozen_")
    return [folder for folder in path if type(folder) is str] if path and is_plain else []


def _without_suffix(path: str) -> str:
    """Return the path of a module without its suffix, such as `.py`."""
    return next((path.removesuffix(it) for it in _SUFFIXES if path.endswith(it)), path)


def version_of(module: object) -> tuple[Any, ...]:
    """Return the version of a module; read from its namespace, so that none of its code runs."""
    version = module_names(module).get(VERSION)
    return version if type(version) is tuple else ()


def _with_parents(module: str) -> list[str]:
    """Return the names of a module and of its packages, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _module_name(path: str) -> str:
    """Return the name of the module in a file, `""` if it is not a module."""
    parts = _without_suffix(path).removesuffix("/__init__").split("/")
    is_module = path.endswith(_SUFFIXES) and all(part.isidentifier() for part in parts)
    return ".".join(parts) if is_module else ""
