"""Opening what lies inside a layer, so that it is closed whatever happens."""

import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from satchel.runtime.middleware_chain import Handler
from satchel.tools import Item, ToolCall


class opened:  # noqa: N801 - used like the context managers of contextlib
    """Call a handler, and close what it gives when the block is left.

    A bare `async for` that is broken off leaves a generator suspended until it is collected.
    """

    __slots__ = ("_items",)

    def __init__(self, inner: Handler, call: ToolCall) -> None:
        self._items = inner(call)

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        await close(self._items)


async def close(items: AsyncIterator[Any]) -> None:
    """Close what a handler gave, if it can be closed."""
    if aclose := getattr(items, "aclose", None):
        await aclose()


def first_of(items: AsyncIterator[Any]) -> Awaitable[Any]:
    """Ask a generator for its first item without the event loop knowing of it.

    A loop closes what generators are left when it ends, and waits for that, so one that goes on
    for ever would hold it up. Whoever asks here closes the generator.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return items.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)
