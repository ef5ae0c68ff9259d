"""One run of a function, the last step of a call: validation, time limit, result limits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.runtime.call_clock import CallClock, clock_of
from satchel.runtime.call_messages import EndReason
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.endable_call import LEFT, Abandoned
from satchel.runtime.loop_watch import watch_loop
from satchel.runtime.result_limits import limit_result
from satchel.runtime.stream_opening import first_of
from satchel.tools import Item, Tool, ToolCall, ToolResult, to_result
from satchel.tools.argument_reading import checked_arguments
from satchel.tools.runner import LOOP, Runner, RunnerSignal, is_resolved, on_loop, resolved
from satchel.tools.tool_results import FinalResult, result_of_nothing

if TYPE_CHECKING:
    from satchel.runtime.call_task import CallTask

_TRANSPORT = 1.0
"""Seconds that the answer of a function elsewhere may take to come here."""


def validated(call: ToolCall, tool: Tool) -> ToolCall:
    """Return a call with validated arguments. Raises `ArgumentError`."""
    return call.changed(arguments=checked_arguments(tool, call.arguments))


class FunctionRun:
    """One run of one function by its runner, inside the task of a call."""

    def __init__(self, owner: "CallTask", call: ToolCall, tool: Tool) -> None:
        assert owner.loop is not None
        self._owner, self._call, self._tool, self._loop = owner, call, tool, owner.loop
        # All set here: reading a default from the class is slow.
        self.is_validated = False
        """Whether the arguments were validated, and middleware has not changed them."""
        self.is_over = False
        """Whether it has yielded its result, and what it opened is closed."""
        self.was_interrupted = False
        """Whether the user ended it."""
        self._chunks: ChunkAccumulator | None = None
        self._reason: EndReason | None = None  # why it was cancelled
        self._stream: AsyncIterator[Any] | None = None
        self._task: asyncio.Task[Any] | None = None  # set while the function runs
        self._clock: CallClock | None = None  # set while it is timed
        self._seconds_left: float | None = None  # of the time limit, after a chunk
        self._is_waiting = False  # a runner elsewhere has not started the function
        self._is_elsewhere = False  # it has started it
        self._survives_cancel = False  # the function is in a thread, which cancelling does not end

    @property
    def tool_name(self) -> str:
        """The name of the tool that it runs."""
        return self._tool.name

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    # A coroutine: Python 3.11 and 3.13 crash in anext(items, None) if the end is raised at once.
    async def __anext__(self) -> Item:
        """Return the next chunk, or the result; raise only a cancellation of the whole task."""
        if self.is_over:
            raise StopAsyncIteration
        if self._task is not None:
            raise RuntimeError("await the last item before you ask for the next")
        owner = self._owner
        owner.executed_tool = self._call.name
        if owner.is_interrupted:  # also when middleware retries
            return await self._end_with(
                owner.prepared.ended_early(owner.call, EndReason.INTERRUPTED)
            )
        self._task = task = asyncio.current_task(self._loop)
        assert task is not None
        cancels_before = task.cancelling()
        self.start_clock()
        try:
            item: Item | None = None
            if self._stream is None:
                value = await self._start()
                item = self._result_of(value if is_resolved(value) else await resolved(value))
            if item is None:
                item = await self._next_chunk()
        except BaseException as problem:
            # Not only Exception: a tool that exits or cancels itself must not end the host.
            self._stop_clock()
            self._task = None
            is_cancelled = task.cancelling() > cancels_before
            return await self._end_after(problem, task, is_cancelled=is_cancelled)
        self._stop_clock()
        self._task = None
        if self._reason is not None or owner.is_interrupted:
            return await self._result_of_cancelled(task)
        if isinstance(item, ToolResult):
            owner.function_result = item
            if self._stream is not None:
                await self.aclose()
            self.is_over = True
        return item

    async def _end_after(
        self, problem: BaseException, task: asyncio.Task[Any], *, is_cancelled: bool
    ) -> ToolResult:
        """Return the result after an exception, or raise it if the whole task ends."""
        owner = self._owner
        if isinstance(problem, Abandoned) or self._loop.is_closed():
            raise problem  # nothing can be awaited any more
        if self._reason is not None or owner.is_interrupted:
            return await self._result_of_cancelled(task)
        is_cancelled = is_cancelled and isinstance(problem, asyncio.CancelledError)
        if is_cancelled or owner.phase is LEFT:
            if self._survives_cancel:
                owner.log_leak()
            await self.aclose()
            raise problem
        return await self._end_with(owner.prepared.failed(owner.call, problem))

    async def aclose(self) -> None:
        """End it, and close the stream of the function, if one is open."""
        self.is_over = True
        if self._stream is None:
            return
        stream, self._stream = self._stream, None
        if aclose := getattr(stream, "aclose", None):
            try:
                await aclose()
            except Abandoned:
                raise
            except BaseException:  # noqa: S110 - how a tool ends does not matter here
                pass

    def _start(self) -> Awaitable[Any]:
        """Start the function, by the runner that the host chooses for it."""
        owner, call, tool = self._owner, self._call, self._tool
        runner, route = tool.runner, owner.route
        if call is owner.call:  # there is no middleware
            if runner is LOOP and route is None:  # no copy of the call is needed
                watch_loop(self._loop, owner.prepared.limits.loop_blocked)
                arguments = checked_arguments(tool, call.arguments)
                return on_loop(tool.bind(arguments, owner.context))
            call = owner.validated_call()
        elif not self.is_validated:
            call = validated(call, tool)
        if route is not None:
            runner, call = route(call)
        return self._run_elsewhere(runner, call) if runner.waits else self._run_here(runner, call)

    def _run_here(self, runner: Runner, call: ToolCall) -> Awaitable[Any]:
        if runner.ends_when_cancelled:
            watch_loop(self._loop, self._owner.prepared.limits.loop_blocked)
        else:
            self._survives_cancel = True
        return runner.run(call)

    async def _run_elsewhere(self, runner: Runner, call: ToolCall) -> Any:
        self._is_waiting = True
        self._stop_clock()
        outcome = await runner.run(call)
        if outcome is RunnerSignal.HERE:
            self._function_starts()
            return await self._run_here(self._tool.runner, call)
        self._is_elsewhere = True
        return outcome

    def _result_of(self, value: Any) -> ToolResult | None:
        """Return the result for what the function returned; `None` if it is a stream."""
        self._survives_cancel = False
        owner = self._owner
        if type(value) is not str:  # as most are: they need no further questions
            if value is None:
                return result_of_nothing(owner.call_id)
            if isinstance(value, FinalResult):
                return value.with_id(owner.call_id)
            if hasattr(value, "__anext__"):
                self._stream = aiter(value)
                return None
        return limit_result(to_result(value, owner.call_id), owner.prepared.limits)

    async def _next_chunk(self) -> Item:
        owner, stream, first = self._owner, self._stream, None
        assert stream is not None
        if (chunks := self._chunks) is None:
            chunks = self._chunks = ChunkAccumulator(owner.prepared.limits)
            if not owner.prepared.has_middleware:
                owner.chunks = chunks
            first = first_of(stream)
        while True:
            try:
                value = await (first or stream.__anext__())
            except StopAsyncIteration:
                return chunks.result(owner.call_id)
            if isinstance(value, FinalResult):
                await self.aclose()
                return value.with_id(owner.call_id)
            first = None
            if value is RunnerSignal.STARTED:
                self._function_starts()
                continue
            item = to_result(value)
            if item.error_code == "invalid_result":
                return await self._end_with(replace(item, call_id=owner.call_id))
            chunk = chunks.add(item, owner.call_id, is_whole=isinstance(value, ToolResult))
            is_empty = not chunk.content and chunk.structured is None and not chunk.metadata
            if owner.wants_chunks and not is_empty:
                return chunk

    async def _result_of_cancelled(self, task: asyncio.Task[Any]) -> ToolResult:
        owner, reason = self._owner, self._reason or EndReason.INTERRUPTED
        if self._reason is not None:
            task.uncancel()
        is_elsewhere = self._is_elsewhere
        result = owner.prepared.ended_early(owner.call, reason, is_elsewhere=is_elsewhere)
        if self._survives_cancel:
            owner.log_leak()
            result = replace(result, metadata={"leaked": True})
        result = await self._end_with(result)
        if reason is EndReason.TIMEOUT:
            owner.stop_grace()  # middleware continues, as after any failure
        return result

    async def _end_with(self, last: ToolResult) -> ToolResult:
        await self.aclose()
        result = self._chunks.followed_by(last) if self._chunks else last
        self.was_interrupted = result.is_interrupted and self._owner.is_interrupted
        self._owner.function_result = result
        return result

    # ---- the time limit ---------------------------------------------------------------------

    def start_clock(self) -> None:
        """Start the time limit of a function that runs, unless the call takes its first step."""
        if not self._owner.is_started or self._task is None or self._is_waiting:
            return
        seconds = self._time_limit() if self._seconds_left is None else self._seconds_left
        if seconds is not None:
            self._clock = clock_of(self._loop)
            self._clock.start(self, seconds, self._loop)

    def _time_limit(self) -> float | None:
        """Return the seconds that the function may take; in the background, any number."""
        limits, seconds = self._owner.prepared.limits, self._tool.timeout
        if seconds is None and not self._tool.background:
            seconds = limits.tool_call
        if seconds is not None and self._is_elsewhere:
            # There it has ended by then, and its answer is on its way.
            seconds += limits.cancel_grace + _TRANSPORT
        return seconds

    def _stop_clock(self) -> None:
        """Stop the clock; what is left is for the next chunk."""
        if self._clock is not None:
            limit, self._clock = self._clock.stop(self), None
            if limit and self._stream is not None:
                self._seconds_left = limit - self._loop.time()

    def _function_starts(self) -> None:
        """Restart the time limit: a runner elsewhere starts the function, perhaps once more."""
        self._stop_clock()
        self._is_waiting, self._seconds_left = False, None
        self.start_clock()

    def time_out(self) -> None:
        """End the function: it has taken as long as it may."""
        self.cancel(EndReason.TIMEOUT)

    def cancel(self, reason: EndReason) -> bool:
        """Cancel the function, if it runs now; return whether it does."""
        if self._task is None:
            return False
        if self._reason is None:
            self._reason = reason
            self._task.cancel()
            self._owner.start_grace(partial(self._owner.abandon, reason))
        return True
