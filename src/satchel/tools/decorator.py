"""`@tool`: mark a function as a tool and leave it as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from satchel.errors import DefinitionError
from satchel.tools.signature import beneath_partials

_MARK = "__satchel_tool__"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What `@tool` was told; `None` leaves the choice to the function."""

    name: str | None = None
    description: str | None = None
    group: str | None = None
    timeout: float | None = None


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    group: str | None = None,
    timeout: float | None = None,
) -> Callable[[F], F]: ...


def tool(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    group: str | None = None,
    timeout: float | None = None,
) -> Any:
    """Mark a function as a tool; it stays the same function and can be called as before.

    The options are judged when the tool is made of it, not here: a bad name must cost its
    plugin that one tool, not the import of the whole module.
    """
    options = ToolOptions(name, description, group, timeout)
    if fn is None:
        return lambda marked: _mark(marked, options)
    return _mark(fn, options)


def options_of(thing: object) -> ToolOptions | None:
    """Return what `@tool` was told about a callable, also through a wrapper or a partial."""
    try:
        found = getattr(thing, _MARK, None) or getattr(beneath_partials(thing), _MARK, None)
    except Exception:
        # A lazy proxy in a plugin's module may raise at any touch; then it is no tool.
        return None
    return found if isinstance(found, ToolOptions) else None


def _mark(fn: F, options: ToolOptions) -> F:
    # The class hands out what is inside, so the mark must be there.
    target = fn.__func__ if isinstance(fn, staticmethod | classmethod) else fn
    if isinstance(target, type) or not callable(target):
        raise DefinitionError(
            f"@tool marks functions, not {fn!r}",
            fix="decorate a function, or write a subclass of Tool and register an instance",
        )
    try:
        setattr(target, _MARK, options)
    except (AttributeError, TypeError) as problem:
        raise DefinitionError(
            f"@tool cannot mark {fn!r}", fix="give it to FunctionTool instead"
        ) from problem
    return fn
