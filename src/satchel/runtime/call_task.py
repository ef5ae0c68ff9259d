"""The life of one call: a task of its own, its chunks, and how it ends.

1. `start()`, `result()` or the first `next()` starts the task. From Python 3.12 on it starts
   eagerly, so a tool that does not wait has ended when the task is created.
2. In the task, the arguments are validated. Then a `FunctionRun` yields the items, or a
   `MiddlewareRun` around it.
3. Each chunk goes to the reader, and the task waits until the reader asks for the next one. The
   last item is the result; every failure becomes a result.
4. A time limit or `interrupt()` cancels the function, so that middleware sees how it ended. If no
   function is running, it cancels the middleware. A reader that leaves cancels the whole task.
5. A task that does not end within the grace time is abandoned: the reader gets a result, the log
   has a warning, and the coroutine takes no further step.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.runtime.call_messages import EndReason
from satchel.runtime.call_pipeline import CallScope, MiddlewareRun
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.droppable_coroutine import Abandoned, Droppable
from satchel.runtime.error_results import ErrorText
from satchel.runtime.middleware_chain import Middleware
from satchel.runtime.prepared_tool import PreparedTool
from satchel.runtime.tool_run import FunctionRun
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolContext, ToolResult
from satchel.tools.argument_reading import checked_arguments
from satchel.tools.fast_construction import changed_fast

if TYPE_CHECKING:
    from satchel.runtime.scoped_runner import Route

if sys.version_info < (3, 12):
    _new_task = asyncio.Task
else:
    _new_task = partial(asyncio.Task, eager_start=True)


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


class CallTask:
    """One call of a tool. It runs once, and its last item is the result."""

    # Class attributes: most calls never need to set these.
    phase: CallPhase = OPEN
    is_interrupted = False
    """Whether `interrupt()` was called, perhaps in another thread or before the start."""
    executed_tool = ""
    """The name of the tool that ran. It differs from the call's if middleware redirected it."""
    function_result: ToolResult | None = None
    """The result of the function that ended last."""
    chunks: ChunkAccumulator | None = None
    """The chunks that arrived."""
    route: "Route | None" = None
    """Chooses another runner than that of the tool; set only if the host has registered one."""
    _loop: asyncio.AbstractEventLoop | None = None
    _task: asyncio.Task[None] | None = None
    _waiter: asyncio.Future[None] | None = None  # the reader waits for an item
    _reader_is_ready: asyncio.Future[None] | None = None  # the task waits for its reader
    _grace_timer: asyncio.TimerHandle | None = None
    _run: FunctionRun | MiddlewareRun | None = None
    _item: Item | None = None
    _reads_chunks = False

    def __init__(
        self,
        call: ToolCall,
        prepared: PreparedTool,
        scope: CallScope | None = None,
        context: ToolContext | None = None,
    ) -> None:
        """Prepare a call in a session, or without one; it gets `context`, or has its own."""
        self.call, self.prepared, self.scope, self._context = call, prepared, scope, context
        self.call_id = call.id or None
        """The id of the call, or `None` if it has none."""

    def in_background(self, call: ToolCall, prepared: PreparedTool) -> "CallTask":
        """Return a call of its own, which continues in the background."""
        task = CallTask(call, prepared, self.scope)
        task.route = self.route
        return task

    # ---- for the reader -------------------------------------------------------------------

    def start(self) -> ToolResult | None:
        """Start the task; return the result if the tool has already ended, else `None`."""
        self._loop = loop = asyncio.get_running_loop()
        if self.is_interrupted:
            self._finish(self._interrupted_result())
        else:
            self._work = Droppable(self._main())
            self._task = _new_task(self._work, loop=loop, name=self.call.name)
            if self._run is not None:  # started eagerly, and not at its end
                self._run.start_clock()
        return self._item if isinstance(self._item, ToolResult) else None

    def result(self) -> Coroutine[Any, Any, ToolResult]:
        """Run the call to its end and return the result."""
        self._reads_chunks = False
        # Without chunks the first item is the result, which a type checker cannot know.
        result: Coroutine[Any, Any, Any] = self._next()
        return result

    def next(self) -> Coroutine[Any, Any, Item]:
        """Return the next chunk, or the result. Only the caller's own cancellation is raised."""
        self._reads_chunks = True
        return self._next()

    async def _next(self) -> Item:
        if self._loop is None:
            self.start()
        elif self._reader_is_ready is not None and not self._reader_is_ready.done():
            self._reader_is_ready.set_result(None)
        if self._item is None:
            try:
                await self._new_waiter()
            except GeneratorExit:
                self._cancel(LEFT)  # nothing can be awaited any more
                raise
            except BaseException:
                # Not only Exception: the host's cancellation must reach the host, even if the
                # tool suppresses its own.
                await self._leave()
                raise
        item = self._item
        assert item is not None
        if not isinstance(item, ToolResult):
            self._item = None
        return item

    async def close(self) -> None:
        """End the call, and wait until it has ended."""
        if await self._leave():
            raise asyncio.CancelledError

    async def _leave(self) -> bool:
        """Cancel the task, wait for its end, and return whether the reader was cancelled."""
        is_cancelled = False
        while not (self._task is None or self._task.done() or self.phase is ABANDONED):
            self._cancel(LEFT)
            try:
                await self._new_waiter()
            except asyncio.CancelledError:
                # Not passed on: it would disturb a tool that cleans up.
                is_cancelled = True
        return is_cancelled

    def _new_waiter(self) -> asyncio.Future[None]:
        """Return a future that is done with the next item, or with the end of the task."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    @property
    def partial_result(self) -> ToolResult:
        """The chunks that arrived, as a result."""
        return self.chunks.result(self.call_id) if self.chunks else ToolResult()

    @property
    def wants_chunks(self) -> bool:
        """Whether anything reads single chunks; else they are only collected for the result."""
        return self._reads_chunks or self.prepared.has_middleware or self.is_interrupted

    @property
    def is_started(self) -> bool:
        """Whether the task exists; `False` during the first step of an eager task."""
        return self._task is not None

    @property
    def reader_has_left(self) -> bool:
        """Whether the reader stopped reading and does not want the result."""
        return self.phase is LEFT

    # ---- inside the task ------------------------------------------------------------------

    async def _main(self) -> None:
        try:
            kind = MiddlewareRun if self.prepared.has_middleware else FunctionRun
            run = self._run = kind(self, self.validated_call())
            while not isinstance(item := await run.__anext__(), ToolResult):
                if self._reads_chunks:
                    await self._hand_over(item)
        except Abandoned:
            raise
        except BaseException as problem:
            # Not only Exception: a tool that exits or cancels itself must not end the host.
            if self._loop is None or self._loop.is_closed():
                raise  # nothing can be awaited any more
            item = self._result_after(problem)
        if self.phase is CANCELLED:  # even if middleware returned another result
            item = self._interrupted_result()
        if self._run is not None and not self._run.is_over:
            await self._run.aclose()
        self._finish(item)

    def validated_call(self) -> ToolCall:
        """Return the call with its tool and validated arguments. Raises `ArgumentError`."""
        call, tool = self.call, self.prepared.tool
        parts = {
            "tool": tool,
            "groups": self.prepared.groups,
            "context": self._context or call.context,
            "arguments": checked_arguments(tool, call.arguments),
        }
        return changed_fast(call, parts)

    async def _hand_over(self, chunk: ToolChunk) -> None:
        assert self._loop is not None
        self._reader_is_ready = self._loop.create_future()
        self._item = chunk
        self._wake()
        await self._reader_is_ready

    def _result_after(self, problem: BaseException) -> ToolResult:
        # A loop that closes cancels every task. The waiting reader is one of them, so its future is
        # cancelled, too. Any other cancellation came from the tool, which counts as a failure.
        futures = (self._waiter, self._reader_is_ready)
        is_closing = any(future is not None and future.cancelled() for future in futures)
        if is_closing or self.is_interrupted or self.phase is LEFT:
            return self._interrupted_result()
        return self._after_chunks(self.prepared.failed(self.call, problem))

    def _interrupted_result(self) -> ToolResult:
        return self._after_chunks(self.prepared.ended_early(self.call, EndReason.INTERRUPTED))

    def _after_chunks(self, last: ToolResult) -> ToolResult:
        return self.chunks.followed_by(last) if self.chunks else last

    def _finish(self, result: ToolResult) -> None:
        if self.phase < OVER:
            self.phase = OVER
            self._run = None  # it holds this object
            self.function_result = None  # it may have an exception
            self.stop_grace()
            if result.exception is not None:
                # Its traceback would keep the tool's local variables alive.
                result = replace(result, exception=None)
            self._item = result
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ---- ending it early --------------------------------------------------------------------

    def interrupt(self) -> None:
        """End the call; its result keeps the chunks so far. Thread-safe."""
        # Set this, then read the loop. `start` sets the loop, then reads this. So one of the two
        # sees the other, whichever thread is first.
        self.is_interrupted = True
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # the loop is closed, so nothing runs
                loop.call_soon_threadsafe(self._interrupt_in_loop)

    def _interrupt_in_loop(self) -> None:
        if self.phase is not OPEN or self._task is None:
            return
        self.phase = INTERRUPTED
        if self._run is None or not self._run.cancel(EndReason.INTERRUPTED):
            self._cancel(CANCELLED)
        elif self.prepared.has_middleware:  # it may clean up, within the grace time
            self.start_grace(partial(self._cancel, CANCELLED))

    def _cancel(self, phase: CallPhase) -> None:
        """Cancel the whole task, unless that was done before."""
        if self.phase >= phase:
            return
        self.phase = phase
        assert self._task is not None
        with suppress(RuntimeError):  # the loop is closed, so nothing runs
            self._task.cancel()
            # A task that never took a step does not call `_finish` itself.
            self._task.add_done_callback(self._finish_after_cancel)
            self.start_grace(self.abandon)

    def _finish_after_cancel(self, _task: object) -> None:
        self._finish(self._interrupted_result())

    def start_grace(self, then: Callable[[], object]) -> None:
        """Call `then` if the call does not end within the grace time."""
        self.stop_grace()
        assert self._loop is not None
        # Twice as long with middleware: the function inside may use up the first half.
        grace = self.prepared.limits.cancel_grace * (2 if self.prepared.has_middleware else 1)
        self._grace_timer = self._loop.call_later(grace, then)

    def stop_grace(self) -> None:
        """Stop the timer of the grace time."""
        if self._grace_timer is not None:
            self._grace_timer.cancel()
            self._grace_timer = None

    def abandon(self, reason: EndReason = EndReason.INTERRUPTED) -> None:
        """Abandon a task that continues after its cancellation."""
        self.log_leak()
        self._work.drop()
        if self._task is not None:
            self._task.cancel()
        ended = replace(self.prepared.ended_early(self.call, reason), metadata={"leaked": True})
        self._finish(self._after_chunks(ended))
        self.phase = ABANDONED

    def log_leak(self) -> None:
        """Log that the tool continues after its cancellation."""
        import logging

        log = logging.getLogger("satchel.runtime")
        log.warning("tool %s leaked: it did not end in its grace time", self.prepared.tool.name)


def prepare_call(
    call: ToolCall,
    tool: Tool,
    limits: Limits,
    *,
    middleware: Sequence[Middleware] = (),
    errors: ErrorText = "summary",
) -> CallTask:
    """Return a call without a session that is ready to run."""
    prepared = PreparedTool(
        tool=tool, limits=limits, errors=errors, groups=call.groups, middleware=tuple(middleware)
    )
    return CallTask(call, prepared)
