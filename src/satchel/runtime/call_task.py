"""The life of one call: a task of its own, its chunks, and how it ends.

1. `result()`, or the first `next()`, starts the task. From Python 3.12 on it starts eagerly, so a
   tool that waits for nothing has ended when that returns.
2. In the task, a source gives the items: a `FunctionRun`, or the middleware around it.
3. A chunk is handed over, and the task waits until the next is asked for. The last item is the
   result; whatever goes wrong inside becomes one.
4. A time limit or `interrupt()` cancels the function, so that middleware sees how it ended; or, if
   no function is running, the middleware itself. A reader that leaves cancels the whole task.
5. A task that has not ended after a grace time is left behind: the reader gets the result, the log
   says so, and the coroutine gets no further step.

`asyncio` is imported where it is used: it takes longer to import than the whole package.
"""

import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from satchel.runtime.call_messages import interruption, too_slow
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.error_results import error_result
from satchel.runtime.result_limits import limit_result
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolResult, failure

if TYPE_CHECKING:
    import asyncio


class EndReason(StrEnum):
    """Why a call was ended before it had its answer."""

    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class LeftBehind(BaseException):
    """Thrown into a coroutine that did not end after its cancellation, before it is dropped."""


class Stoppable(Protocol):
    """A function that is running now, and can be told to end."""

    def end(self, reason: EndReason) -> None:
        """Cancel it, unless that was done already."""

    def start_clock(self) -> None:
        """Begin to count its time."""


class ItemSource(Protocol):
    """Gives the items of a call, inside its task."""

    so_far: ChunkAccumulator | None

    async def next(self) -> Item:
        """Return the next chunk, or the result."""

    async def close(self) -> None:
        """Close what is still open; raises nothing that the tool raises."""


