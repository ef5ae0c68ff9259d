"""Driving a coroutine step by step, so that it can be ended, and left behind if it does not end.

A task of its own for each call would do, too, but costs several times what a small tool takes.
So the coroutine runs in the caller's own task, as it would after a plain `await`, and what it
waits for is waited for here: whoever ends it wakes this code, which hands it the cancellation,
and drops it if it goes on all the same.

What runs inside shares its task with the host, and so both cancel the same one: an
`asyncio.timeout()` inside the tool does it like one around the call. They are told apart by the
context of who cancels: all that is started during a step inherits the mark of that step.
"""

from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from enum import StrEnum
from functools import cache
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


class Mark:
    """Says in a context what it was made by, and holds nothing: contexts may live for long."""

    __slots__ = ("outer",)
    outer: "Mark | None"

    def is_inside(self, mark: "Mark") -> bool:
        """Tell whether this is another mark, or was set during a step of it."""
        own: Mark | None = self
        while own is not None and own is not mark:
            # A run that ended in its first step never needed to know what is around it.
            own = getattr(own, "outer", None)
        return own is not None


MARK: ContextVar[Mark | None] = ContextVar("satchel.runtime.mark", default=None)
"""The innermost drive whose step made this context."""


class Drive:
    """Runs the coroutines of one call, one after another, and can be told to end them."""

    # Most drives end before any of this is needed, so it is not set for each.
    reason: End | None = None
    is_torn = False
    """Whether the host cancelled, or closed, whoever awaits this."""
    left_behind = False
    """Whether a coroutine went on after it was cancelled, and was dropped."""
    _loop: "asyncio.AbstractEventLoop | None" = None
    """The loop on which somebody waits just now."""
    _proxy: "asyncio.Future[None] | None" = None
    _timer: "asyncio.TimerHandle | None" = None
    _patience: "asyncio.TimerHandle | None" = None
    _is_out_of_patience = False
    _is_told = False
    _must_tell = False  # whether a cancellation of ours has still to be handed over
    _told_by: Context | None = None
    _message: tuple[Any, ...] = ()

    def __init__(self, seconds: float | None, grace: float, mark: Mark | None = None) -> None:
        """`seconds` bound the time inside the coroutines, `grace` what they may take to end."""
        self._seconds, self._grace, self._mark = seconds, grace, mark or Mark()
        self._at_last = End.TIMEOUT

    def end(self, reason: End, within: float | None = None) -> None:
        """End what runs now, or else what would run next; from any thread.

        It may still have some seconds of its own, `within` which it may end by itself.
        """
        # First told, then looked at the loop; `rest` does it the other way round. So of two
        # threads one sees the other.
        if within is None:
            self.reason = self.reason or reason
        else:
            self._seconds, self._at_last = within, reason
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it is closed, and nothing runs any more
                loop.call_soon_threadsafe(self._end if within is None else self._set_timer)

    async def through(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine. Raises `EndedError`, and what the coroutine raises."""
        if self.reason is not None:
            work.close()
            raise EndedError(self.reason)
        self._mark.outer = MARK.get()
        try:
            waits_for = self._step(work, None)
        except BaseException as problem:
            if self.reason is not None:  # it was ended by its own first step
                raise EndedError(self.reason) from None
            if isinstance(problem, StopIteration):
                return problem.value
            raise
        return await self.rest(work, waits_for)

    @coroutine
    def rest(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
        """Await the rest of a coroutine that had its first step, and waits for something."""
        import asyncio

        task = asyncio.current_task()
        assert task is not None  # what waits belongs to a task
        self._task, self._hosts = task, 0
        self._base = self._cancels = task.cancelling()
        self._mark.outer = MARK.get()
        self._loop = loop = asyncio.get_running_loop()
        if self.reason is not None:  # it was ended by its own first step
            self._end()
        begun = loop.time()
        self._set_timer()
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
            self._loop = None
            self._stop_patience()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._seconds is not None:
                self._seconds = max(0.0, self._seconds - (loop.time() - begun))
        self._pass_on_cancellation(None)  # the tool caught it and went on; the host meant it
        if self.reason is not None:
            raise EndedError(self.reason)
        return value

    def _steps(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
        """Step until the coroutine returns or raises."""
        while True:
            problem = yield from self._waited(waits_for)
            self._cancels = self._task.cancelling()
            if self._is_out_of_patience:
                self._leave_behind(work, waits_for)
            try:
                waits_for = self._step(work, problem)
            except StopIteration as done:
                return done.value
            if self._patience is not None and not self._is_ending():
                self._stop_patience()  # somebody inside meant that cancellation, and took it

    def _step(self, work: Coroutine[Any, Any, Any], problem: BaseException | None) -> Any:
        token = MARK.set(self._mark)
        try:
            return work.send(None) if problem is None else work.throw(problem)
        finally:
            MARK.reset(token)

    def _waited(self, future: Any) -> Generator[Any, Any, BaseException | None]:
        """Wait for what the coroutine waits for; return what is to be thrown into it, if any."""
        if future is None:  # one turn of the loop, as `asyncio.sleep(0)` wants
            return (yield from self._slept(None))
        # Taken over as a task would; see `__step` in asyncio/tasks.py.
        if (fault := self._fault_of(future)) is not None:
            return (yield from self._slept(None)) or RuntimeError(fault)
        future._asyncio_future_blocking = False  # noqa: SLF001
        while not future.done():
            problem = yield from self._slept(future)
            if problem is not None and (
                self._is_out_of_patience or not self._cancelled(future, problem)
            ):
                return problem
        return self._own_cancellation()

    def _fault_of(self, future: Any) -> str | None:
        """Say why something cannot be waited for, in the words of asyncio."""
        match getattr(future, "_asyncio_future_blocking", None):
            case None:
                return f"Task got bad yield: {future!r}"
            case False:
                return f"yield was used instead of yield from in a task with {future!r}"
        if future is self._task:
            return f"Task cannot await on itself: {future!r}"
        if future.get_loop() is not self._loop:
            return f"Task got Future {future!r} attached to a different loop"
        return None

    def _cancelled(self, future: Any, problem: BaseException) -> bool:
        """Hand a cancellation on to what is waited for, in the name of whoever it came from."""
        message = problem.args[0] if problem.args else None
        by, self._told_by = self._told_by, None
        if by is None:
            return bool(future.cancel(msg=message))
        return bool(by.run(future.cancel, msg=message))

    def _slept(self, future: Any) -> Generator[Any, Any, BaseException | None]:
        """Sleep until a future is done or somebody wakes this; return what was raised."""
        import asyncio

        if future is not None and self._must_tell:
            return self._own_cancellation()
        of_task, turn = _proxies()
        self._proxy = proxy = (turn if future is None else of_task)(loop=self._loop)
        proxy.drive = self
        if future is not None:
            future.add_done_callback(self._wake)
        try:
            yield from proxy
        except asyncio.CancelledError as problem:
            return problem
        except BaseException:
            # Any: whoever drives us drops us.
            self.is_torn = True
            raise
        finally:
            if future is not None:
                future.remove_done_callback(self._wake)
            self._proxy = None
        return self._own_cancellation()

    def _wake(self, _future: Any = None) -> None:
        if self._proxy is not None and not self._proxy.done():
            self._proxy.set_result(None)

    def note_cancel(self, message: Any) -> None:
        """Note who cancels the task; called while that happens."""
        self._told_by = copy_context()
        mark = MARK.get()
        if mark is None or not mark.is_inside(self._mark):
            self._hosts += 1
            self._message = () if message is None else (message,)
            self._begin_patience()

    def _end(self, reason: End | None = None) -> None:
        self.reason = self.reason or reason
        if self._loop is not None and not self._is_told:
            self._is_told = self._must_tell = True
            self._begin_patience()
            self._wake()

    def _own_cancellation(self) -> BaseException | None:
        import asyncio

        if not self._must_tell:
            return None
        self._must_tell, self._told_by = False, None
        return asyncio.CancelledError()

    def _is_ending(self) -> bool:
        """Tell whether the coroutine was told to end, by us or by the host."""
        return self.reason is not None or (self._hosts > 0 and self._task.cancelling() > self._base)

    def _set_timer(self) -> None:
        if self._loop is not None and self._seconds is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(self._seconds, self._end, self._at_last)

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

    def _leave_behind(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> NoReturn:
        """Drop a coroutine that goes on; it never gets another step."""
        self.left_behind = True
        if hasattr(waits_for, "add_done_callback"):  # nobody waits for that, either
            waits_for.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            waits_for.cancel()
        self._throw_out(work)
        raise LeftBehind

    def _throw_out(self, work: Coroutine[Any, Any, Any]) -> None:
        with suppress(BaseException):  # also the StopIteration of one that returns now
            work.throw(LeftBehind())

    def _pass_on_cancellation(self, problem: BaseException | None) -> None:
        """Raise the host's own cancellation, whatever the tool made of it."""
        import asyncio

        task = self._task
        is_pending = task.cancelling() > self._base
        if isinstance(problem, asyncio.CancelledError) and (is_pending or self._hosts):
            self.is_torn = True
            raise problem
        if is_pending and self._hosts:
            self.is_torn = True
            raise asyncio.CancelledError(*self._message) from problem
        # What the last step asked for is still to come. Anything else was meant for the inside,
        # and is over with it, whether or not somebody there took it back.
        kept = self._base + max(0, task.cancelling() - self._cancels)
        while task.cancelling() > kept:
            task.uncancel()


@cache
def _proxies() -> tuple[Any, Any]:
    """Make what the task waits for in place of what the coroutine does; `asyncio` is lazy."""
    import asyncio

    class Proxy(asyncio.Future[None]):
        """Tells the drive when the task is cancelled."""

        __slots__ = ("drive",)
        drive: Drive

        def cancel(self, msg: Any = None) -> bool:
            self.drive.note_cancel(msg)
            return super().cancel(msg)

    class Turn(Proxy):
        """Is done after one turn of the loop, as a task is that yields nothing."""

        __slots__ = ()

        def add_done_callback(
            self, fn: Callable[[Any], object], /, *, context: Context | None = None
        ) -> None:
            self.get_loop().call_soon(self._end, fn, context=context)

        def _end(self, fn: Callable[[Any], object]) -> None:
            if not self.done():
                self.set_result(None)
            fn(self)

    return Proxy, Turn
