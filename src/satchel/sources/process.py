"""What the whole process shares, and putting it back after plugin code has changed it.

Not all can be put back: environment variables, logging, signal handlers and what a plugin patches
inside other modules stay changed. Code that is not trusted that far needs a process of its own.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
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

    def put_back(self, plugin_folder: str | None = None) -> tuple[str, ...]:
        """Undo what changed since, and name it.

        `plugin_folder` is given for code that must not add to the import path either: what it
        imported by public names from its own folder is forgotten.
        """
        return (
            *self._put_folder_back(),
            *self._put_path_back(may_add=plugin_folder is None),
            *self._put_modules_back(plugin_folder),
        )

    def _put_folder_back(self) -> list[str]:
        if self.folder is None or current_folder() == self.folder:
            return []
        with suppress(OSError):  # It may have been removed, and then there is no way back.
            os.chdir(self.folder)
        return ["the current folder"]

    def _put_path_back(self, *, may_add: bool) -> list[str]:
        changed = []
        now: object = getattr(sys, "path", None)
        kept = [entry for entry in now if isinstance(entry, str)] if isinstance(now, list) else []
        gone = [entry for entry in self.entries if entry not in kept]
        added = [entry for entry in kept if entry not in self.entries]
        if gone or (added and not may_add):
            self.path[:] = self.entries
            sys.path = self.path
            changed.append("sys.path")
        if any(finder not in sys.meta_path for finder in self.finders):
            sys.meta_path[:] = self.finders
            changed.append("sys.meta_path")
        return changed

    def _put_modules_back(self, plugin_folder: str | None) -> list[str]:
        """Put modules back that were replaced; forget those that shadow others from now on."""
        changed = []
        for name, module in self.modules.items():
            if sys.modules.get(name, module) is not module and not name.startswith(PRIVATE_PREFIX):
                sys.modules[name] = module
                changed.append(f"the module {name!r}")
        if plugin_folder is not None:
            strays = [
                name
                for name, module in list(sys.modules.items())
                if name not in self.modules
                and not name.startswith(PRIVATE_PREFIX)
                and _lies_in(module, plugin_folder)
            ]
            for name in strays:
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
    return isinstance(file, str) and file.startswith(folder.rstrip(os.sep) + os.sep)
