"""The way of one call: the middleware around it, and the function at the bottom."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from satchel.runtime.answer_memory import AnswerMemory, answer_from
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.call_task import CallTask, EndReason
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.middleware_chain import (
    AROUND,
    Find,
    Handler,
    Middleware,
    MiddlewareFrame,
    nowhere,
    redirected,
    wrap,
)
from satchel.runtime.postprocess import postprocess
from satchel.runtime.result_limits import limit_result
from satchel.runtime.tool_run import FunctionRun, checked
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolResult, failure, to_result

LayersOf = Callable[[str, Collection[str]], Sequence[Middleware]]
"""Tells what stands around a tool, by its name and groups."""


def no_layers(_tool: str, _groups: Collection[str]) -> Sequence[Middleware]:
    """Put nothing around any tool."""
    return ()


def begin(
    call: ToolCall,
    tool: Tool,
    limits: Limits,
    *,
    layers: Sequence[Middleware] = (),
    layers_of: LayersOf = no_layers,
    find: Find = nowhere,
    answers: AnswerMemory | None = None,
    tasks: BackgroundTasks | None = None,
) -> CallTask:
    """Return a call that is ready to run.

    `layers` stand around it; `layers_of` are those of a tool that one of them sends it to.
    """
    if call.tool is None:
        call = replace(call, tool=tool)
    is_plain = not ((tool.background and tasks is not None) or _layers_of(tool, answers))
    if is_plain and not layers:
        return CallTask(call, tool, limits, lambda owner: FunctionRun(owner, call, tool))

    def inside(bottom: Handler, call: ToolCall) -> AsyncIterator[Item]:
        # A layer may have sent the call to another tool, which has its own ways.
        call = redirected(call, find)
        if call.tool is None or (call.tool is tool and is_plain):
            return bottom(call)
        others: tuple[Middleware, ...] = ()
        if call.name != tool.name:
            # Nobody gets around the layers of one tool by way of another.
            others = tuple(m for m in layers_of(call.name, call.groups) if m not in layers)
        if call.tool.background and tasks is not None:
            run = partial(begin, tool=call.tool, limits=limits, find=find, answers=answers)
            return wrap(lambda call: _in_background(tasks, call, run), others)(call)
        return wrap(bottom, (*others, *_layers_of(call.tool, answers)))(call)

    def source(owner: CallTask) -> MiddlewareRun:
        return MiddlewareRun(owner, lambda bottom: wrap(partial(inside, bottom), layers), find)

    return CallTask(call, tool, limits, source, has_middleware=True)


async def run_call(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    """Run a tool once, with nothing around it."""
    return await begin(call, tool, limits).result()


async def _in_background(
    tasks: BackgroundTasks, call: ToolCall, run: Callable[[ToolCall], CallTask]
) -> AsyncIterator[Item]:
    assert call.tool is not None
    checked(call, call.tool)  # said now, and not when somebody asks for the task
    async for item in tasks.start(run(call)):
        yield item


def _layers_of(tool: Tool, answers: AnswerMemory | None) -> tuple[Middleware, ...]:
    """Return what a tool itself asks to stand around it."""
    layers: tuple[Middleware, ...] = ()
    if tool.idempotent and answers is not None:
        layers += (answer_from(answers),)
    if tool.postprocess is not None:
        layers += (postprocess(tool.postprocess),)
    return layers


class MiddlewareRun:
    """One run of a function inside its middleware, in the task of a call."""

    so_far: ChunkAccumulator | None = None
    _result: ToolResult | None = None
    _function_result: ToolResult | None = None
    _has_been_interrupted = False

    def __init__(self, owner: CallTask, layered: Callable[[Handler], Handler], find: Find) -> None:
        self._owner, self._handler, self._find = owner, layered(self._open_bottom), find
        self._around = MiddlewareFrame(find, [])
        self._items: AsyncIterator[Item] | None = None

    async def next(self) -> Item:
        """Return the next chunk, or the result."""
        owner = self._owner
        if self._items is None:
            # Middleware sees what the function gets.
            owner.call = checked(owner.call, owner.tool)
            AROUND.set(self._around)
            self._items = self._handler(owner.call)
        async for item in self._items:
            if isinstance(item, ToolChunk):
                self.so_far = self.so_far or ChunkAccumulator(owner.limits)
                return replace(self.so_far.add(item), call_id=owner.call_id)
            # Not returned yet: a layer may do something after its last item.
            self._result = item
        if (result := self._result) is not None:
            if result is not self._function_result:
                result = to_result(result, owner.call_id)
            return limit_result(self._marked(result), owner.limits)
        if self.so_far is None:
            raise TypeError("the middleware yielded nothing")
        return self._marked(self.so_far.result(owner.call_id))

    async def close(self) -> None:
        """Close what the middleware opened, the outermost first."""
        opened: list[Any] = self._around.opened
        self._around.find, self._around.opened = nowhere, []
        for items in opened:
            if aclose := getattr(items, "aclose", None):
                with suppress(Exception):  # it was asked to end; how it does is its affair
                    await aclose()
            elif hasattr(items, "send"):  # a coroutine, of a layer that is no generator
                items.close()

    def _open_bottom(self, call: ToolCall) -> AsyncIterator[Item]:
        items = self._bottom(call)
        self._around.opened.append(items)
        return items

    async def _bottom(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the function itself."""
        owner, call = self._owner, redirected(call, self._find)
        if call.tool is None:
            yield failure("tool_not_found", f"there is no tool {call.name!r}", owner.call_id)
            return
        owner.answered_by = call.name
        # What middleware changed is checked like what a model sends.
        is_checked = call.arguments is owner.call.arguments and call.tool is owner.tool
        run = FunctionRun(owner, call, call.tool, is_checked=is_checked)
        try:
            while not isinstance(item := await run.next(), ToolResult):
                yield item
        finally:
            await run.close()
        self._has_been_interrupted |= item.is_interrupted and owner.reason is not None
        self._function_result = item
        yield item

    def _marked(self, result: ToolResult) -> ToolResult:
        """Say that the tool was interrupted, whatever the middleware made of its result."""
        if not self._has_been_interrupted or result.is_interrupted:
            return result
        ended = self._owner.ended(EndReason.INTERRUPTED)
        content = (*result.content, *ended.content)
        return replace(
            ended, content=content, structured=result.structured, metadata=result.metadata
        )
