"""What its owner does with a tool's result before anybody sees it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall, ToolResult, to_result
from satchel.tools.callables import called


def postprocess(fn: Callable[..., Any]) -> Middleware:
    """Make a layer that calls `fn(call, result)`; what that returns takes the result's place.

    `None` keeps the result.
    """

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        async with opened(inner, call) as items:
            async for item in items:
                if not isinstance(item, ToolResult):
                    yield item
                    continue
                made = await called(fn, call, item)
                yield item if made is None else to_result(made, item.call_id)

    return layer
