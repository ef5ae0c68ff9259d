"""Run plugin code with a time limit, isolated from the host's errors and global state."""

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from satchel.importing.exit_guard import PLUGIN_THREAD, guard_exit
from satchel.importing.process_state import PRIVATE_PREFIX, ProcessState, loaded_modules
from satchel.settings import WALL_FACTOR

R = TypeVar("R")

_PRIVATE_NAME = re.compile(rf"{PRIVATE_PREFIX}\w*_\d+\b(\.?)")
_DROPPING = 1.0
"""Seconds for the finalizers of modules that a plugin may not leave behind."""
_LEAST_WAIT = 0.01
"""Seconds between two looks at the processor time."""


class PluginCodeError(Exception):
    """Plugin code raised or hung; `path` and `line` are the position, if known."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


class PluginTimeoutError(PluginCodeError):
    """Plugin code exceeded its time limit; its thread is abandoned."""


def guarded(
    work: Callable[[], R],
    limit: float,
    limit_name: str = "",
    plugin_folder: str | None = None,
    *,
    alone: bool = True,
    of_processor: bool = False,
    own_modules: Iterable[str] = (),
) -> tuple[R, tuple[str, ...]]:
    """Run plugin code in its own thread; return its result and the process state that was restored.

    `plugin_folder` and `alone` are those of `ProcessState.put_back`. Raises `PluginCodeError` for
    anything the code raises, and `PluginTimeoutError` after `limit` seconds, which names the
    setting `limit_name`. With `of_processor`, the limit is for the thread's processor time, so
    that a busy machine ends nothing; on the clock it may take twelve times as long. An error of an
    installed package has its position in the packages of `own_modules`.
    """
    clocks: list[Callable[[], float]] = []
    outcome: list[R] = []
    errors: list[PluginCodeError] = []

    def run() -> None:
        clocks.append(_processor_clock())
        try:
            outcome.append(work())
        except BaseException as error:  # SystemExit and CancelledError are the plugin's, not ours
            # Described in this thread, because even the `__str__` of an error may hang.
            errors.append(describe_error(error, own_modules))

    guard_exit()
    thread = threading.Thread(target=run, name=PLUGIN_THREAD, daemon=True)
    alone = alone and _others(thread) == 0
    before = ProcessState.now()
    thread.start()
    if of_processor:
        late = _wait(thread, limit, clocks)
    else:
        thread.join(limit)
        late = f"{limit:g} s"
    modules = loaded_modules()
    restored = before.put_back(plugin_folder, alone=alone and _others(thread) == 0)
    if restored:
        # A finalizer of what was removed may never end, so it runs in a thread of its own.
        dropping = threading.Thread(target=modules.clear, name=f"{PLUGIN_THREAD}-left", daemon=True)
        dropping.start()
        dropping.join(_DROPPING)
    if thread.is_alive():
        thread.name = f"{PLUGIN_THREAD}-left"  # Abandoned: `_others` no longer counts it.
        setting = f" (limit {limit_name})" if limit_name else ""
        raise PluginTimeoutError(f"took longer than {late}{setting}")
    if errors:
        raise errors[0]
    return outcome[0], restored


def _processor_clock() -> Callable[[], float]:
    """Return a function with the processor time of this thread, which any thread may call."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
    except (AttributeError, OSError):  # of macOS and Windows, where it counts for all threads
        start = time.process_time()
        return lambda: time.process_time() - start
    return lambda: time.clock_gettime(clock)


def _wait(thread: threading.Thread, limit: float, clocks: list[Callable[[], float]]) -> str:
    """Wait until a thread ends or its time is over; return which time that is."""
    longest = limit * WALL_FACTOR
    end = time.monotonic() + longest
    while thread.is_alive():
        try:
            left = limit - clocks[0]() if clocks else limit
        except OSError:  # it has ended
            left = limit
        if left <= 0:
            return f"{limit:g} s of processor time"
        if (remaining := end - time.monotonic()) <= 0:
            break
        thread.join(min(max(left, _LEAST_WAIT), remaining))
    return f"{longest:g} s"


def _others(thread: threading.Thread) -> int:
    """Count the other threads that run plugin code now, of any `Satchel` in the process."""
    return sum(
        other.name == PLUGIN_THREAD and other is not thread for other in threading.enumerate()
    )


def with_author_names(text: str) -> str:
    """Return a text that names modules as their author does, not under our private prefix."""
    return _PRIVATE_NAME.sub(lambda match: "" if match[1] else "the plugin", text)


def describe_error(error: BaseException, own_modules: Iterable[str] = ()) -> PluginCodeError:
    """Return a description of what plugin code raised; even its `__str__` may raise.

    `own_modules` are those of an installed package; modules of folders are known by their names.
    """
    try:
        text = with_author_names(str(error))
    except BaseException:
        text = "(its message cannot be shown)"
    # Not `type(error).__name__`, which a metaclass may replace.
    kind = type.__dict__["__name__"].__get__(type(error))
    path, line = _position(error, {name.partition(".")[0] for name in own_modules})
    described = PluginCodeError(f"{kind}: {text}" if text else kind, path, line)
    described.__cause__ = error
    return described


def _position(error: BaseException, own_packages: set[str]) -> tuple[str | None, int | None]:
    """Return the innermost line of plugin code in the traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    path, line = None, None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.startswith(PRIVATE_PREFIX) or module.partition(".")[0] in own_packages:
            path, line = file, trace.tb_lineno
        trace = trace.tb_next
    return path, line
