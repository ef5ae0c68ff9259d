"""One run: of a tool, or of the layers around it, drawn item by item.

Whatever happens inside, there is a result; only the host's own cancellation is ever raised.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from satchel.runtime.call_messages import interruption, too_slow
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.drive import MARK, Drive, End, EndedError, Mark
from satchel.runtime.error_results import error_result
from satchel.runtime.onion import Find, Handler, Note, redirected
from satchel.runtime.opening import first_of
from satchel.runtime.result_limits import limit_result
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolResult, failure, to_result
from satchel.tools.argument_reading import read_arguments
from satchel.tools.tool_results import FinalResult

Layered = Callable[[Handler, Note], Handler]
"""Puts layers around a handler, and notes what each of them opens."""


class Run(ABC):
    """Something that runs once and tells items; the last one is its result."""

    _stream: AsyncIterator[Any] | None = None
    _so_far: ChunkAccumulator | None = None

    _drive: Drive | None = None
    _ran: str = ""
    sent_to: Sequence[str] = ()
    """The other tools that layers sent the call to."""

    _begun: tuple[Coroutine[Any, Any, Item], Any] | None = None
    _failed: BaseException | None = None

    def __init__(self, call: ToolCall, tool: Tool, limits: Limits) -> None:
        self.call, self._tool, self._limits = call, tool, limits
        self._mark = Mark()

    def begin(self) -> Item | None:
        """Take the first step, and return the item if that was all it took.

        Many tools end here: they need neither a drive, with its timer, nor to be waited for.
        """
        if self._drive is not None:  # it was told to end before it began
            return None
        step = self._step()
        token = MARK.set(self._mark)
        try:
            self._begun = step, step.send(None)
        except StopIteration as done:
            item: Item = done.value
            return item if self._drive is None or self._drive.reason is None else None
        except BaseException as problem:
            # Any: a tool that exits, interrupts or cancels itself must not end the host.
            if self._stream is None and self._drive is None:
                return self._explained(problem)
            self._failed = problem  # what is open has to be closed, which may take a while
        finally:
            MARK.reset(token)
        return None

    async def next(self) -> Item:
        """Return the next chunk, or the result."""
        drive = self._driver()
        if self._failed is not None and drive.reason is None:
            return await self._last(self._explained(self._failed))
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
        # The first step may have been taken already; if it ended with a chunk, `next` goes on.
        if self._so_far is None and self._begun is None:
            item = self.begin()
            if isinstance(item, ToolResult):
                return item
        try:
            while not isinstance(item := await self.next(), ToolResult):
                pass
        except GeneratorExit:
            raise  # nothing may be waited for any more
        except BaseException:
            # Any: the host's cancellation, after which a stream may still be open.
            await self.close()
            raise
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
        begun, self._begun = self._begun, None
        if begun is not None:
            drive = self._closing_drive()
            drive.end(End.INTERRUPTED)
            await self._quietly(drive, drive.rest(*begun))
        for stream in self._taken():
            if aclose := getattr(stream, "aclose", None):
                drive = self._closing_drive()
                await self._quietly(drive, drive.through(aclose()))
            elif hasattr(stream, "send"):  # a coroutine, of a layer that is no generator
                stream.close()

    def interrupt(self) -> None:
        """End it; its result keeps what was told so far. From any thread."""
        self._driver().end(End.INTERRUPTED)

    @property
    def call_id(self) -> str | None:
        """The id of the call, or `None` if it has none."""
        return self.call.id or None

    @property
    def answered_by(self) -> str:
        """The name of the tool whose result it is: that of the call, unless a layer sent it on."""
        return self._ran or (self.sent_to[-1] if self.sent_to else self.call.name)

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

    def _taken(self) -> tuple[Any, ...]:
        """Return what is open, for the one who closes it."""
        stream, self._stream = self._stream, None
        return () if stream is None else (stream,)

    def _driver(self) -> Drive:
        # At once, so that two threads have the same.
        return self._drive or vars(self).setdefault("_drive", self._made_drive())

    def _closing_drive(self) -> Drive:
        return Drive(self._limits.cancel_grace, self._limits.cancel_grace, self._mark)

    async def _quietly(self, drive: Drive, work: Awaitable[Any]) -> None:
        try:
            await work
        except BaseException:
            # Any: it was asked to end, and how it does that is of no interest.
            if drive.is_torn:
                raise
        finally:
            if drive.left_behind:
                self._log_leak()

    async def _last(self, last: ToolResult) -> ToolResult:
        await self.close()
        return self._so_far.followed_by(last) if self._so_far else last

    def _ended(self, reason: End) -> ToolResult:
        result = self._told_of(reason)
        return replace(result, metadata={"leaked": True}) if self._report_leak() else result

    def _told_of(self, reason: End) -> ToolResult:
        tool = self._tool
        if reason is End.INTERRUPTED:
            return interruption(tool.name, self.call_id)
        seconds, limit = tool.timeout, "the tool's own timeout"
        if seconds is None:
            seconds, limit = self._limits.tool_call, "limit tool_call"
        return failure("timeout", too_slow(tool.name, seconds, limit), self.call_id)

    def _explained(self, problem: BaseException) -> ToolResult:
        result = error_result(self._tool, self.call.arguments, problem, self.call_id)
        return limit_result(result, self._limits)

    def _is_left_behind(self) -> bool:
        return self._drive is not None and self._drive.left_behind

    def _report_leak(self) -> bool:
        """Tell the log if something goes on that was told to end; return whether that is so."""
        left = self._is_left_behind()
        if left:
            self._log_leak()
        return left

    def _log_leak(self) -> None:
        import logging

        log = logging.getLogger("satchel.runtime")
        log.warning("tool %s leaked: it was told to end, and did not", self._tool.name)


class ToolRun(Run):
    """One run of one tool."""

    _is_in_thread = False

    def _made_drive(self) -> Drive:
        seconds, limits = self._tool.timeout, self._limits
        # Background tools are there for long work.
        if seconds is None and not self._tool.background:
            seconds = limits.tool_call
        return Drive(seconds, limits.cancel_grace, self._mark)

    async def _step(self) -> Item:
        if self._stream is not None:
            return await self._chunk(self._stream, None)
        call, tool = self.call, self._tool
        arguments = tool.check(read_arguments(tool.name, call.arguments))
        if not tool.on_loop:
            self._is_in_thread = True
        outcome = await tool.start(arguments, call.context)
        if isinstance(outcome, FinalResult):
            return outcome.with_id(call.id or None)
        if not hasattr(outcome, "__anext__"):
            return limit_result(to_result(outcome, call.id or None), self._limits)
        self._is_in_thread = False
        self._so_far = ChunkAccumulator(self._limits)
        stream = self._stream = aiter(outcome)
        return await self._chunk(stream, first_of(stream))

    async def _chunk(self, stream: AsyncIterator[Any], first: Awaitable[Any] | None) -> Item:
        so_far = self._so_far or ChunkAccumulator(self._limits)
        while True:
            try:
                value = await (first or stream.__anext__())
            except StopAsyncIteration:
                return so_far.result(self.call_id)
            if isinstance(value, FinalResult):
                await self.close()
                return value.with_id(self.call_id)
            first, item = None, to_result(value)
            if item.error_code == "invalid_result":
                return await self._last(replace(item, call_id=self.call_id))
            chunk = so_far.add(item, is_whole=isinstance(value, ToolResult))
            if chunk.content or chunk.structured is not None or chunk.metadata:
                return replace(chunk, call_id=self.call_id)

    def _is_left_behind(self) -> bool:
        """A thread cannot be ended, only left; but a generator in one ends at its next item."""
        return super()._is_left_behind() or self._is_in_thread


class LayeredRun(Run):
    """One run of a tool inside its layers of middleware."""

    _result: ToolResult | None = None
    _is_interrupted = False
    _has_been_interrupted = False

    def __init__(
        self, call: ToolCall, tool: Tool, limits: Limits, layered: Layered, find: Find
    ) -> None:
        super().__init__(call, tool, limits)
        self._opened: list[Any] = []
        self._handler = layered(self._opened_bottom, self._opened.append)
        self._find = find
        self._inside: list[Run] = []

    def interrupt(self) -> None:
        """End the tool if it runs, so that the layers see its result; or else the layers."""
        self._is_interrupted = True
        inside = tuple(self._inside)
        for run in inside:
            run.interrupt()
        # What the layers make of it may take its time, but not for ever.
        within = self._limits.cancel_grace * 2 if inside else None
        self._driver().end(End.INTERRUPTED, within)

    def _opened_bottom(self, call: ToolCall) -> AsyncIterator[Item]:
        items = self._bottom(call)
        self._opened.append(items)
        return items

    async def _bottom(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the tool itself."""
        call = redirected(call, self._find)
        if call.tool is None:
            yield failure("tool_not_found", f"there is no tool {call.name!r}", self.call_id)
            return
        self._ran = call.name
        inner = ToolRun(call, call.tool, self._limits)
        self._inside.append(inner)
        if self._is_interrupted:  # a layer that tries again does not undo that
            inner.interrupt()
        try:
            while not isinstance(item := await inner.next(), ToolResult):
                yield item
        finally:
            self._inside.remove(inner)
            await inner.close()
        if self._is_interrupted and item.is_interrupted:
            self._has_been_interrupted = True
        yield item

    # More patient: what is inside may need all of its own time to end.
    def _made_drive(self) -> Drive:
        return Drive(None, self._limits.cancel_grace * 2, self._mark)

    def _closing_drive(self) -> Drive:
        return Drive(self._limits.cancel_grace * 3, self._limits.cancel_grace * 2, self._mark)

    async def _step(self) -> Item:
        if self._stream is None:
            self._so_far = ChunkAccumulator(self._limits)
            self._stream = self._handler(self.call)
        so_far = self._so_far or ChunkAccumulator(self._limits)
        async for item in self._stream:
            if isinstance(item, ToolChunk):
                return replace(so_far.add(item), call_id=self.call_id)
            # Not returned yet: what a layer does after its last item is still to be done.
            self._result = to_result(item, self.call_id)
        await self.close()  # a layer that broke off may have left something open
        if self._result is not None:
            return limit_result(self._marked(self._result), self._limits)
        if not so_far.count:
            raise TypeError("the middleware yielded nothing")
        return self._marked(so_far.result(self.call_id))

    def _marked(self, result: ToolResult) -> ToolResult:
        """Say that the tool was interrupted, whatever the layers made of its result."""
        if not self._has_been_interrupted or result.is_interrupted:
            return result
        told = self._told_of(End.INTERRUPTED)
        content = (*result.content, *told.content)
        return replace(
            told, content=content, structured=result.structured, metadata=result.metadata
        )

    def _taken(self) -> tuple[Any, ...]:
        self._stream, opened = None, tuple(self._opened)
        self._opened.clear()
        # The outermost first; what has ended already has no frame.
        return tuple(items for items in opened if getattr(items, "ag_frame", items) is not None)

    async def _last(self, last: ToolResult) -> ToolResult:
        self._result = None
        return await super()._last(last)
