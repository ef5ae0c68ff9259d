"""Open the handler inside a middleware, so that it is closed whatever happens."""

import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from satchel.runtime.middleware_chain import Handler
from satchel.tools import Item, ToolCall


class opened:  # noqa: N801 - used like the context managers of contextlib
    """Call a handler, and close its iterator when the block is left.

    After `break`, a bare `async for` leaves a generator suspended until it is collected.
    """

    __slots__ = ("_items",)

    def __init__(self, inner: Handler, call: ToolCall) -> None:
        self._items = inner(call)

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        await close(self._items)


async def close(items: AsyncIterator[Any]) -> None:
    """Close the iterator of a handler, if it can be closed."""
    if aclose := getattr(items, "aclose", None):
        await aclose()


def first_of(items: AsyncIterator[Any]) -> Awaitable[Any]:
    """Ask a generator for its first item without registering it with the event loop.

    A loop that ends closes its registered generators and waits for them, so an endless one would
    block it. The caller closes the generator.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return items.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)
