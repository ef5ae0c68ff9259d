"""Middleware: layers around a call, each an async generator, the first listed outermost."""

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass

from satchel.errors import DefinitionError
from satchel.tools import Item, Tool, ToolCall

Handler = Callable[[ToolCall], AsyncIterator[Item]]
"""What runs a call: yields chunks, and last of all the result."""

Middleware = Callable[[ToolCall, Handler], AsyncIterator[Item]]
"""What stands around a handler: `async for item in next(call): yield item`, and what it adds."""


@dataclass(frozen=True, slots=True)
class ScopedMiddleware:
    """Middleware, and whose calls it stands around."""

    middleware: Middleware
    group: str | None = None
    """The one group, or `None` for any."""
    tool: str | None = None
    """The one tool, or `None` for any."""

    def __post_init__(self) -> None:
        if not callable(self.middleware) or inspect.iscoroutinefunction(self.middleware):
            raise DefinitionError(
                f"middleware is an async generator, not {self.middleware!r}",
                fix="write `async def name(call, next)` with `yield` in it",
            )

    @property
    def breadth(self) -> int:
        """How much it stands around: 0 for everything, 1 for a group, 2 for a tool."""
        return 2 if self.tool is not None else int(self.group is not None)


def layers_for(
    layers: Iterable[ScopedMiddleware], tool: str, groups: Collection[str]
) -> tuple[Middleware, ...]:
    """Choose the layers around one tool: the broadest outermost, else in the order they came."""
    fitting = [
        layer
        for layer in layers
        if layer.tool in {None, tool} and (layer.group is None or layer.group in groups)
    ]
    return tuple(layer.middleware for layer in sorted(fitting, key=lambda layer: layer.breadth))


Find = Callable[[str], tuple[Tool, tuple[str, ...]] | None]
"""Finds a tool that the model may call, and its groups, by the tool's name."""


@dataclass(slots=True)
class MiddlewareFrame:
    """What middleware of a running call needs to know of it; emptied when the call has ended.

    Contexts may live for long: a background task keeps the one it was started in.
    """

    find: Find
    opened: list[AsyncIterator[Item]]
    """What each middleware opened, so that it is closed in the end; the outermost first."""


def nowhere(_name: str) -> None:
    """Find nothing: what stands alone knows no other tools."""


AROUND: ContextVar[MiddlewareFrame] = ContextVar("satchel.runtime.around")
"""Those of the call whose task this is."""


def wrap(handler: Handler, layers: Iterable[Middleware]) -> Handler:
    """Put layers around a handler.

    A layer may send a call to another tool; those inside it are told of that tool.
    """
    for layer in reversed(tuple(layers)):
        handler = _around(layer, handler)
    return handler


def redirected(call: ToolCall, find: Find) -> ToolCall:
    """Return a call with the tool that it names."""
    if call.tool is not None and call.tool.name == call.name:
        return call
    tool, groups = find(call.name) or (None, ())
    return call.changed(tool=tool, groups=groups)


def _around(layer: Middleware, inner: Handler) -> Handler:
    def handler(call: ToolCall) -> AsyncIterator[Item]:
        around = AROUND.get(None)
        if around is None:  # tried by itself, outside of any call
            return layer(call, inner)
        items = layer(redirected(call, around.find), inner)
        around.opened.append(items)
        return items

    return handler
