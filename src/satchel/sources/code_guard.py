"""Running plugin code so that neither what it raises nor how long it takes reaches the host."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from satchel.sources.process_state import PRIVATE_PREFIX, ProcessState

R = TypeVar("R")

_THREAD = "satchel-plugin"


class PluginCodeError(Exception):
    """Plugin code raised or hung; `path` and `line` say where, if that is known."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


class PluginTimeoutError(PluginCodeError):
    """Plugin code did not end in time; its thread is left behind."""


class GuardedWork(Generic[R]):
    """Work that goes on in a thread of its own; it may raise, and be waited for again and again."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._outcome: list[R] = []
        self._problem: BaseException | None = None
        self._done = threading.Event()
        # The work is not kept: it may hold what the outcome is to take the place of.
        threading.Thread(target=self._run, args=(work,), name="satchel-load", daemon=True).start()

    def _run(self, work: Callable[[], R]) -> None:
        try:
            self._outcome.append(work())
        except BaseException as problem:
            self._problem = problem
        finally:
            self._done.set()

    def is_done_within(self, seconds: float | None) -> bool:
        """Wait for the end, at most so long; without a limit for `None`."""
        return self._done.wait(seconds)

    def result(self) -> R:
        """Return or raise what the work did, which must be done."""
        if self._problem is not None:
            raise self._problem
        return self._outcome[0]


def guarded(
    work: Callable[[], R],
    limit: float,
    limit_name: str = "",
    plugin_folder: str | None = None,
    *,
    alone: bool = True,
) -> tuple[R, tuple[str, ...]]:
    """Run plugin code in a thread of its own, so that neither exits nor hangs reach the host.

    Returns its result, and what it changed in the process that was put back; `plugin_folder` and
    `alone` are as in `ProcessState.put_back`. Raises `PluginCodeError` whatever the code raises,
    and after `limit` seconds; `limit_name` is the setting to name then.
    """
    outcome: list[R] = []
    problems: list[PluginCodeError] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as problem:  # SystemExit and CancelledError are the plugin's, not ours
            # Described here, not by the caller: even the words of an error may hang.
            problems.append(describe_error(problem))

    thread = threading.Thread(target=run, name=_THREAD, daemon=True)
    alone = alone and _others(thread) == 0
    before = ProcessState.now()
    thread.start()
    thread.join(limit)
    meddled = before.put_back(plugin_folder, alone=alone and _others(thread) == 0)
    if thread.is_alive():
        thread.name = f"{_THREAD}-left"  # Nobody waits for it any more, nor counts it.
        named = f" (limit {limit_name})" if limit_name else ""
        raise PluginTimeoutError(f"took longer than {limit:g} seconds{named}")
    if problems:
        raise problems[0]
    return outcome[0], meddled


def _others(thread: threading.Thread) -> int:
    """Count the other threads in which plugin code runs now, in this or another satchel."""
    return sum(other.name == _THREAD and other is not thread for other in threading.enumerate())


def describe_error(problem: BaseException) -> PluginCodeError:
    """Describe what foreign code raised; even its `__str__` may raise."""
    try:
        text = str(problem)
    except BaseException:
        text = "(its message cannot be shown)"
    # Not `type(problem).__name__`, which a metaclass may replace.
    kind = type.__dict__["__name__"].__get__(type(problem))
    path, line = _place(problem)
    told = PluginCodeError(f"{kind}: {text}" if text else kind, path, line)
    told.__cause__ = problem
    return told


def _place(problem: BaseException) -> tuple[str | None, int | None]:
    """Return the innermost line of plugin code that a traceback passes through."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return problem.filename, problem.lineno
    path, line = None, None
    trace = problem.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if str(trace.tb_frame.f_globals.get("__name__")).startswith(PRIVATE_PREFIX):
            path, line = file, trace.tb_lineno
        trace = trace.tb_next
    return path, line
