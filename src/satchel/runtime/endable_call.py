"""How a call is ended before it has a result.

1. A time limit cancels the function. So does `interrupt()`: middleware around the function sees how
   it ended, and may clean up within the grace time. If no function is running, the whole task is
   cancelled.
2. A reader that leaves cancels the whole task.
3. A task that does not end within the grace time is abandoned: the reader gets a result, the log
   has a warning, and the coroutine takes no further step.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from satchel.runtime.call_messages import EndReason
from satchel.runtime.prepared_tool import PreparedTool
from satchel.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from satchel.runtime.call_pipeline import MiddlewareRun
    from satchel.runtime.tool_run import FunctionRun


class CallPhase(IntEnum):
    """How far the life of a call has come; it never goes back."""

    OPEN = 0  # not started, or running
    INTERRUPTED = 1  # its functions were cancelled; middleware around them may clean up
    CANCELLED = 2  # its whole task was cancelled, because of `interrupt()`
    LEFT = 3  # its whole task was cancelled, because the reader left
    OVER = 4  # it has its result
    ABANDONED = 5  # it has a result, but its task ignored the cancellation


# Python 3.11 takes long to read the member of an enum from its class.
OPEN, INTERRUPTED, CANCELLED, LEFT, OVER, ABANDONED = CallPhase


class Abandoned(BaseException):
    """Thrown into a coroutine that ignored its cancellation; it takes no step after this."""


class EndableCall(Coroutine[Any, Any, None]):
    """The part of a call that ends it early; `CallTask` is the rest.

    It is the coroutine of its task. A call that ignores its cancellation is dropped: it ends at its
    next step. Otherwise the event loop would wait for it when the loop closes.
    """

    call: ToolCall
    prepared: PreparedTool
    phase: CallPhase
    is_interrupted: bool
    """Whether `interrupt()` was called, perhaps in another thread or before the start."""
    loop: asyncio.AbstractEventLoop | None
    send: Any
    """The method of `_work` itself, because it is called at each step."""
    _task: asyncio.Task[None] | None
    _work: Coroutine[Any, Any, None]
    _run: "FunctionRun | MiddlewareRun | None"
    _grace_timer: asyncio.TimerHandle | None

    @abstractmethod
    def finish(self, result: ToolResult) -> None:
        """Take the result of the call, unless it has one."""

    @abstractmethod
    def ended_early(self, reason: EndReason = EndReason.INTERRUPTED) -> ToolResult:
        """Return the result of a call that was ended early: its chunks, and why it ended."""

    def interrupt(self) -> None:
        """End the call; its result keeps the chunks so far. Thread-safe."""
        # Set this, then read the loop. `start` sets the loop, then reads this. So one of the two
        # sees the other, whichever thread is first.
        self.is_interrupted = True
        if (loop := self.loop) is not None:
            with suppress(RuntimeError):  # the loop is closed, so nothing runs
                loop.call_soon_threadsafe(self._interrupt_in_loop)

    def _interrupt_in_loop(self) -> None:
        if self.phase is not OPEN or self._task is None:
            return
        self.phase = INTERRUPTED
        if self._run is None or not self._run.cancel(EndReason.INTERRUPTED):
            self.cancel(CANCELLED)
        elif self.prepared.has_middleware:  # it may clean up, within the grace time
            self.start_grace(partial(self.cancel, CANCELLED))

    def cancel(self, phase: CallPhase) -> None:
        """Cancel the whole task, unless that was done before."""
        if self.phase >= phase:
            return
        self.phase = phase
        assert self._task is not None
        with suppress(RuntimeError):  # the loop is closed, so nothing runs
            self._task.cancel()
            # A task that never took a step does not call `finish` itself.
            self._task.add_done_callback(lambda _: self.finish(self.ended_early()))
            self.start_grace(self.abandon)

    def start_grace(self, then: Callable[[], object]) -> None:
        """Call `then` if the call does not end within the grace time."""
        self.stop_grace()
        assert self.loop is not None
        # Twice as long with middleware: the function inside may use up the first half.
        grace = self.prepared.limits.cancel_grace * (2 if self.prepared.has_middleware else 1)
        self._grace_timer = self.loop.call_later(grace, then)

    def stop_grace(self) -> None:
        """Stop the timer of the grace time."""
        if self._grace_timer is not None:
            self._grace_timer.cancel()
            self._grace_timer = None

    def abandon(self, reason: EndReason = EndReason.INTERRUPTED) -> None:
        """Abandon a task that continues after its cancellation."""
        self.log_leak()
        self.drop()
        if self._task is not None:
            self._task.cancel()
        result = self.ended_early(reason)
        self.finish(replace(result, metadata={**result.metadata, "leaked": True}))
        self.phase = ABANDONED

    def drop(self) -> None:
        """End the coroutine at its next step."""
        self.send = self._end

    def throw(self, *problem: Any) -> Any:
        """Raise an exception in the coroutine, as its task does when it is cancelled."""
        return self._end() if self.send == self._end else self._work.throw(*problem)

    def close(self) -> None:
        """Drop it at once: it was never started, or its loop is closed."""
        self.drop()
        self._discard()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()

    def _end(self, *_: object) -> NoReturn:
        self._discard()
        raise asyncio.CancelledError

    def _discard(self) -> None:
        with suppress(BaseException):  # also StopIteration, if it returns
            self._work.throw(Abandoned())

    def log_leak(self) -> None:
        """Log that the tool continues after its cancellation."""
        import logging

        log = logging.getLogger("satchel.runtime")
        log.warning("tool %s leaked: it did not end in its grace time", self.prepared.tool.name)
