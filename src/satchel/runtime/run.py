"""One run: of a tool, or of the layers around it, drawn item by item.

Whatever happens inside, there is a result; only the host's own cancellation is ever raised.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

from satchel.runtime.accumulated import Accumulated
from satchel.runtime.bounds import bounded
from satchel.runtime.drive import Drive, End, EndedError
from satchel.runtime.explain import explain
from satchel.runtime.messages import interrupted, too_slow
from satchel.runtime.onion import Find, Handler, redirected
from satchel.runtime.reading import read_arguments
from satchel.settings import Limits
from satchel.tools import Item, Text, Tool, ToolCall, ToolChunk, ToolResult, failure, to_result


class Run(ABC):
    """Something that runs once and tells items; the last one is its result."""

    _stream: AsyncIterator[Any] | None = None
    _so_far: Accumulated | None = None

    _drive: Drive | None = None
    _begun: tuple[Coroutine[Any, Any, Item], Any] | None = None

    def __init__(self, call: ToolCall, tool: Tool, limits: Limits) -> None:
        self.call, self._tool, self._limits = call, tool, limits

    def begin(self) -> Item | None:
        """Take the first step, and return the item if that was all it took.

        Many tools end here: they need neither a drive, with its timer, nor to be waited for.
        """
        step = self._step()
        try:
            self._begun = step, step.send(None)
        except StopIteration as done:
            item: Item = done.value
            return item
        except BaseException as problem:
            # Any: a tool that exits, interrupts or cancels itself must not end the host.
            return self._explained(problem)
        return None

    async def next(self) -> Item:
        """Return the next chunk, or the result."""
        drive = self._drive = self._drive or self._made_drive()
        begun, self._begun = self._begun, None
        try:
            item: Item = await (drive.rest(*begun) if begun else drive.through(self._step()))
        except EndedError as ended:
            return await self._last(self._ended(ended.reason))
        except BaseException as problem:
            if drive.is_torn:
                self._report_leak()
                raise
            return await self._last(self._explained(problem))
        return item

    async def result(self) -> ToolResult:
        """Run to the end and return the result."""
        if self._begun is None and isinstance(item := self.begin(), ToolResult):
            return item
        while not isinstance(item := await self.next(), ToolResult):
            pass
        return item

    async def items(self) -> AsyncIterator[Item]:
        """Run, and yield every chunk and last of all the result; closing it ends what runs."""
        try:
            while not isinstance(item := await self.next(), ToolResult):
                yield item
            yield item
        finally:
            await self.close()

    async def close(self) -> None:
        """End what still runs."""
        stream, self._stream = self._stream, None
        if stream is not None and hasattr(stream, "aclose"):
            drive = Drive(self._limits.cancel_grace, self._limits.cancel_grace)
            try:
                await drive.through(stream.aclose())
            except BaseException:
                # Any: it was asked to end, and how it does that is of no interest.
                if drive.is_torn:
                    raise

    def interrupt(self) -> None:
        """End it; its result keeps what was told so far. From any thread."""
        self._drive = self._drive or self._made_drive()
        self._drive.end(End.INTERRUPTED)

    @property
    def call_id(self) -> str | None:
        """The id of the call, or `None` if it has none."""
        return self.call.id or None

    @property
    def so_far(self) -> ToolResult:
        """What was told until now."""
        return self._so_far.result(self.call_id) if self._so_far else ToolResult()

    @abstractmethod
    def _made_drive(self) -> Drive:
        """Return what drives the steps that do not end at once."""

    @abstractmethod
    async def _step(self) -> Item:
        """Return the next item; raise whatever happens."""

    async def _last(self, last: ToolResult) -> ToolResult:
        await self.close()
        return self._so_far.followed_by(last) if self._so_far else last

    def _ended(self, reason: End) -> ToolResult:
        result = self._told_of(reason)
        return replace(result, metadata={"leaked": True}) if self._report_leak() else result

    def _told_of(self, reason: End) -> ToolResult:
        tool = self._tool
        if reason is End.INTERRUPTED:
            return ToolResult(
                (Text(interrupted(tool.name)),),
                is_error=True,
                is_interrupted=True,
                error_code="interrupted",
                call_id=self.call_id,
            )
        seconds, limit = tool.timeout, "the tool's own timeout"
        if seconds is None:
            seconds, limit = self._limits.tool_call, "limit tool_call"
        return failure("timeout", too_slow(tool.name, seconds, limit), self.call_id)

    def _explained(self, problem: BaseException) -> ToolResult:
        arguments = self.call.arguments
        sent = {} if isinstance(arguments, str) else arguments
        return explain(self._tool, sent, problem, self.call_id)

    def _is_left_behind(self) -> bool:
        return self._drive is not None and self._drive.left_behind

    def _report_leak(self) -> bool:
        """Tell the log if something goes on that was told to end; return whether that is so."""
        left = self._is_left_behind()
        if left:
            import logging

            log = logging.getLogger("satchel.runtime")
            log.warning("tool %s leaked: it was told to end, and did not", self._tool.name)
        return left


class ToolRun(Run):
    """One run of one tool."""

    def _made_drive(self) -> Drive:
        seconds, limits = self._tool.timeout, self._limits
        # Background tools are there for long work.
        if seconds is None and not self._tool.background:
            seconds = limits.tool_call
        return Drive(seconds, limits.cancel_grace)

    async def _step(self) -> Item:
        if self._stream is None:
            call, tool = self.call, self._tool
            arguments = tool.check(read_arguments(tool.name, call.arguments))
            outcome = await tool.start(arguments, call.context)
            if not hasattr(outcome, "__anext__"):
                return bounded(to_result(outcome, call.id or None), self._limits)
            self._stream, self._so_far = outcome, Accumulated(self._limits)
        return await self._chunk(self._stream, self._so_far or Accumulated(self._limits))

    async def _chunk(self, stream: AsyncIterator[Any], so_far: Accumulated) -> Item:
        async for value in stream:
            item = to_result(value)
            if item.error_code == "invalid_result":
                return await self._last(replace(item, call_id=self.call_id))
            chunk = so_far.add(item)
            if chunk.content or chunk.structured is not None:
                return replace(chunk, call_id=self.call_id)
        return so_far.result(self.call_id)

    def _is_left_behind(self) -> bool:
        """A thread cannot be ended, only left; but a generator in one ends at its next item."""
        in_thread = not self._tool.on_loop and self._stream is None
        return super()._is_left_behind() or in_thread


class LayeredRun(Run):
    """One run of a tool inside its layers of middleware."""

    _result: ToolResult | None = None

    def __init__(
        self,
        call: ToolCall,
        tool: Tool,
        limits: Limits,
        layered: Callable[[Handler], Handler],
        find: Find,
    ) -> None:
        super().__init__(call, tool, limits)
        self._handler = layered(self._bottom)
        self._find = find
        self._inner: Run | None = None

    def interrupt(self) -> None:
        """End the tool if it runs, so that the layers see its result; or else the layers."""
        if self._inner is not None:
            self._inner.interrupt()
        else:
            super().interrupt()

    async def _bottom(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the tool itself."""
        call = redirected(call, self._find)
        if call.tool is None:
            yield failure("tool_not_found", f"there is no tool {call.name!r}", self.call_id)
            return
        inner = self._inner = ToolRun(call, call.tool, self._limits)
        try:
            while not isinstance(item := await inner.next(), ToolResult):
                yield item
        finally:
            self._inner = None
            await inner.close()
        yield item

    def _made_drive(self) -> Drive:
        # Twice as patient: what is inside may need all of its own time to end.
        return Drive(None, self._limits.cancel_grace * 2)

    async def _step(self) -> Item:
        if self._stream is None:
            self._stream, self._so_far = self._handler(self.call), Accumulated(self._limits)
        so_far = self._so_far or Accumulated(self._limits)
        async for item in self._stream:
            if isinstance(item, ToolChunk):
                return replace(so_far.add(item), call_id=self.call_id)
            # Not returned yet: what a layer does after its last item is still to be done.
            self._result = to_result(item, self.call_id)
        self._stream = None
        if self._result is not None:
            return bounded(self._result, self._limits)
        if not so_far.count:
            raise TypeError("the middleware yielded nothing")
        return so_far.result(self.call_id)

    async def _last(self, last: ToolResult) -> ToolResult:
        self._result = None
        return await super()._last(last)
