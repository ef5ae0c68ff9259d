"""Capture process-wide state, and restore it after plugin code has changed it.

Not everything is restored: environment variables that were added and filters of warnings stay,
since libraries set these on purpose, and patches inside other modules are reported at most.
Code that is not trusted that far needs its own process.
This module never calls plugin code, not even a comparison or an attribute: it runs in the host's
thread.
"""

import _locale
import _socket
import builtins
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from satchel.importing.logging_state import LoggingState
from satchel.importing.process_signals import SignalState, signal_name
from satchel.lazy_dataclass import dataclass

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

NOT_REVERTED = "; it was not reverted, as the host ran at the same time"
_STAYS = ", which stays so"
KEPT = (NOT_REVERTED, _STAYS)
"""End the names of changes that were found but not undone."""

PRIVATE_PREFIX = "_satchel_plugin_"
"""The prefix of the module names of folder plugins."""

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
"""Process-wide settings that are attributes of modules."""
_PAUSED = "the collection of garbage"
"""What a host switches off for a moment."""
_OFTEN_EXCHANGED = frozenset({"stdin", "stdout", "stderr", "displayhook"})
"""Those that a host exchanges while it runs, for a moment."""


def _time_zone() -> tuple[str | None, tuple[str, str]]:
    return os.environ.get("TZ"), time.tzname


def _set_time_zone(zone: tuple[str | None, tuple[str, str]]) -> None:
    os.environ.pop("TZ", None)
    if zone[0] is not None:
        os.environ["TZ"] = zone[0]
    if sys.platform != "win32":
        time.tzset()


_TIMERS = tuple(
    getattr(signal, name)
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
    if hasattr(signal, name)
)


def _running_timers() -> tuple[bool, ...]:
    """Return which timers of signals run. How much time they have left changes by itself."""
    return tuple(signal.getitimer(timer)[0] > 0 for timer in _TIMERS)


def _stop_timers(were_running: tuple[bool, ...]) -> None:
    for timer, was_running in zip(_TIMERS, were_running, strict=True):
        if not was_running:
            signal.setitimer(timer, 0)


def _limits() -> tuple[tuple[int, ...], ...]:
    """Return the number of each limit of resources, with its soft and its hard value."""
    names = (name for name in vars(resource or object) if name.startswith("RLIMIT_"))
    numbers = sorted({getattr(resource, name) for name in names})
    return tuple((number, *resource.getrlimit(number)) for number in numbers)


def _set_limits(limits: tuple[tuple[int, ...], ...]) -> None:
    for number, *limit in limits:
        with suppress(ValueError, OSError):  # A hard limit that was lowered stays so.
            resource.setrlimit(number, (limit[0], limit[1]))


