"""What the whole process shares, and putting it back after plugin code has changed it.

Not all can be put back: environment variables that were set, logging, warnings, the locale, and
what a plugin patches inside other modules stay changed. Code that is not trusted that far needs a
process of its own. Here nothing of a plugin's runs, neither a comparison nor an attribute: it is
the host's thread.
"""

import builtins
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

PRIVATE_PREFIX = "_satchel_plugin_"
"""How the module names of folder plugins begin."""

_ATTRIBUTES = (
    (sys, "stdin"),
    (sys, "stdout"),
    (sys, "stderr"),
    (sys, "excepthook"),
    (sys, "unraisablehook"),
    (sys, "displayhook"),
    (sys, "dont_write_bytecode"),
    (threading, "excepthook"),
)
"""What stands in modules and counts for everybody."""


def _collect(on: bool) -> None:
    """Switch the collector on or off."""
    (gc.enable if on else gc.disable)()


_SETTINGS: tuple[tuple[str, Callable[[], Any], Callable[[Any], object]], ...] = (
    ("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    ("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    ("the collection of garbage", gc.isenabled, _collect),
    ("threading.settrace", threading.gettrace, threading.settrace),
    ("threading.setprofile", threading.getprofile, threading.setprofile),
)
"""What is read and set by functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """What counts for the whole process, as it was at one moment."""

    folder: str | None
    path: list[str]
    entries: tuple[str, ...]
    finders: tuple[Any, ...]
    table: dict[str, Any]
    modules: Mapping[str, Any]
    builtins: Mapping[str, Any]
    attributes: tuple[Any, ...]
    settings: tuple[Any, ...]
    environment: Mapping[str, str]

    @classmethod
    def now(cls) -> "ProcessState":
        """Take down how things are."""
        return cls(
            folder=current_folder(),
            path=sys.path,
            entries=tuple(sys.path),
            finders=tuple(sys.meta_path),
            table=sys.modules,
            modules=loaded_modules(),
            builtins=vars(builtins).copy(),
            attributes=tuple(getattr(module, name, None) for module, name in _ATTRIBUTES),
            settings=tuple(read() for _, read, _ in _SETTINGS),
            environment=os.environ.copy(),
        )

    def put_back(self, plugin_folder: str | None = None, *, alone: bool = True) -> tuple[str, ...]:
        """Undo what changed since, and name it.

        `plugin_folder` is given for code that must not add to the import path either: what it
        imported by public names from its own folder is forgotten. Unless `alone`, the host and
        other plugins were running meanwhile: then only what is plainly this plugin's doing is
        undone, and what nobody could go on with.
        """
        return (
            *self._put_builtins_back(),
            *(self._put_folder_back() if alone else ()),
            *self._put_path_back(plugin_folder, alone=alone),
            *self._put_finders_back(alone=alone),
            *self._put_modules_back(plugin_folder, alone=alone),
            *self._put_settings_back(alone=alone),
        )

    def _put_builtins_back(self) -> list[str]:
        """Put back what was replaced or deleted; a name that was added troubles nobody."""
        now = vars(builtins)
        # `_` is the last value at a prompt, and the translation of gettext.
        names = [n for n, it in self.builtins.items() if n != "_" and now.get(n, now) is not it]
        for name in names:
            now[name] = self.builtins[name]
        return [f"the built-in {name!r}" for name in names]

    def _put_folder_back(self) -> list[str]:
        if self.folder is None or current_folder() == self.folder:
            return []
        with suppress(OSError):  # It may have been removed, and then there is no way back.
            os.chdir(self.folder)
        return ["the current folder"]

    def _put_path_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        changed = []
        now: object = getattr(sys, "path", None)
        kept = _texts(now) if type(now) is list else []
        known = _texts(self.entries)
        gone = [entry for entry in known if entry not in kept]
        if gone and (alone or os.path.dirname(os.__file__) in gone):
            self.path[:] = self.entries
            sys.path = self.path
            changed.append("sys.path")
        elif plugin_folder is not None:
            before = set(map(id, self.entries))
            added = [
                entry
                for entry in sys.path
                if id(entry) not in before
                # What is no plain text may do anything when it is compared.
                and (
                    type(entry) is not str or (entry not in known and _is_in(entry, plugin_folder))
                )
            ]
            foreign = set(map(id, added))
            sys.path[:] = [entry for entry in sys.path if id(entry) not in foreign]
            changed += ["sys.path"] if added else []
        return changed

    def _put_finders_back(self, *, alone: bool) -> list[str]:
        """Put back the finders that were lost, and remove those of the plugin's own making.

        They would take part in every import of the process, and keep their version alive.
        """
        now: object = getattr(sys, "meta_path", None)
        kept = list(now) if type(now) is list else []
        known = set(map(id, self.finders))
        own = [f for f in kept if id(f) not in known and _home(f).startswith(PRIVATE_PREFIX)]
        lost = known.difference(map(id, kept))
        if type(now) is not list or (lost and (alone or id(PathFinder) in lost)):
            sys.meta_path = list(self.finders)
        elif own:
            foreign = set(map(id, own))
            sys.meta_path[:] = [finder for finder in kept if id(finder) not in foreign]
        else:
            return []
        return ["sys.meta_path"]

    def _put_modules_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        """Put modules back that were replaced; forget those that shadow others from now on."""
        changed = []
        if getattr(sys, "modules", None) is not self.table:
            sys.modules = self.table
            changed.append("sys.modules")
        now = loaded_modules()
        for name, module in now.items():
            if self.modules.get(name) is module or str(name).startswith(PRIVATE_PREFIX):
                continue
            own = plugin_folder is not None and _is_of(module, plugin_folder)
            if name in self.modules and (own or alone):
                sys.modules[name] = self.modules[name]
                changed.append(f"the module {name!r}")
            elif name not in self.modules and own:
                sys.modules.pop(name, None)
                changed.append(f"the module {name!r}")
        # An old version of a package may have been purged meanwhile, as it should be; but nobody
        # purges the standard library, nor everything.
        lost = [name for name in self.modules if name not in now]
        for name in lost if alone or "sys" in lost else ():
            top = name.partition(".")[0]
            if "sys" in lost or top in sys.stdlib_module_names or top == "satchel":
                sys.modules[name] = self.modules[name]
                changed.append("sys.modules")
        return list(dict.fromkeys(changed))

    def _put_settings_back(self, *, alone: bool) -> list[str]:
        changed = []
        for (module, name), value in zip(_ATTRIBUTES, self.attributes, strict=True):
            if alone and getattr(module, name, None) is not value:
                setattr(module, name, value)
                changed.append(f"{module.__name__}.{name}")
        for (what, read, write), value in zip(_SETTINGS, self.settings, strict=True):
            now = read()
            # With these nobody can go on: no thread begins, or none gets far.
            is_fatal = (
                now < value if read is sys.getrecursionlimit else what.startswith("threading.")
            )
            # Of what is no number only the same is what it was.
            is_same = now is value or (type(now) is type(value) in {int, float} and now == value)
            if not is_same and (alone or is_fatal):
                write(value)
                changed.append(what)
        # Those that it set are there for those who come after it, such as a library's switches.
        gone = self.environment.keys() - os.environ.keys()
        if gone and (alone or not os.environ):
            os.environ.update({name: self.environment[name] for name in gone})
            changed.append("the environment")
        return changed


def loaded_modules() -> dict[str, Any]:
    """Return a copy of `sys.modules`, which changes while it is gone through.

    Other threads import; and a collection that begins meanwhile may purge an old version. Only a
    copy of the whole is one step.
    """
    return sys.modules.copy()


def current_folder() -> str | None:
    """Return the current folder, or `None` when it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def module_names(module: object) -> Mapping[str, Any]:
    """Return the names of a module without running code of it; none for what is no module."""
    if not issubclass(type(module), ModuleType):
        return {}
    names: Mapping[str, Any] = vars(ModuleType)["__dict__"].__get__(module)
    return names


def _home(thing: object) -> str:
    """Return the name of the module that a thing, or its class, was made in."""
    cls = thing if issubclass(type(thing), type) else type(thing)
    name = type.__dict__["__module__"].__get__(cls)
    return name if type(name) is str else ""


def _texts(entries: Iterable[Any]) -> list[str]:
    return [entry for entry in entries if type(entry) is str]


def _is_of(module: object, folder: str) -> bool:
    """Tell whether a module was read in a folder, or is of a class that was made there."""
    file = module_names(module).get("__file__")
    return (type(file) is str and _is_in(file, folder)) or _home(module).startswith(PRIVATE_PREFIX)


def _is_in(path: str, folder: str) -> bool:
    folder = folder.rstrip(os.sep)
    return path.rstrip(os.sep) == folder or path.startswith(folder + os.sep)
