"""The `postprocess` function of a tool, as middleware."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall, ToolResult, to_result
from satchel.tools.callables import called


def postprocess(fn: Callable[..., Any]) -> Middleware:
    """Return middleware that calls `fn(call, result)` and yields what that returns instead.

    If it returns `None`, the result stays.
    """

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        async with opened(inner, call) as items:
            async for item in items:
                if not isinstance(item, ToolResult):
                    yield item
                    continue
                value = await called(fn, call, item)
                yield item if value is None else to_result(value, item.call_id)

    return middleware
