"""Name the async tool that blocks the event loop.

A thread asks the loop for a sign of life while calls run, once in an interval. If none comes, the
stack of the loop's thread says which tool runs. A call does nothing for this but look whether there
is such a thread.
"""

import asyncio
import logging
import sys
import threading
import weakref
from types import FrameType
from typing import Any

from satchel.runtime.endable_call import EndableCall
from satchel.text import one_line

_ATTRIBUTE = "_satchel_watch"
_LINGER = 10
"""Intervals without a running tool after which the thread ends."""
_RUN = ("satchel.runtime.tool_run", "FunctionRun.__anext__")
_OWN = ("satchel.", "asyncio.")

_log = logging.getLogger("satchel.runtime")


class LoopWatch(threading.Thread):
    """Watches one event loop, from the thread that started it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        super().__init__(name="satchel-loop-watch", daemon=True)
        self._loop, self._seconds = weakref.ref(loop), seconds
        self._loop_thread = threading.get_ident()
        self._is_alive_sign = threading.Event()
        self._has_calls = False
        self.was_used = True
        """Whether a call started since the last check; calls set it."""

    def run(self) -> None:
        """Watch until no call has started for a while."""
        unused = 0
        while self._check():
            unused = 0 if self.was_used else unused + 1
            self.was_used = False
            if unused > _LINGER:
                if not self._has_calls:
                    break
                unused = 0
        if (loop := self._loop()) is not None:
            delattr(loop, _ATTRIBUTE)

    def _check(self) -> bool:
        """Wait one interval for a sign of life; return whether the loop still runs."""
        loop = self._loop()
        if loop is None or not loop.is_running():
            return False
        self._is_alive_sign.clear()
        try:
            loop.call_soon_threadsafe(self._give_sign)
        except RuntimeError:  # it was closed
            return False
        del loop  # a waiting thread must not keep it
        if self._is_alive_sign.wait(self._seconds / 2):
            _pause(self._seconds / 2)
            return True
        before = self._running()
        if not self._is_alive_sign.wait(self._seconds / 2):
            # Seen twice, so it is no sequence of short calls.
            now = self._running()
            if now is not None and before is not None and now[0] is before[0]:
                self._report(*now)
        while not self._is_alive_sign.wait(self._seconds):
            loop = self._loop()
            if loop is None or loop.is_closed():
                return False
            del loop
        return True

    def _give_sign(self) -> None:
        self._is_alive_sign.set()
        if not self.was_used:
            coroutines = (task.get_coro() for task in asyncio.all_tasks())
            self._has_calls = any(isinstance(item, EndableCall) for item in coroutines)

    def _running(self) -> tuple[Any, str] | None:
        """Return the run of a tool on the stack of the loop, and the line that it is at."""
        frame: FrameType | None = sys._current_frames().get(self._loop_thread)  # noqa: SLF001
        place = ""
        while frame is not None:
            module = str(frame.f_globals.get("__name__"))
            if (module, frame.f_code.co_qualname) == _RUN:
                return frame.f_locals["self"], place
            if not module.startswith(_OWN):
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def _report(self, run: Any, place: str) -> None:
        at = f" at {one_line(place)}" if place else ""
        _log.warning(
            "tool %s blocks the event loop%s: no other call and no time limit works meanwhile. "
            "Make it a function without async, or await the slow work",
            run.tool_name,
            at,
        )


def watch_loop(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Watch a running loop, from its own thread."""
    watch = getattr(loop, _ATTRIBUTE, None)
    if watch is not None:
        watch.was_used = True
        return
    watch = LoopWatch(loop, seconds)
    try:
        setattr(loop, _ATTRIBUTE, watch)
        watch.start()
    except (AttributeError, RuntimeError):
        return  # a loop without attributes, or an interpreter that starts no threads any more


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
