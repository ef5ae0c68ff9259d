"""The life of one call: a task of its own, its chunks, and how it ends.

1. `start()`, `result()` or the first `next()` starts the task. From Python 3.12 on it starts
   eagerly, so a tool that does not wait has ended when the task is created.
2. In the task, a `FunctionRun` validates the arguments and yields the items. With middleware, a
   `MiddlewareRun` yields them; its innermost part is a `FunctionRun`.
3. Each chunk goes to the reader, and the task waits until the reader asks for the next one. The
   last item is the result; every failure becomes a result.
4. `interrupt()`, the time limit or a reader that leaves ends a call early; `endable_call.py` says
   how.
"""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.runtime.call_messages import EndReason
from satchel.runtime.call_pipeline import CallScope, MiddlewareRun
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.endable_call import (
    ABANDONED,
    CANCELLED,
    LEFT,
    OPEN,
    OVER,
    Abandoned,
    EndableCall,
)
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


class CallTask(EndableCall):
    """One call of a tool. It runs once, and its last item is the result."""

    send: Any = None  # `Coroutine` is abstract without it; each call sets its own

    def __init__(
        self,
        call: ToolCall,
        prepared: PreparedTool,
        scope: CallScope | None = None,
        context: ToolContext | None = None,
    ) -> None:
        """Prepare a call in a session, or without one; it gets `context`, or has its own."""
        self.call, self.prepared, self.scope = call, prepared, scope
        self.context = context or call.context
        self.call_id = call.id or None
        """The id of the call, or `None` if it has none."""
        # All set here: reading a default from the class is slow.
        self.executed_tool = ""
        """The name of the tool that ran. It differs from the call's if middleware redirected it."""
        self.function_result: ToolResult | None = None
        """The result of the function that ended last."""
        self.is_started = False
        """Whether the task exists; `False` during the first step of an eager task."""
        self.chunks: ChunkAccumulator | None = None
        """The chunks that arrived."""
        self.route: Route | None = None
        """Chooses the runner of the call; set only if the host has registered runners."""
        self.phase, self.is_interrupted, self.loop = OPEN, False, None
        self._task = self._run = self._grace_timer = None
        self._waiter: asyncio.Future[None] | None = None  # the reader waits for an item
        self._reader_is_ready: asyncio.Future[None] | None = None  # the task waits for its reader
        self._item: Item | None = None
        self._reads_chunks = False

    def in_background(self, call: ToolCall, prepared: PreparedTool) -> "CallTask":
        """Return another call task of this session, which runs in the background."""
        task = CallTask(call, prepared, self.scope)
        task.route = self.route
        return task

    # ---- for the reader -------------------------------------------------------------------

    def start(self) -> ToolResult | None:
        """Start the task; return the result if the tool has already ended, else `None`."""
        self.loop = loop = asyncio.get_running_loop()
        if self.is_interrupted:
            self.finish(self.ended_early())
        else:
            self._work = self._main()
            self.send = self._work.send
            task = _new_task(self, loop=loop, name=self.call.name)
            self.is_started = True
            if self.phase < OVER:  # an eager task may have ended already
                self._task = task
                if self._run is not None:
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
        if self.loop is None:
            self.start()
        elif self._reader_is_ready is not None and not self._reader_is_ready.done():
            self._reader_is_ready.set_result(None)
        if self._item is None:
            try:
                await self._new_waiter()
            except GeneratorExit:
                self.cancel(LEFT)  # nothing can be awaited any more
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

    async def aclose(self) -> None:
        """End the call, and wait until it has ended."""
        if await self._leave():
            raise asyncio.CancelledError

    async def _leave(self) -> bool:
        """Cancel the task, wait for its end, and return whether the reader was cancelled."""
        is_cancelled = False
        while not (self._task is None or self._task.done() or self.phase is ABANDONED):
            self.cancel(LEFT)
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

    # ---- inside the task ------------------------------------------------------------------

    async def _main(self) -> None:
        try:
            run: FunctionRun | MiddlewareRun
            if self.prepared.has_middleware:
                run = MiddlewareRun(self, self.validated_call())
            else:
                run = FunctionRun(self, self.call, self.prepared.tool)
            self._run = run
            while not isinstance(item := await run.__anext__(), ToolResult):
                if self._reads_chunks:
                    await self._hand_over(item)
        except Abandoned:
            raise
        except BaseException as problem:
            # Not only Exception: a tool that exits or cancels itself must not end the host.
            if self.loop is None or self.loop.is_closed():
                raise  # nothing can be awaited any more
            item = self._result_after(problem)
        if self.phase is CANCELLED:  # even if middleware returned another result
            item = self.ended_early()
        if self._run is not None and not self._run.is_over:
            await self._run.aclose()
        self.finish(item)

    def validated_call(self) -> ToolCall:
        """Return the call with its tool and validated arguments. Raises `ArgumentError`."""
        call, tool = self.call, self.prepared.tool
        parts = {
            "tool": tool,
            "groups": self.prepared.groups,
            "context": self.context,
            "arguments": checked_arguments(tool, call.arguments),
        }
        return changed_fast(call, parts)

    async def _hand_over(self, chunk: ToolChunk) -> None:
        assert self.loop is not None
        self._reader_is_ready = self.loop.create_future()
        self._item = chunk
        self._wake()
        await self._reader_is_ready

    def _result_after(self, problem: BaseException) -> ToolResult:
        # A loop that closes cancels every task. The waiting reader is one of them, so its future is
        # cancelled, too. Any other cancellation came from the tool, which counts as a failure.
        futures = (self._waiter, self._reader_is_ready)
        is_closing = any(future is not None and future.cancelled() for future in futures)
        if is_closing or self.is_interrupted or self.phase is LEFT:
            return self.ended_early()
        return self._after_chunks(self.prepared.failed(self.call, problem))

    def ended_early(self, reason: EndReason = EndReason.INTERRUPTED) -> ToolResult:
        """Return the result of a call that was ended early: its chunks, and why it ended."""
        return self._after_chunks(self.prepared.ended_early(self.call, reason))

    def _after_chunks(self, last: ToolResult) -> ToolResult:
        return self.chunks.followed_by(last) if self.chunks else last

    def finish(self, result: ToolResult) -> None:
        """Take the result of the call, unless it has one, and give it to the reader."""
        if self.phase < OVER:
            self.phase = OVER
            self._run = self._task = None  # they hold this object
            self.function_result = None  # it may have an exception
            if self._grace_timer is not None:
                self.stop_grace()
            if result.exception is not None:
                # Its traceback would keep the tool's local variables alive.
                result = replace(result, exception=None)
            self._item = result
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


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
