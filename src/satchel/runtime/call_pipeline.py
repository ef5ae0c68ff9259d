"""The pipeline of one call: its middleware, and the function inside it."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from satchel.runtime.answer_memory import AnswerMemory, answer_from
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.call_task import CallTask, EndReason
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.error_results import ErrorText
from satchel.runtime.middleware_chain import (
    FindTool,
    Handler,
    Middleware,
    MiddlewareFrame,
    find_no_tool,
    redirected,
    wrap,
)
from satchel.runtime.postprocess import postprocess
from satchel.runtime.result_limits import limit_result
from satchel.runtime.tool_run import FunctionRun, validated
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolResult, failure, to_result

MiddlewareFor = Callable[[str, Collection[str]], Sequence[Middleware]]
"""Returns the middleware of a tool, by its name and groups."""


def no_middleware(_tool: str, _groups: Collection[str]) -> Sequence[Middleware]:
    """Return no middleware for any tool."""
    return ()


class CallScope(NamedTuple):
    """What surrounds a call of a session."""

    middleware: Sequence[Middleware]
    """The middleware of the called tool."""
    middleware_of: MiddlewareFor
    """Returns the middleware of another tool, to which a call may be redirected."""
    find: FindTool
    """Finds a tool by its name."""
    answers: AnswerMemory | None
    """The remembered results of idempotent tools."""
    tasks: BackgroundTasks | None
    """The background tasks of the session."""


def prepare_call(
    call: ToolCall,
    tool: Tool,
    limits: Limits,
    *,
    middleware: Sequence[Middleware] = (),
    middleware_of: MiddlewareFor = no_middleware,
    find: FindTool = find_no_tool,
    answers: AnswerMemory | None = None,
    tasks: BackgroundTasks | None = None,
    errors: ErrorText = "summary",
) -> CallTask:
    """Return a call that is ready to run.

    `middleware` is that of its tool; `middleware_of` returns that of another tool, to which the
    call may be redirected.
    """
    if call.tool is None:
        call = replace(call, tool=tool)
    needs_middleware = (
        middleware
        or tool.postprocess
        or (tool.idempotent and answers is not None)
        or (tool.background and tasks is not None)
    )
    if not needs_middleware:  # as for most calls
        return CallTask(call, tool, limits, FunctionRun, errors=errors)
    scope = CallScope(middleware, middleware_of, find, answers, tasks)
    source = partial(MiddlewareRun, scope)
    return CallTask(call, tool, limits, source, has_middleware=True, errors=errors)


async def run_call(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    """Run a tool once, without middleware."""
    return await prepare_call(call, tool, limits).result()


class MiddlewareRun:
    """One run of a function inside its middleware, in the task of a call."""

    _result: ToolResult | None = None
    _items: AsyncIterator[Item] | None = None

    def __init__(self, scope: CallScope, owner: CallTask, _call: ToolCall, _tool: Tool) -> None:
        self._scope, self._owner = scope, owner
        self._frame = MiddlewareFrame(scope.find, [])

    async def __anext__(self) -> Item:
        """Return the next chunk, or the result."""
        owner = self._owner
        if self._items is None:
            # Middleware sees the arguments that the function gets.
            owner.call = validated(owner.call, owner.tool)
            self._items = self._inside(self._run_tool, self._scope.middleware)(owner.call)
        async for item in self._items:
            if isinstance(item, ToolChunk):
                owner.chunks = owner.chunks or ChunkAccumulator(owner.limits)
                return owner.chunks.add(item, owner.call_id)
            # Not returned yet: middleware may run code after its last item.
            self._result = item
        if (result := self._result) is not None:
            if result is not owner.function_result:  # middleware may return any value
                result = limit_result(to_result(result, owner.call_id), owner.limits)
            return self._mark_interrupted(result)
        if owner.chunks is None:
            raise TypeError("the middleware yielded nothing")
        return self._mark_interrupted(owner.chunks.result(owner.call_id))

    async def aclose(self) -> None:
        """Close what the middleware opened, the outermost first."""
        opened: list[Any] = self._frame.opened
        self._frame.find, self._frame.opened = find_no_tool, []
        for items in opened:
            if getattr(items, "ag_frame", items) is None:
                continue  # a generator that has ended
            if aclose := getattr(items, "aclose", None):
                with suppress(Exception):  # the result is known already
                    await aclose()
            elif hasattr(items, "send"):  # a coroutine: the middleware is not a generator
                items.close()

    def _run_tool(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the tool that a call names, inside the middleware that belongs to that tool."""
        call = redirected(call, self._scope.find)
        tool = call.tool
        if tool is None:  # the result will be the error `tool_not_found`
            return self._run_function(call)
        inside: list[Middleware] = []
        if tool.name != self._owner.tool.name:
            # A redirected call must not bypass the middleware of the tool that it reaches.
            target_middleware = self._scope.middleware_of(call.name, call.groups)
            inside += [item for item in target_middleware if item not in self._scope.middleware]
        if tool.background and self._scope.tasks is not None:
            return self._inside(self._start_in_background, inside)(call)
        if tool.idempotent and self._scope.answers is not None:
            inside.append(answer_from(self._scope.answers))
        if tool.postprocess is not None:
            inside.append(postprocess(tool.postprocess))
        return self._inside(self._run_function, inside)(call)

    def _inside(self, handler: Handler, middleware: Sequence[Middleware]) -> Handler:
        return wrap(handler, middleware, self._frame)

    async def _start_in_background(self, call: ToolCall) -> AsyncIterator[Item]:
        tool, tasks, limits = call.tool, self._scope.tasks, self._owner.limits
        assert tool is not None
        assert tasks is not None
        validated(call, tool)  # an error is reported now, not when the task is read
        run = prepare_call(
            call,
            tool,
            limits,
            find=self._scope.find,
            answers=self._scope.answers,
            errors=self._owner.errors,
        )
        run.route = self._owner.route
        async for item in tasks.start(run):
            yield item

    def _run_function(self, call: ToolCall) -> AsyncIterator[Item]:
        owner, call = self._owner, redirected(call, self._scope.find)
        items: AsyncIterator[Item]
        if call.tool is None:
            items = self._tool_not_found(call)
        else:
            # Arguments that middleware changed are validated like those of a model.
            is_validated = call.arguments is owner.call.arguments and call.tool is owner.tool
            items = FunctionRun(owner, call, call.tool, is_validated=is_validated)
        self._frame.opened.append(items)
        return items

    async def _tool_not_found(self, call: ToolCall) -> AsyncIterator[Item]:
        yield failure("tool_not_found", f"there is no tool {call.name!r}", self._owner.call_id)

    def _mark_interrupted(self, result: ToolResult) -> ToolResult:
        """Return the result, marked as interrupted even if middleware replaced it."""
        if not self._owner.was_interrupted or result.is_interrupted:
            return result
        ended = self._owner.early_result(EndReason.INTERRUPTED)
        content = (*result.content, *ended.content)
        return replace(
            ended, content=content, structured=result.structured, metadata=result.metadata
        )
