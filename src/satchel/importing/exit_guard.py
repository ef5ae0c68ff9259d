"""Let no plugin keep the process at its exit: by `atexit`, by a thread, or by a pool of threads.

Python waits for all of them without a limit. What plugin code registers or starts while it is
loaded gets a limited time instead. For this, `atexit.register` and `threading.Thread.start` are
wrapped once in the interpreter; for all other callers they do what they always do.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

from satchel.importing.process_state import PRIVATE_PREFIX

PLUGIN_THREAD = "satchel-plugin"
"""The name of the threads in which plugin code is loaded; other such names begin with it."""

_MARK = "_satchel_of_plugin"
_ALL_THREADS = 3.0
"""Seconds for the threads of all plugins together."""
_CALLBACK = 3.0
"""Seconds for one callback of `atexit`."""
_INSISTENCE = 0.5
"""Seconds between interruptions of a callback that continues after the first one."""
_MOST_INTERRUPTIONS = 4


def guard_exit() -> None:
    """Limit from now on what plugin code can make the exit of the process wait for."""
    if getattr(atexit.register, _MARK, False):
        return
    setattr(guarded := _register(atexit.register), _MARK, True)
    atexit.register = guarded
    threading.Thread.start = _start(threading.Thread.start)  # type: ignore[method-assign]


def _end_threads_at_exit() -> None:
    """Have `_end_threads` called before Python waits for threads, and before pools do."""
    pools = sys.modules.get("concurrent.futures.thread", threading)
    at_threads_end = getattr(threading, "_register_atexit", None)
    if at_threads_end is not None and not hasattr(pools, _MARK):
        setattr(pools, _MARK, True)  # What was registered last is called first.
        with suppress(RuntimeError):  # the exit has begun
            at_threads_end(_end_threads)


def _register(register: Any) -> Any:
    @wraps(register)
    def registering(func: Any, /, *args: Any, **kwargs: Any) -> Any:
        # A module of Python itself registers for all, no matter which module imported it first.
        caller = str(sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001
        is_of_python = caller.partition(".")[0] in sys.stdlib_module_names
        if is_of_python or not _is_plugin_code(func):
            return register(func, *args, **kwargs)
        register(LimitedCallback(func), *args, **kwargs)
        return func

    return registering


def _start(start: Any) -> Any:
    @wraps(start)
    def starting(thread: threading.Thread) -> None:
        if _is_plugin_code(getattr(thread, "_target", None) or type(thread)):
            setattr(thread, _MARK, "daemon" if thread.daemon else "awaited")
            thread._daemonic = True  # type: ignore[attr-defined] # noqa: SLF001
            _end_threads_at_exit()
        start(thread)

    return starting


def _is_plugin_code(function: Any) -> bool:
    """Return whether a plugin is being loaded in this thread, or has defined a function."""
    thread = threading.current_thread()
    if thread.name.startswith(PLUGIN_THREAD) or getattr(thread, _MARK, False):
        return True
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and module.startswith(PRIVATE_PREFIX)


class LimitedCallback:
    """A callback of `atexit` with a time limit; equal to its function, as `unregister` needs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __eq__(self, other: object) -> bool:
        return self._function == other

    def __hash__(self) -> int:
        return hash(self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Call the function; interrupt it after the limit."""
        left = iter(range(_MOST_INTERRUPTIONS))

        def stop(*_: object) -> None:
            if next(left, None) is None:
                # It catches every interruption: only this ends it.
                _say(f"{_name(self._function)} does not end; the process exits without it")
                os._exit(1)
            raise TimeoutError(f"took longer than {_CALLBACK:g} s at exit")

        with alarm(stop, _CALLBACK, _INSISTENCE):
            try:
                self._function(*args, **kwargs)
            except TimeoutError as problem:
                _say(f"{_name(self._function)} {problem}")


@contextmanager
def alarm(stop: Callable[..., None], seconds: float, again: float = 0.0) -> Iterator[None]:
    """Call `stop` after some seconds, where this is the main thread and the system has timers."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _end_threads() -> None:
    """Give the threads of plugins some time to end, then leave them behind."""
    of_plugins = [thread for thread in threading.enumerate() if hasattr(thread, _MARK)]
    threads = [thread for thread in of_plugins if getattr(thread, _MARK) == "awaited"]
    queues = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", {})
    for thread in of_plugins:
        # The pool would wait for its workers without a limit; `None` ends an idle worker.
        if (queue := queues.pop(thread, None)) is not None:
            queue.put(None)
            threads.append(thread)
    deadline = time.monotonic() + _ALL_THREADS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    if late := [thread.name for thread in threads if thread.is_alive()]:
        _say(f"threads of plugins did not end and are left behind: {', '.join(late)[:200]}")


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{getattr(function, '__module__', '?')}.{name}".partition(PRIVATE_PREFIX)[2] or str(
        name
    )


def _say(message: str) -> None:
    # Not the log: its handlers may be closed by now.
    with suppress(Exception):
        sys.stderr.write(f"satchel: {ascii(message)[1:-1]}\n")
