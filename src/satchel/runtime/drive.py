"""Driving a coroutine step by step, so that it can be ended, and left behind if it does not end.

A task of its own for each call would do, too, but costs several times what a small tool takes.
So the coroutine runs in the caller's own task, as it would after a plain `await`, and what it
waits for is waited for here: whoever ends it wakes this code, which hands it the cancellation,
and drops it if it goes on all the same.
"""

from collections.abc import Coroutine, Generator
from contextlib import suppress
from enum import StrEnum
from types import coroutine
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import asyncio


class End(StrEnum):
    """Why a call was ended before it had its answer."""

    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class EndedError(Exception):
    """The call was ended; `reason` says by whom."""

    def __init__(self, reason: End) -> None:
        self.reason = reason
        super().__init__(reason.value)


class LeftBehind(BaseException):
    """Thrown into what goes on after its cancellation; what catches this, too, is dropped."""


class Drive:
    """Runs the coroutines of one call, one after another, and can be told to end them."""

    # Most drives end before any of this is needed, so it is not set for each.
    reason: End | None = None
    is_torn = False
    """Whether the host cancelled, or closed, whoever awaits this."""
    left_behind = False
    """Whether a coroutine went on after it was cancelled, and was dropped."""
    _loop: "asyncio.AbstractEventLoop | None" = None
    _proxy: "asyncio.Future[None] | None" = None
    _patience: "asyncio.TimerHandle | None" = None
    _is_out_of_patience = False
    _must_tell = False  # whether a cancellation of ours has still to be handed over

    def __init__(self, seconds: float | None, grace: float) -> None:
        """`seconds` bound the time inside the coroutines, `grace` what they may take to end."""
        self._seconds, self._grace = seconds, grace

    def end(self, reason: End) -> None:
        """End what runs now, or else what would run next; from any thread."""
        if self._loop is None:
            self.reason = self.reason or reason
        else:
            self._loop.call_soon_threadsafe(self._end, reason)

    async def through(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine. Raises `EndedError`, and what the coroutine raises."""
        if self.reason is not None:
            work.close()
            raise EndedError(self.reason)
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            return done.value
        return await self.rest(work, waits_for)

    @coroutine
    def rest(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
        """Await the rest of a coroutine that had its first step, and waits for something."""
        import asyncio

        self._loop = loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # what waits belongs to a task
        self._task, self._base = task, task.cancelling()
        self._must_tell = self.reason is not None  # it was ended by its own first step
        begun, timer = loop.time(), None
        if self._seconds is not None:
            timer = loop.call_later(self._seconds, self._end, End.TIMEOUT)
        try:
            value = yield from self._steps(work, waits_for)
        except BaseException as problem:
            if self.is_torn:
                # Not `close`: before Python 3.13 that does not reach into an async generator.
                self._throw_out(work)
                raise
            self._pass_on_cancellation(problem)
            if self.reason is not None:
                raise EndedError(self.reason) from None
            raise
        finally:
            self._stop_patience()
            if timer is not None and self._seconds is not None:
                timer.cancel()
                self._seconds = max(0.0, self._seconds - (loop.time() - begun))
        self._pass_on_cancellation(None)  # the tool caught it and went on; the host meant it
        if self.reason is not None:
            raise EndedError(self.reason)
        return value

    def _steps(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
        """Step until the coroutine returns or raises."""
        while True:
            problem = yield from self._waited(waits_for)
            if self._is_out_of_patience:
                self._leave_behind(work)
            try:
                waits_for = work.send(None) if problem is None else work.throw(problem)
            except StopIteration as done:
                return done.value
            if self._patience is not None and not self._is_ending():
                self._stop_patience()  # somebody inside meant that cancellation, and took it

    def _waited(self, future: Any) -> Generator[Any, Any, BaseException | None]:
        """Wait for what the coroutine waits for; return what is to be thrown into it, if any."""
        if future is None:  # one turn of the loop, as `asyncio.sleep(0)` wants
            return (yield from self._slept(None))
        # Taken over as a task would; see `__step` in asyncio/tasks.py.
        future._asyncio_future_blocking = False  # noqa: SLF001
        while not future.done():
            problem = yield from self._slept(future)
            if problem is not None and (self._is_out_of_patience or not future.cancel()):
                return problem
        return self._own_cancellation()

    def _slept(self, future: Any) -> Generator[Any, Any, BaseException | None]:
        """Sleep until a future is done or somebody wakes this; return what was raised."""
        assert self._loop is not None
        try:
            if future is None:
                yield
            elif not self._must_tell:
                self._proxy = self._loop.create_future()
                future.add_done_callback(self._wake)
                yield from self._proxy
        except GeneratorExit:
            self.is_torn = True
            raise
        except BaseException as problem:
            if self._is_ending():
                self._begin_patience()
            return problem
        finally:
            if self._proxy is not None:
                future.remove_done_callback(self._wake)
                self._proxy = None
        return self._own_cancellation()

    def _wake(self, _future: Any = None) -> None:
        if self._proxy is not None and not self._proxy.done():
            self._proxy.set_result(None)

    def _end(self, reason: End) -> None:
        if self.reason is None:
            self.reason, self._must_tell = reason, True
            self._begin_patience()
            self._wake()

    def _own_cancellation(self) -> BaseException | None:
        import asyncio

        told, self._must_tell = self._must_tell, False
        return asyncio.CancelledError() if told else None

    def _is_ending(self) -> bool:
        """Tell whether the coroutine was told to end, by us or by the host."""
        return self.reason is not None or self._task.cancelling() > self._base

    def _begin_patience(self) -> None:
        if self._patience is None and self._loop is not None:
            self._patience = self._loop.call_later(self._grace, self._lose_patience)

    def _stop_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._is_out_of_patience = self._must_tell = True
        self._wake()

    def _leave_behind(self, work: Coroutine[Any, Any, Any]) -> NoReturn:
        """Drop a coroutine that goes on; it never gets another step."""
        self.left_behind = True
        self._throw_out(work)
        raise LeftBehind

    def _throw_out(self, work: Coroutine[Any, Any, Any]) -> None:
        with suppress(BaseException):  # also the StopIteration of one that returns now
            work.throw(LeftBehind())

    def _pass_on_cancellation(self, problem: BaseException | None) -> None:
        """Raise the host's own cancellation, whatever the tool made of it."""
        import asyncio

        if self._task.cancelling() > self._base:
            self.is_torn = True
            if isinstance(problem, asyncio.CancelledError):
                raise problem
            raise asyncio.CancelledError from problem
