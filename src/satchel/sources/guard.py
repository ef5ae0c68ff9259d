"""Running plugin code so that nothing it does reaches the host."""

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

PRIVATE_PREFIX = "_satchel_plugin_"
"""How the module names of folder plugins begin."""


class PluginCodeError(Exception):
    """Plugin code raised or hung; `path` and `line` say where, if that is known."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


class PluginTimeoutError(PluginCodeError):
    """Plugin code did not end in time; its thread is left behind."""


def guarded(work: Callable[[], R], limit: float) -> tuple[R, tuple[str, ...]]:
    """Run plugin code in a thread of its own, so that neither exits nor hangs reach the host.

    Returns its result, and what it changed in the process that was put back.
    Raises `PluginCodeError` whatever the code raises, and after `limit` seconds.
    """
    outcome: list[R] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as problem:  # SystemExit and CancelledError are the plugin's, not ours
            problems.append(problem)

    before = (os.getcwd(), list(sys.path))
    thread = threading.Thread(target=run, name="satchel-plugin", daemon=True)
    thread.start()
    thread.join(limit)
    meddled = _put_back(*before)
    if thread.is_alive():
        raise PluginTimeoutError(f"took longer than {limit:g} seconds")
    if problems:
        raise _told(problems[0]) from problems[0]
    return outcome[0], meddled


def _put_back(folder: str, path: list[str]) -> tuple[str, ...]:
    meddled = []
    if not _same_folder(folder):
        os.chdir(folder)
        meddled.append("the current folder")
    if gone := [entry for entry in path if entry not in sys.path]:
        sys.path[:] = path
        meddled.append(f"sys.path ({len(gone)} entries were gone)")
    return tuple(meddled)


def _same_folder(folder: str) -> bool:
    try:
        return os.getcwd() == folder
    except OSError:
        return False


def _told(problem: BaseException) -> PluginCodeError:
    """Describe what foreign code raised; even its `__str__` may raise."""
    try:
        text = str(problem)
    except BaseException:
        text = "(its message cannot be shown)"
    kind = type(problem).__name__
    path, line = _place(problem)
    return PluginCodeError(f"{kind}: {text}" if text else kind, path, line)


def _place(problem: BaseException) -> tuple[str | None, int | None]:
    """Return the innermost line of plugin code that a traceback passes through."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return problem.filename, problem.lineno
    path, line = None, None
    trace = problem.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if trace.tb_frame.f_globals.get("__name__", "").startswith(PRIVATE_PREFIX):
            path, line = file, trace.tb_lineno
        trace = trace.tb_next
    return path, line
