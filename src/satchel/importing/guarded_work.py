"""Run plugin code in a thread, and wait for it repeatedly."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class GuardedWork(Generic[R]):
    """Work that runs in its own thread; callers can wait for it repeatedly.

    `on_end` is called in that thread when the result can be had.
    """

    def __init__(self, work: Callable[[], R], on_end: Callable[[], None] = lambda: None) -> None:
        self._outcome: list[R] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        # `work` is not stored: it may hold the version that its outcome replaces.
        threading.Thread(
            target=self._run, args=(work, on_end), name="satchel-load", daemon=True
        ).start()

    def _run(self, work: Callable[[], R], on_end: Callable[[], None]) -> None:
        try:
            self._outcome.append(work())
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
            on_end()

    def is_done_within(self, seconds: float | None) -> bool:
        """Return whether the work ends within this time; `None` waits without a limit."""
        return self._done.wait(seconds)

    def result(self) -> R:
        """Return the result of finished work, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]
