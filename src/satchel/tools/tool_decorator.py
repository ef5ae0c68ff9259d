"""`@tool`: mark a function as a tool and leave it as it is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from satchel.errors import DefinitionError
from satchel.names import near_misses
from satchel.tools.signatures import beneath_partials, signature_of, where

_MARK = "__satchel_tool__"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """What `@tool` was told; `None` leaves the choice to the function."""

    name: str | None = None
    description: str | None = None
    group: str | Sequence[str] | None = None
    timeout: float | None = None
    state: tuple[str, ...] = ()
    idempotent: bool = False
    remember: str = "turn"
    blocking: bool | None = None
    background: bool = False
    annotations: Mapping[str, Any] | None = None
    examples: Sequence[Mapping[str, Any]] | None = None


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    state: Iterable[str] = (),
    idempotent: bool = False,
    remember: str = "turn",
    blocking: bool | None = None,
    group: str | Sequence[str] | None = None,
    timeout: float | None = None,
    annotations: Mapping[str, Any] | None = None,
    background: bool = False,
    examples: Sequence[Mapping[str, Any]] | None = None,
) -> Callable[[F], F]: ...


def tool(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    state: Iterable[str] = (),
    idempotent: bool = False,
    remember: str = "turn",
    blocking: bool | None = None,
    group: str | Sequence[str] | None = None,
    timeout: float | None = None,
    annotations: Mapping[str, Any] | None = None,
    background: bool = False,
    examples: Sequence[Mapping[str, Any]] | None = None,
) -> Any:
    """Mark a function as a tool; it stays the same function and can be called as before.

    `state` names parameters that the plugin's configuration fills in; the model does not see
    them. A repeated call of an `idempotent` tool is answered from memory, which lasts for one turn
    of the user, or with `remember="session"` for the whole session. A function that is not async
    runs in a thread unless it says `blocking=False`: then it must be quick.
    `group` is one group or several.
    `annotations` are hints in the words of MCP, such as `readOnlyHint`. A `background` tool
    answers at once with the id of a task. `examples` are arguments as a model would send them;
    `satchel test` calls the tool with each, and no model sees them.

    Raises `DefinitionError` for a name in `state` that is no parameter. The other options are
    judged when the tool is made of it, not here: a bad name must cost its plugin that one tool,
    not the import of the whole module.
    """
    fields = (state,) if isinstance(state, str) else tuple(state)
    options = ToolOptions(
        name=name,
        description=description,
        group=group,
        timeout=timeout,
        state=fields,
        idempotent=idempotent,
        remember=remember,
        blocking=blocking,
        background=background,
        annotations=annotations,
        examples=examples,
    )
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
    if options.state:
        require_parameters(target, options.state, "state names")
    try:
        setattr(target, _MARK, options)
    except (AttributeError, TypeError) as problem:
        raise DefinitionError(
            f"@tool cannot mark {fn!r}", fix="give it to FunctionTool instead"
        ) from problem
    return fn


def require_parameters(fn: Callable[..., Any], names: Iterable[str], who: str) -> None:
    """Raise `DefinitionError` for the first name that is no parameter of a callable."""
    signature = signature_of(fn)
    known = [item.name for item in signature.parameters]
    for name in names:
        if name not in known and signature.var_keyword is None:
            near = near_misses(name, known)
            raise DefinitionError(
                f"{who} {name!r}, which is no parameter of the function",
                where=where(fn),
                fix=f"did you mean {', '.join(near)}?"
                if near
                else f"it has {', '.join(known) or 'none'}",
            )