class CallTask:
    """One call of a tool, which runs once; the last of its items is its result."""

    # Most calls end before any of this is needed, so it is not set for each.
    reason: EndReason | None = None
    """`INTERRUPTED` once somebody asked for that."""
    is_starting = False
    """Whether its first step is being taken, and may be all that it takes."""
    is_leaving = False
    """Whether its reader has gone, and waits for no result."""
    left_behind = False
    answered_by = ""
    """The name of the tool whose result it is: that of the call, unless middleware sent it on."""
    _loop: "asyncio.AbstractEventLoop | None" = None
    _task: "asyncio.Task[None] | None" = None
    _waiter: "asyncio.Future[None] | None" = None  # the reader waits for an item
    _wanted: "asyncio.Future[None] | None" = None  # the task waits for its reader
    _patience: "asyncio.TimerHandle | None" = None
    _item: Item | None = None
    _chunks: ChunkAccumulator | None = None  # of a call that has ended
    _reads_chunks = False
    _is_over = _is_told_to_end = _is_cancelled = False

    def __init__(
        self,
        call: ToolCall,
        tool: Tool,
        limits: Limits,
        source: "Callable[[CallTask], ItemSource]",
        *,
        has_middleware: bool = False,
    ) -> None:
        self.call, self.tool, self.limits = call, tool, limits
        self._has_middleware = has_middleware
        self.running: set[Stoppable] = set()
        """The functions that take a step now; middleware may run several side by side."""
        self._source: ItemSource | None = source(self)

    # ---- for the reader -------------------------------------------------------------------

    async def result(self) -> ToolResult:
        """Run to the end and return the result."""
        self._reads_chunks = False
        if self._task is None:
            self._start()
        while not isinstance(item := self._item, ToolResult):
            await self._next()
        return item

    async def next(self) -> Item:
        """Return the next chunk, or the result. Raises only the caller's own cancellation."""
        self._reads_chunks = True
        return await self._next()

    async def items(self) -> AsyncIterator[Item]:
        """Run, and yield every chunk and last of all the result; closing it ends what runs."""
        try:
            while not isinstance(item := await self.next(), ToolResult):
                yield item
            yield item
        finally:
            await self.close()

    async def close(self) -> None:
        """End what still runs, and wait for that."""
        import asyncio

        if self._task is not None and not self._task.done() and await self._left():
            raise asyncio.CancelledError

    def interrupt(self) -> None:
        """End it; its result keeps the chunks so far. May be called from any thread."""
        # First set, then look at the loop; the start does it the other way round.
        self.reason = EndReason.INTERRUPTED
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it is closed, and nothing runs any more
                loop.call_soon_threadsafe(self._end)

    @property
    def call_id(self) -> str | None:
        """The id of the call, or `None` if it has none."""
        return self.call.id or None

    @property
    def so_far(self) -> ToolResult:
        """What was handed over until now."""
        chunks = self._source.so_far if self._source else self._chunks
        return chunks.result(self.call_id) if chunks else ToolResult()

    async def _next(self) -> Item:
        if self._task is None:
            self._start()
        elif self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)
        if self._item is None:
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except GeneratorExit:
                self._leave()  # nothing may be waited for any more
                raise
            except BaseException:
                # Any: the host's cancellation. It is raised whatever the tool makes of it.
                await self._left()
                raise
        item = self._item
        assert item is not None
        if not isinstance(item, ToolResult):
            self._item = None
        return item

    def _start(self) -> None:
        import asyncio

        self._loop = loop = asyncio.get_running_loop()
        if self.reason is not None:
            self._finish(self.ended(self.reason))
            return
        self._work = Droppable(self._main())
        if sys.version_info < (3, 12):
            self._task = loop.create_task(self._work)
            return
        self.is_starting = True
        self._task = asyncio.Task(self._work, loop=loop, eager_start=True)
        self.is_starting = False
        for function in self.running:
            function.start_clock()

    # ---- inside the task ------------------------------------------------------------------

    async def _main(self) -> None:
        source = self._source
        assert source is not None
        try:
            while not isinstance(item := await source.next(), ToolResult):
                if self._reads_chunks:
                    await self._hand_over(item)
        except LeftBehind:
            raise
        except BaseException as problem:
            # Any: a tool that exits or cancels itself must not end the host.
            if self._loop is None or self._loop.is_closed():
                raise  # nothing may be waited for any more
            item = self._end_of(problem)
        if self._is_cancelled:  # whatever the middleware made of that
            item = self._after_chunks(self.ended(EndReason.INTERRUPTED))
        await source.close()
        self._finish(item)

    def _end_of(self, problem: BaseException) -> ToolResult:
        # A loop that closes cancels each task: this one, and that of the reader, who waits. Any
        # other cancellation came from the tool, which failed.
        futures = (self._waiter, self._wanted)
        is_closing = any(future is not None and future.cancelled() for future in futures)
        if is_closing or self.is_leaving or self.reason is not None:
            return self._after_chunks(self.ended(EndReason.INTERRUPTED))
        return self._after_chunks(self.explained(problem))

    async def _hand_over(self, chunk: ToolChunk) -> None:
        assert self._loop is not None
        self._wanted = self._loop.create_future()
        self._item = chunk
        self._wake()
        await self._wanted

    def _wake(self, _task: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self, item: Item) -> None:
        if self._is_over:
            return  # it was left behind, and ended all the same
        self._is_over = True
        if self._source is not None:
            self._chunks = self._source.so_far
            self._source = None  # they know each other; freed now, not by the garbage collector
        self.be_calm()
        self._item = item
        self._wake()

    def explained(self, problem: BaseException) -> ToolResult:
        """Return what the model may know of an exception."""
        result = error_result(self.tool, self.call.arguments, problem, self.call_id)
        return limit_result(result, self.limits)

    def ended(self, reason: EndReason) -> ToolResult:
        """Return the result of a call that was ended."""
        tool = self.tool
        if reason is EndReason.INTERRUPTED:
            return interruption(tool.name, self.call_id)
        seconds, limit = tool.timeout, "the tool's own timeout"
        if seconds is None:
            seconds, limit = self.limits.tool_call, "limit tool_call"
        return failure("timeout", too_slow(tool.name, seconds, limit), self.call_id)

    def _after_chunks(self, last: ToolResult) -> ToolResult:
        chunks = self._source.so_far if self._source else self._chunks
        return chunks.followed_by(last) if chunks else last

    # ---- ending it, as callbacks of the loop ------------------------------------------------

    def _end(self) -> None:
        if self._is_over or self._is_told_to_end or self._task is None:
            return
        self._is_told_to_end = True
        if not self.running:
            self._cancel()
            return
        for function in tuple(self.running):
            function.end(EndReason.INTERRUPTED)
        if self._has_middleware:  # what that makes of it may take its time, but not for ever
            self.be_patient(self._cancel)

    def _cancel(self) -> None:
        """Cancel all of it: either no function runs, or middleware goes on after its end."""
        self._is_cancelled = True
        self._cancel_task()

    def _leave(self) -> None:
        """Cancel it for a reader that waits for no result."""
        if not self._is_over and not self.is_leaving:
            self.is_leaving = True
            self._cancel_task()

    def _cancel_task(self) -> None:
        assert self._task is not None
        with suppress(RuntimeError):  # the loop is closed, and nothing runs any more
            self._task.cancel()
            # One that never took a step finishes nothing.
            self._task.add_done_callback(self._finish_unbegun)
            self.be_patient(self.leave_behind)

    def _finish_unbegun(self, _task: object) -> None:
        self._finish(self._after_chunks(self.ended(EndReason.INTERRUPTED)))
        self._wake()

    async def _left(self) -> bool:
        """Cancel it and wait until it has ended; return whether the waiting was cancelled."""
        import asyncio

        self._leave()
        is_cancelled = False
        while not (self._task is None or self._task.done() or self.left_behind):
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                # Not handed on: a tool that cleans up is not disturbed.
                is_cancelled = True
        return is_cancelled

    def be_patient(self, then: Callable[[], object]) -> None:
        """Wait for the end for as long as the grace lasts, and `then` do something about it."""
        self.be_calm()
        assert self._loop is not None
        # What is inside middleware may need all of its own time to end.
        grace = self.limits.cancel_grace * (2 if self._has_middleware else 1)
        self._patience = self._loop.call_later(grace, then)

    def be_calm(self) -> None:
        """Stop waiting for the end."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def leave_behind(self, reason: EndReason = EndReason.INTERRUPTED) -> None:
        """Give up a task that goes on after its cancellation."""
        self.left_behind = True
        self.log_leak()
        self._work.drop()
        if self._task is not None:
            self._task.cancel()
        last = self._after_chunks(replace(self.ended(reason), metadata={"leaked": True}))
        self._finish(last)

    def log_leak(self) -> None:
        """Write to the log that something goes on that was told to end."""
        import logging

        log = logging.getLogger("satchel.runtime")
        log.warning("tool %s leaked: it was told to end, and did not", self.tool.name)


class Droppable(Coroutine[Any, Any, None]):
    """A coroutine that can be dropped: it then ends at its next step, whatever is inside it.

    Otherwise the event loop would wait for the task when it closes.
    """

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work, self._is_dropped = work, False

    def send(self, value: Any) -> Any:
        """Take the next step."""
        return self._end() if self._is_dropped else self._work.send(value)

    def throw(self, *problem: Any) -> Any:
        """Take the next step with an exception."""
        return self._end() if self._is_dropped else self._work.throw(*problem)

    def close(self) -> None:
        """Drop it at once: it was never begun, or its loop has gone."""
        self.drop()
        self._throw_out()

    def drop(self) -> None:
        """Let it take no further step."""
        self._is_dropped = True

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()

    def _end(self) -> NoReturn:
        import asyncio

        self._throw_out()
        raise asyncio.CancelledError

    def _throw_out(self) -> None:
        with suppress(BaseException):  # also the StopIteration of one that returns now
            self._work.throw(LeftBehind())
