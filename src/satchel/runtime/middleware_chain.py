"""Middleware: async generators around a call; the first in a list is the outermost."""

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import Item, ToolCall

Handler = Callable[[ToolCall], AsyncIterator[Item]]
"""Runs a call: yields chunks, and last the result."""

Middleware = Callable[[ToolCall, Handler], AsyncIterator[Item]]
"""Wraps a handler: `async for item in next(call): yield item`, and more around it."""


@dataclass(frozen=True, slots=True)
class ScopedMiddleware:
    """Middleware, and the tools or the group that it is for."""

    middleware: Middleware
    group: str | None = None
    """The group, or `None` for all groups."""
    tool: str | None = None
    """The tool, or `None` for all tools."""

    def __post_init__(self) -> None:
        if not callable(self.middleware) or inspect.iscoroutinefunction(self.middleware):
            raise DefinitionError(
                f"middleware is an async generator, not {self.middleware!r}",
                fix="write `async def name(call, next)` with `yield` in it",
            )

    @property
    def scope_rank(self) -> int:
        """The sort key: 0 for all tools, 1 for a group, 2 for one tool."""
        return 2 if self.tool is not None else int(self.group is not None)


def middleware_for(
    middleware: Iterable[ScopedMiddleware], tool: str, groups: Collection[str]
) -> tuple[Middleware, ...]:
    """Return the middleware of one tool: first of all tools, then of its group, then its own."""
    matching = [
        item
        for item in middleware
        if item.tool in {None, tool} and (item.group is None or item.group in groups)
    ]
    return tuple(item.middleware for item in sorted(matching, key=lambda item: item.scope_rank))
