"""The pipeline of one call: its middleware, and the function inside it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.runtime.answer_memory import AnswerMemory, answer_from
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.call_messages import EndReason
from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.postprocess import postprocess
from satchel.runtime.prepared_tool import PreparedTool
from satchel.runtime.result_limits import limit_result
from satchel.runtime.tool_run import FunctionRun, validated
from satchel.tools import Item, Tool, ToolCall, ToolChunk, ToolResult, failure, to_result

if TYPE_CHECKING:
    from satchel.runtime.call_task import CallTask


class CallScope:
    """Services of a session for middleware. This base class is for a call without a session."""

    def find(self, name: str) -> PreparedTool | None:
        """Return a tool to which a call may be redirected."""

    def answers(self) -> AnswerMemory:
        """Return the remembered results of tools that are remembered."""
        return AnswerMemory()

    def tasks(self) -> BackgroundTasks:
        """Return the background tasks."""
        return BackgroundTasks()


class MiddlewareRun:
    """One run of a function inside its middleware, in the task of a call."""

    def __init__(self, owner: "CallTask", call: ToolCall) -> None:
        self._owner, self._call, self._scope = owner, call, owner.scope or CallScope()
        self.is_over = False
        """Whether `aclose` was called."""
        self._result: ToolResult | None = None
        self._items: AsyncIterator[Item] | None = None
        # What is closed at the end, the outermost first.
        self._opened: list[Any] = []
        self._functions: list[FunctionRun] = []

    async def __anext__(self) -> Item:
        """Return the next chunk, or the result."""
        owner = self._owner
        if self._items is None:
            handler = self._inside(owner.prepared.middleware, self._run_tool)
            self._items = handler(self._call)
        async for item in self._items:
            if isinstance(item, ToolChunk):
                owner.chunks = owner.chunks or ChunkAccumulator(owner.prepared.limits)
                return owner.chunks.add(item, owner.call_id)
            # Not returned yet: middleware may run code after its last item.
            self._result = item
        if (result := self._result) is not None:
            if result is not owner.function_result:  # middleware may return any value
                result = limit_result(to_result(result, owner.call_id), owner.prepared.limits)
            return self._mark_interrupted(result) if owner.is_interrupted else result
        if owner.chunks is None:
            raise TypeError("the middleware yielded nothing")
        return self._mark_interrupted(owner.chunks.result(owner.call_id))

    def cancel(self, reason: EndReason) -> bool:
        """Cancel the functions that run now; middleware may run several at once."""
        return True in [function.cancel(reason) for function in self._functions]

    def start_clock(self) -> None:
        """Start the time limits of the functions that run now."""
        for function in self._functions:
            function.start_clock()

    async def aclose(self) -> None:
        """Close what the middleware opened."""
        self.is_over = True
        opened, functions = self._opened, self._functions
        # Released: middleware may keep a handler, and with it this object.
        self._opened, self._functions, self._scope = [], [], CallScope()
        for items in opened:
            if getattr(items, "ag_frame", items) is not None:  # no async generator that has ended
                await _close(items)
        for function in functions:
            if not function.is_over:
                await function.aclose()

    def _inside(self, middleware: Sequence[Middleware], handler: Handler) -> Handler:
        """Return a handler inside middleware; the first is the outermost."""
        for outer in reversed(middleware):
            handler = partial(self._enter, outer, handler)
        return handler

    def _enter(self, outer: Middleware, inner: Handler, call: ToolCall) -> AsyncIterator[Item]:
        """Start middleware for a call, which middleware outside may have redirected."""
        items = outer(self._redirected(call), inner)
        self._opened.append(items)
        return items

    def _redirected(self, call: ToolCall) -> ToolCall:
        """Return a call with the tool that its name refers to."""
        if call.tool is not None and call.tool.name == call.name:
            return call
        target = self._scope.find(call.name)
        tool, groups = (target.tool, target.groups) if target else (None, ())
        # The approval was for the first tool.
        return call.changed(tool=tool, groups=groups, approved=False)

    def _run_tool(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the tool that a call names, inside the middleware that belongs to that tool."""
        prepared, is_first = self._owner.prepared, call.tool is self._call.tool
        if is_first and call.name == self._call.name and not prepared.has_inner:
            return self._function(call)
        call = self._redirected(call)
        if call.tool is None:
            return self._tool_not_found(call)
        inside: list[Middleware] = []
        if call.tool.name != prepared.tool.name:
            # A redirected call must not bypass the middleware of the tool that it reaches.
            outside = prepared.middleware
            prepared = self._prepared(call, call.tool)
            inside += [item for item in prepared.middleware if item not in outside]
        if prepared.is_background:
            return self._inside(inside, self._start_in_background)(call)
        if prepared.is_remembered:
            inside.append(answer_from(self._scope.answers()))
        if prepared.tool.postprocess is not None:
            inside.append(postprocess(prepared.tool.postprocess))
        return self._inside(inside, self._run_function)(call) if inside else self._function(call)

    def _prepared(self, call: ToolCall, tool: Tool) -> PreparedTool:
        """Return the tool of a call; one that the session does not have came from middleware."""
        owner = self._owner.prepared
        prepared = self._scope.find(call.name)
        return prepared or PreparedTool(tool=tool, limits=owner.limits, errors=owner.errors)

    async def _start_in_background(self, call: ToolCall) -> AsyncIterator[Item]:
        scope, tool = self._scope, call.tool
        assert tool is not None
        validated(call, tool)  # an error is reported now, not when the task is read
        prepared = replace(self._prepared(call, tool), middleware=(), is_background=False)
        async for item in scope.tasks().start(self._owner.in_background(call, prepared)):
            yield item

    def _run_function(self, call: ToolCall) -> AsyncIterator[Item]:
        """Run the function of a call that middleware inside may have redirected once more."""
        call = self._redirected(call)
        return self._tool_not_found(call) if call.tool is None else self._function(call)

    def _function(self, call: ToolCall) -> FunctionRun:
        assert call.tool is not None
        first, function = self._call, FunctionRun(self._owner, call, call.tool)
        function.is_validated = call.arguments is first.arguments and call.tool is first.tool
        self._functions.append(function)
        return function

    async def _tool_not_found(self, call: ToolCall) -> AsyncIterator[Item]:
        yield failure("tool_not_found", f"there is no tool {call.name!r}", self._owner.call_id)

    def _mark_interrupted(self, result: ToolResult) -> ToolResult:
        """Return the result, marked as interrupted even if middleware replaced it."""
        if result.is_interrupted or not any(item.was_interrupted for item in self._functions):
            return result
        ended = self._owner.prepared.ended_early(self._owner.call, EndReason.INTERRUPTED)
        content = (*result.content, *ended.content)
        return replace(
            ended, content=content, structured=result.structured, metadata=result.metadata
        )


async def _close(items: Any) -> None:
    """Close what middleware returned: an async generator, another iterator, or a coroutine."""
    if aclose := getattr(items, "aclose", None):
        with suppress(Exception):  # the result is known already
            await aclose()
    elif hasattr(items, "send"):  # a coroutine: the middleware is not a generator
        items.close()
