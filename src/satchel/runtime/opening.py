"""Opening what lies inside a layer, so that it is closed whatever happens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from satchel.runtime.onion import Handler
from satchel.tools import Item, ToolCall


@asynccontextmanager
async def opened(inner: Handler, call: ToolCall) -> AsyncIterator[AsyncIterator[Item]]:
    """Call a handler, and close what it gives when the block is left.

    A bare `async for` that is broken off leaves a generator suspended until it is collected.
    """
    items = inner(call)
    try:
        yield items
    finally:
        await close(items)


async def close(items: AsyncIterator[Item]) -> None:
    """Close what a handler gave, if it can be closed."""
    if aclose := getattr(items, "aclose", None):
        await aclose()