def _set_collecting(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()


_SETTINGS: tuple[tuple[str, Callable[[], Any], Callable[[Any], object]], ...] = (
    ("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    ("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    (_PAUSED, gc.isenabled, _set_collecting),
    ("the default timeout of sockets", _socket.getdefaulttimeout, _socket.setdefaulttimeout),
    (
        "the locale",
        lambda: _locale.setlocale(_locale.LC_ALL),
        lambda name: _locale.setlocale(_locale.LC_ALL, name),
    ),
    ("the timers of signals", _running_timers, _stop_timers),
    ("the time zone", _time_zone, _set_time_zone),
    ("the limits of resources", _limits, _set_limits),
    ("threading.settrace", threading.gettrace, threading.settrace),
    ("threading.setprofile", threading.getprofile, threading.setprofile),
)
"""Process-wide settings: name, getter, setter."""
_COMPARED = frozenset({int, float, str, tuple})
"""Types of settings that are compared by value; comparing other objects could run plugin code."""

_CHECKED_MODULES = ("hashlib", "hmac", "json", "os", "secrets", "socket", "ssl", "subprocess")
"""Modules whose functions handle secrets, files and programs of all others."""
_FUNCTIONS = frozenset({FunctionType, BuiltinFunctionType, type})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """The process-wide state at one moment."""

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
    signals: SignalState
    logging: LoggingState
    functions: Mapping[str, Mapping[str, Any]]
    """The functions and classes of a few modules."""

    @classmethod
    def now(cls) -> "ProcessState":
        """Capture the current state."""
        return cls(
            folder=current_folder(),
            path=sys.path,
            entries=tuple(sys.path),
            finders=tuple(sys.meta_path),
            table=sys.modules,
            modules={
                name: module
                for name, module in loaded_modules().items()
                if not _is_being_imported(module)
            },
            builtins=vars(builtins).copy(),
            attributes=tuple(getattr(module, name, None) for module, name in _ATTRIBUTES),
            settings=tuple(read() for _, read, _ in _SETTINGS),
            environment=os.environ.copy(),
            signals=SignalState.now(),
            logging=LoggingState.now(),
            functions={
                module: {n: it for n, it in names.items() if type(it) in _FUNCTIONS}
                for module in _CHECKED_MODULES
                if (names := module_names(sys.modules.get(module)))
            },
        )

    def put_back(self, plugin_folder: str | None = None, *, alone: bool = True) -> tuple[str, ...]:
        """Restore what changed since, and return the names of what was restored.

        With `plugin_folder`, additions to the import path and modules that were imported by
        public names from that folder are removed too. `alone` means that neither the host nor
        other plugins ran at the same time. Otherwise only changes that are clearly the plugin's,
        or that would stop the process from working, are undone; the others are named.
        """
        return (
            *self._put_builtins_back(),
            *self._put_folder_back(alone=alone),
            *self._put_path_back(plugin_folder, alone=alone),
            *self._put_finders_back(alone=alone),
            *self._put_modules_back(plugin_folder, alone=alone),
            *self._put_attributes_back(alone=alone),
            *self._put_settings_back(alone=alone),
            *self._put_environment_back(alone=alone),
            *self._put_signals_back(alone=alone),
            *self._put_logging_back(alone=alone),
            *(self._find_patches() if alone else ()),
        )

    def _put_signals_back(self, *, alone: bool) -> list[str]:
        """Restore the umask and the signal handlers, which the host sets at its start at most."""
        changed = []
        now = SignalState.now()
        if now.umask != self.signals.umask:
            self.signals.put_umask_back()
            changed.append("the umask")
        if numbers := self.signals.changed_signals(now, alone=alone):
            kept = "" if self.signals.put_signals_back(numbers) else NOT_REVERTED
            changed += [f"the handler of {signal_name(number)}{kept}" for number in numbers]
        return changed

    def _put_logging_back(self, *, alone: bool) -> list[str]:
        if not self.logging.has_changed:
            return []
        if not alone:  # The host may configure it while plugins are loaded.
            return [f"the configuration of logging{NOT_REVERTED}"]
        self.logging.put_back()
        return ["the configuration of logging"]

    def _put_builtins_back(self) -> list[str]:
        """Restore replaced and deleted built-ins; added ones stay."""
        now = vars(builtins)
        # `_` is the last value of an interactive prompt, or gettext's function.
        names = [n for n, it in self.builtins.items() if n != "_" and now.get(n, now) is not it]
        for name in names:
            now[name] = self.builtins[name]
        return [f"the built-in {name!r}" for name in names]

    def _put_folder_back(self, *, alone: bool) -> list[str]:
        if self.folder is None or current_folder() == self.folder:
            return []
        if not alone:
            return [f"the current folder{NOT_REVERTED}"]
        with suppress(OSError):  # The folder may have been removed.
            os.chdir(self.folder)
        return ["the current folder"]

    def _put_path_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        changed = []
        now: object = getattr(sys, "path", None)
        kept = _texts(now) if type(now) is list else []
        former = _texts(self.entries)
        lost = [entry for entry in former if entry not in kept]
        if lost and (alone or os.path.dirname(os.__file__) in lost):
            self.path[:] = self.entries
            sys.path = self.path
            changed.append("sys.path")
        elif plugin_folder is not None:
            before = set(map(id, self.entries))
            added = [
                entry
                for entry in sys.path
                if id(entry) not in before
                # Comparing an entry that is not a plain `str` could run plugin code.
                and (
                    type(entry) is not str or (entry not in former and _is_in(entry, plugin_folder))
                )
            ]
            foreign = set(map(id, added))
            sys.path[:] = [entry for entry in sys.path if id(entry) not in foreign]
            changed += ["sys.path"] if added else []
        return changed

    def _put_finders_back(self, *, alone: bool) -> list[str]:
        """Restore lost import finders, and remove those that the plugin defines.

        These would take part in every import of the process, and keep their version alive.
        """
        now: object = getattr(sys, "meta_path", None)
        kept = list(now) if type(now) is list else []
        former = set(map(id, self.finders))
        own = [f for f in kept if id(f) not in former and _home(f).startswith(PRIVATE_PREFIX)]
        lost = former.difference(map(id, kept))
        if type(now) is not list or (lost and (alone or id(PathFinder) in lost)):
            sys.meta_path = list(self.finders)
        elif own:
            foreign = set(map(id, own))
            sys.meta_path[:] = [finder for finder in kept if id(finder) not in foreign]
        else:
            return []
        return ["sys.meta_path"]

    def _put_modules_back(self, plugin_folder: str | None, *, alone: bool) -> list[str]:
        """Restore replaced modules, and remove new ones that would shadow others."""
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
        # An old version of a package may have been purged meanwhile, which is right. But the
        # standard library is never purged.
        lost = [name for name in self.modules if name not in now]
        for name in lost if alone or "sys" in lost else ():
            top = name.partition(".")[0]
            if "sys" in lost or top in sys.stdlib_module_names or top == "satchel":
                sys.modules[name] = self.modules[name]
                changed.append("sys.modules")
        return list(dict.fromkeys(changed))

    def _put_attributes_back(self, *, alone: bool) -> list[str]:
        changed = []
        for (module, name), value in zip(_ATTRIBUTES, self.attributes, strict=True):
            if getattr(module, name, None) is value:
                continue
            if alone:
                setattr(module, name, value)
                changed.append(f"{module.__name__}.{name}")
            elif name not in _OFTEN_EXCHANGED:
                changed.append(f"{module.__name__}.{name}{NOT_REVERTED}")
        return changed

    def _put_settings_back(self, *, alone: bool) -> list[str]:
        changed = []
        for (setting, read, write), value in zip(_SETTINGS, self.settings, strict=True):
            now = read()
            # These changes would stop all threads from starting or working.
            is_fatal = (
                now < value if read is sys.getrecursionlimit else setting.startswith("threading.")
            )
            is_same = now is value or (type(now) is type(value) in _COMPARED and now == value)
            if is_same:
                continue
            if alone or is_fatal:
                write(value)
                changed.append(setting)
            elif setting != _PAUSED:
                changed.append(f"{setting}{NOT_REVERTED}")
        return changed

    def _put_environment_back(self, *, alone: bool) -> list[str]:
        # Variables that were added stay: libraries set some on purpose.
        now_set = os.environ.copy()
        lost = [name for name, value in self.environment.items() if now_set.get(name) != value]
        if lost and (alone or not now_set):
            os.environ.update({name: self.environment[name] for name in lost})
            return ["the environment"]
        return [f"the environment{NOT_REVERTED}"] if lost else []

    def _find_patches(self) -> list[str]:
        """Name functions of others that were replaced: some libraries do so on purpose."""
        return [
            f"{module}.{name}{_STAYS}"
            for module, functions in self.functions.items()
            for name, function in functions.items()
            if module_names(self.modules[module]).get(name) is not function
        ]


def loaded_modules() -> dict[str, Any]:
    """Return a copy of `sys.modules`, which may change during iteration.

    Other threads import, and a garbage collection may purge an old version. Nothing is collected
    while a list of names is made; a collection inside of `dict.copy` spoils the copy.
    """
    missing = object()
    modules = ((name, sys.modules.get(name, missing)) for name in list(sys.modules))
    return {name: module for name, module in modules if module is not missing}


def current_folder() -> str | None:
    """Return the current folder, or `None` if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _is_being_imported(module: object) -> bool:
    """Return whether another thread is importing a module, which may yet replace itself."""
    spec = module_names(module).get("__spec__")
    return type(spec) is ModuleSpec and bool(vars(spec).get("_initializing"))


def module_names(module: object) -> Mapping[str, Any]:
    """Return the namespace of a module without running its code; empty for other objects."""
    if not issubclass(type(module), ModuleType):
        return {}
    names: Mapping[str, Any] = vars(ModuleType)["__dict__"].__get__(module)
    return names


def _home(value: object) -> str:
    """Return the name of the module that defines a class, or the class of an object."""
    cls = value if issubclass(type(value), type) else type(value)
    name = type.__dict__["__module__"].__get__(cls)
    return name if type(name) is str else ""


def _texts(entries: Iterable[Any]) -> list[str]:
    return [entry for entry in entries if type(entry) is str]


def _is_of(module: object, folder: str) -> bool:
    """Return whether a module was loaded from a folder, or its class is defined by a plugin."""
    file = module_names(module).get("__file__")
    return (type(file) is str and _is_in(file, folder)) or _home(module).startswith(PRIVATE_PREFIX)


def _is_in(path: str, folder: str) -> bool:
    folder = folder.rstrip(os.sep)
    return path.rstrip(os.sep) == folder or path.startswith(folder + os.sep)
