"""The life of one call: a task of its own, its chunks, and how it ends.

1. `result()`, or the first `next()`, starts the task. From Python 3.12 on it starts eagerly, so a
   tool that does not wait has ended when the task is created.
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
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.runtime.call_messages import EndReason, interruption, too_slow
from satchel.runtime.call_pipeline import CallScope, MiddlewareRun
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.droppable_coroutine import Abandoned, Droppable
from satchel.runtime.error_results import ErrorText, error_result
from satchel.runtime.middleware_chain import Middleware
from satchel.runtime.prepared_tool import PreparedTool
from satchel.runtime.result_limits import limit_result
from satchel.runtime.tool_run import FunctionRun
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolContext, ToolResult, failure
from satchel.tools.argument_reading import read_arguments

if TYPE_CHECKING:
    from satchel.runtime.scoped_runner import Route

if sys.version_info < (3, 12):
    _new_task = asyncio.Task
else:
    _new_task = partial(asyncio.Task, eager_start=True)


class CallTask:
    """One call of a tool. It runs once, and its last item is the result."""

    # Class attributes: most calls never need to set these.
    reason: EndReason | None = None
    """`INTERRUPTED` after `interrupt()`."""
    reader_has_left = False
    """Whether the reader stopped reading and does not want the result."""
    is_abandoned = False
    """Whether the task ignored its cancellation, so that its reader got another result."""
    executed_tool = ""
    """The name of the tool that ran. It differs from the call's if middleware redirected it."""
    function_result: ToolResult | None = None
    """The result of the function that ended last."""
    was_interrupted = False
    """Whether a function was interrupted, whatever middleware made of its result."""
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
    _is_over = _is_ending = _is_cancelled = False

    def __init__(
        self,
        call: ToolCall,
        prepared: PreparedTool,
        scope: CallScope | None = None,
        context: ToolContext | None = None,
    ) -> None:
        """Prepare a call in a session, or without one; it gets `context`, or has its own."""
        self.call, self.prepared, self.scope, self._context = call, prepared, scope, context
        self.tool, self.limits = prepared.tool, prepared.limits
        self.has_middleware = prepared.has_middleware
        self.call_id = call.id or None
        """The id of the call, or `None` if it has none."""

    def another(self, call: ToolCall, prepared: PreparedTool) -> "CallTask":
        """Return a call of its own, which continues in the background."""
        run = CallTask(call, prepared, self.scope)
        run.route = self.route
        return run

    # ---- for the reader -------------------------------------------------------------------

    def result(self) -> Coroutine[Any, Any, ToolResult]:
        """Run the call to its end and return the result."""
        self._reads_chunks = False
        last: Coroutine[Any, Any, Any] = self._next()
        return last

    def next(self) -> Coroutine[Any, Any, Item]:
        """Return the next chunk, or the result. Only the caller's own cancellation is raised."""
        self._reads_chunks = True
        return self._next()

    async def close(self) -> None:
        """End the call, and wait until it has ended."""
        if (
            self._task is not None
            and not self._task.done()
            and await self._cancel_for_reader_and_wait()
        ):
            raise asyncio.CancelledError

    def interrupt(self) -> None:
        """End the call; its result keeps the chunks so far. Thread-safe."""
        # Set the reason, then read the loop. `_start` sets the loop, then reads the reason. So one
        # of the two sees the other, whichever thread is first.
        self.reason = EndReason.INTERRUPTED
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # the loop is closed, so nothing runs
                loop.call_soon_threadsafe(self._interrupt_in_loop)

    @property
    def partial_result(self) -> ToolResult:
        """The chunks that arrived, as a result."""
        return self.chunks.result(self.call_id) if self.chunks else ToolResult()

    @property
    def wants_chunks(self) -> bool:
        """Whether each chunk goes to middleware or to the reader; or only into the result."""
        return self._reads_chunks or self.has_middleware or self.reason is not None

    async def _next(self) -> Item:
        if self._task is None:
            self._start()
        elif self._reader_is_ready is not None and not self._reader_is_ready.done():
            self._reader_is_ready.set_result(None)
        if self._item is None:
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except GeneratorExit:
                self._cancel_for_reader()  # nothing can be awaited any more
                raise
            except BaseException:
                # Not only Exception: the host's cancellation must reach the host, even if the
                # tool suppresses its own.
                await self._cancel_for_reader_and_wait()
                raise
        item = self._item
        assert item is not None
        if not isinstance(item, ToolResult):
            self._item = None
        return item

    def _start(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        if self.reason is not None:
            self._finish(self.early_result(self.reason))
            return
        self._work = Droppable(self._main())
        self._task = _new_task(self._work, loop=loop)

    # ---- inside the task ------------------------------------------------------------------

    async def _main(self) -> None:
        try:
            kind = MiddlewareRun if self.has_middleware else FunctionRun
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
        if self._is_cancelled:  # even if middleware returned another result
            item = self._append_to_chunks(self.early_result(EndReason.INTERRUPTED))
        if self._run is not None:
            await self._run.aclose()
        self._finish(item)

    def validated_call(self) -> ToolCall:
        """Return the call with its tool and validated arguments. Raises `ArgumentError`."""
        call, tool = self.call, self.tool
        return call.changed(
            tool=tool,
            groups=self.prepared.groups,
            context=self._context or call.context,
            arguments=tool.check(read_arguments(tool.name, call.arguments)),
        )

    def _result_after(self, problem: BaseException) -> ToolResult:
        # A loop that closes cancels every task. The waiting reader is one of them, so its future is
        # cancelled, too. Any other cancellation came from the tool, which counts as a failure.
        futures = (self._waiter, self._reader_is_ready)
        is_closing = any(future is not None and future.cancelled() for future in futures)
        if is_closing or self.reader_has_left or self.reason is not None:
            return self._append_to_chunks(self.early_result(EndReason.INTERRUPTED))
        return self._append_to_chunks(self.result_of_error(problem))

    async def _hand_over(self, chunk: ToolChunk) -> None:
        assert self._loop is not None
        self._reader_is_ready = self._loop.create_future()
        self._item = chunk
        self._wake()
        await self._reader_is_ready

    def _wake(self, _task: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self, item: Item) -> None:
        if self._is_over:
            return  # it was abandoned, and the reader has a result
        self._is_over = True
        self._run = None  # it holds this object
        self.function_result = None  # it may have an exception, too
        if self._grace_timer is not None:
            self.stop_grace()
        if isinstance(item, ToolResult) and item.exception is not None:
            # Its traceback would keep the tool's local variables alive.
            item = replace(item, exception=None)
        self._item = item
        self._wake()

    def result_of_error(self, problem: BaseException) -> ToolResult:
        """Return the result for an exception; its text is safe for the model."""
        errors = self.prepared.errors
        result = error_result(self.tool, self.call.arguments, problem, self.call_id, errors)
        result = limit_result(result, self.limits)
        return replace(result, exception=problem) if self.has_middleware else result

    def early_result(self, reason: EndReason, *, is_elsewhere: bool = False) -> ToolResult:
        """Return the result of a call that was ended early, here or on another machine."""
        tool = self.tool
        if reason is EndReason.INTERRUPTED:
            return interruption(tool.name, self.call_id)
        seconds, limit = tool.timeout, "the tool's own timeout"
        if seconds is None:
            seconds, limit = self.limits.tool_call, "limit tool_call"
        text = too_slow(tool.name, seconds, limit, is_elsewhere=is_elsewhere)
        return failure("timeout", text, self.call_id)

    def _append_to_chunks(self, last: ToolResult) -> ToolResult:
        return self.chunks.followed_by(last) if self.chunks else last

    # ---- ending it: the loop calls these ----------------------------------------------------

    def _interrupt_in_loop(self) -> None:
        if self._is_over or self._is_ending or self._task is None:
            return
        self._is_ending = True
        if self._run is None or not self._run.cancel(EndReason.INTERRUPTED):
            self._cancel()
        elif self.has_middleware:  # it may clean up, within the grace time
            self.start_grace(self._cancel)

    def _cancel(self) -> None:
        """Cancel the whole task: no function runs, or middleware did not end after it."""
        self._is_cancelled = True
        self._cancel_task()

    def _cancel_for_reader(self) -> None:
        """Cancel the task, because the reader stopped reading."""
        if not self._is_over and not self.reader_has_left:
            self.reader_has_left = True
            self._cancel_task()

    def _cancel_task(self) -> None:
        assert self._task is not None
        with suppress(RuntimeError):  # the loop is closed, so nothing runs
            self._task.cancel()
            # A task that never took a step does not call `_finish` itself.
            self._task.add_done_callback(self._finish_if_unfinished)
            self.start_grace(self.abandon)

    def _finish_if_unfinished(self, _task: object) -> None:
        self._finish(self._append_to_chunks(self.early_result(EndReason.INTERRUPTED)))
        self._wake()

    async def _cancel_for_reader_and_wait(self) -> bool:
        """Cancel the task, wait for its end, and return whether the reader was cancelled."""
        self._cancel_for_reader()
        is_cancelled = False
        while not (self._task is None or self._task.done() or self.is_abandoned):
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                # Not passed on: it would disturb a tool that cleans up.
                is_cancelled = True
        return is_cancelled

    def start_grace(self, then: Callable[[], object]) -> None:
        """Call `then` if the call does not end within the grace time."""
        self.stop_grace()
        assert self._loop is not None
        # Twice as long with middleware: the function inside may use up the first half.
        grace = self.limits.cancel_grace * (2 if self.has_middleware else 1)
        self._grace_timer = self._loop.call_later(grace, then)

    def stop_grace(self) -> None:
        """Stop the timer of the grace time."""
        if self._grace_timer is not None:
            self._grace_timer.cancel()
            self._grace_timer = None

    def abandon(self, reason: EndReason = EndReason.INTERRUPTED) -> None:
        """Abandon a task that continues after its cancellation."""
        self.is_abandoned = True
        self.log_leak()
        self._work.drop()
        if self._task is not None:
            self._task.cancel()
        last = self._append_to_chunks(replace(self.early_result(reason), metadata={"leaked": True}))
        self._finish(last)

    def log_leak(self) -> None:
        """Log that the tool continues after its cancellation."""
        import logging

        log = logging.getLogger("satchel.runtime")
        log.warning("tool %s leaked: it did not end in its grace time", self.tool.name)


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
