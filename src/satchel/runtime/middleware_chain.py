"""Middleware: async generators around a call; the first in a list is the outermost."""

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import Item, Tool, ToolCall

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


FindTool = Callable[[str], tuple[Tool, tuple[str, ...]] | None]
"""Returns a tool that the model may call, and its groups, by the name of the tool."""


@dataclass(slots=True)
class MiddlewareFrame:
    """What the middleware of a running call needs; emptied when the call has ended.

    It may live on with a handler that middleware keeps.
    """

    find: FindTool
    opened: list[AsyncIterator[Item]]
    """The iterators that middleware opened, to be closed at the end; the outermost first."""


def find_no_tool(_name: str) -> None:
    """Return `None`: without a session, a call cannot be redirected."""


def wrap(
    handler: Handler, middleware: Iterable[Middleware], frame: MiddlewareFrame | None = None
) -> Handler:
    """Return a handler inside middleware.

    Middleware may redirect a call to another tool. The middleware further inside gets that tool.
    """
    for outer in reversed(tuple(middleware)):
        handler = _inside(outer, handler, frame)
    return handler


def redirected(call: ToolCall, find: FindTool) -> ToolCall:
    """Return a call with the tool that its name refers to."""
    if call.tool is not None and call.tool.name == call.name:
        return call
    tool, groups = find(call.name) or (None, ())
    return call.changed(tool=tool, groups=groups, approved=False)  # it was of the first tool


def _inside(outer: Middleware, inner: Handler, frame: MiddlewareFrame | None) -> Handler:
    def handler(call: ToolCall) -> AsyncIterator[Item]:
        if frame is None:  # used without a call, as in a test
            return outer(call, inner)
        items = outer(redirected(call, frame.find), inner)
        frame.opened.append(items)
        return items

    return handler
