"""What the whole process shares, and putting it back after plugin code has changed it.

Not all can be put back: environment variables, logging, signal handlers and what a plugin patches
inside other modules stay changed. Code that is not trusted that far needs a process of its own.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

PRIVATE_PREFIX = "_satchel_plugin_"
"""How the module names of folder plugins begin."""


@dataclass(frozen=True, slots=True)
class Process:
    """The current folder, the import path and the modules, as they were at one moment."""

    folder: str | None
    path: list[str]
    entries: tuple[str, ...]
    finders: tuple[Any, ...]
    modules: Mapping[str, Any]

    @classmethod
    def now(cls) -> "Process":
        """Take down how things are."""
        return cls(
            current_folder(),
            sys.path,
            tuple(sys.path),
            tuple(sys.meta_path),
            dict(sys.modules),
        )

    def put_back(self, plugin_folder: str | None = None, *, alone: bool = True) -> tuple[str, ...]:
        """Undo what changed since, and name it.

        `plugin_folder` is given for code that must not add to the import path either: what it
        imported by public names from its own folder is forgotten. Unless `alone`, the host and
        other plugins were running meanwhile: then only what is plainly this plugin's doing is
        undone, and what nobody could go on with.
        """
        return (
            *(self._put_folder_back() if alone else ()),
            *self._put_path_back(plugin_folder, alone=alone),
            *self._put_modules_back(plugin_folder, alone=alone),
        )

    def _put_folder_back(self) -> list[str]:
        if self.folder is None or current_folder() == self.folder:
            return []
        with suppress(OSError):  # It may have been removed, and then there is no way back.
            os.chdir(self.folder)
        return ["the current folder"]

    def _put_path_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        changed = []
        now: object = getattr(sys, "path", None)
        kept = [entry for entry in now if isinstance(entry, str)] if isinstance(now, list) else []
        gone = [entry for entry in self.entries if entry not in kept]
        if gone and (alone or os.path.dirname(os.__file__) in gone):
            self.path[:] = self.entries
            sys.path = self.path
            changed.append("sys.path")
        elif plugin_folder is not None:
            added = [e for e in kept if e not in self.entries and _is_in(e, plugin_folder)]
            for entry in added:
                sys.path.remove(entry)
            changed += ["sys.path"] if added else []
        lost = [finder for finder in self.finders if finder not in sys.meta_path]
        if lost and (alone or PathFinder in lost):
            sys.meta_path[:] = self.finders
            changed.append("sys.meta_path")
        return changed

    def _put_modules_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        """Put modules back that were replaced; forget those that shadow others from now on."""
        changed = []
        for name, module in list(sys.modules.items()):
            if name.startswith(PRIVATE_PREFIX) or self.modules.get(name) is module:
                continue
            own = plugin_folder is not None and _lies_in(module, plugin_folder)
            if name in self.modules and (own or alone):
                sys.modules[name] = self.modules[name]
                changed.append(f"the module {name!r}")
            elif name not in self.modules and own:
                del sys.modules[name]
                changed.append(f"the module {name!r}")
        return changed


def current_folder() -> str | None:
    """Return the current folder, or `None` when it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _lies_in(module: object, folder: str) -> bool:
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return isinstance(file, str) and _is_in(file, folder)


def _is_in(path: str, folder: str) -> bool:
    folder = folder.rstrip(os.sep)
    return path.rstrip(os.sep) == folder or path.startswith(folder + os.sep)
