"""`@tool`: mark a function as a tool and leave it as it is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from satchel.errors import DefinitionError
from satchel.names import near_misses
from satchel.tools.signatures import beneath_partials, signature_of, where

_MARK = "__satchel_tool__"

F = TypeVar("F", bound=Callable[..., Any])


class ToolOptions(TypedDict, total=False):
    """The options of a tool that is made of a function, wherever they are given.

    The function answers for itself where an option is left out or `None`.
    """

    name: str | None
    description: str | None
    group: str | Iterable[str] | None
    """One group or several."""
    presets: Mapping[str, Any] | None
    """Values for parameters that the model neither sees nor sets."""
    state: str | Iterable[str] | None
    """Names of parameters that configuration fills in; the model does not see them."""
    timeout: float | None
    """Seconds that one call may take."""
    idempotent: bool | None
    """Whether a repeated call is answered from memory."""
    remember: Literal["turn", "session"] | None
    """How long that memory lasts: one turn of the user, or the session. The default is a turn."""
    blocking: bool | None
    """`False` runs a function that is not async on the event loop: it must be quick."""
    background: bool | None
    """Whether a call answers at once with the id of a task."""
    annotations: Mapping[str, Any] | None
    """Hints in the words of MCP, such as `readOnlyHint`."""
    examples: Sequence[Mapping[str, Any]] | None
    """Arguments as a model would send them: `satchel test` calls the tool with each."""
    parameters: Mapping[str, Any] | None
    """A JSON Schema that replaces the one made of the annotations; they still coerce."""
    postprocess: Callable[..., Any] | None
    """Called with the `ToolCall` and its result; what it returns replaces the result."""
    include_long_description: bool
    """Whether the whole docstring is the description, as it is by default."""
    include_var_positional: bool
    """Whether the model sees `*args`, as a list."""
    include_var_keyword: bool
    """Whether the model sees `**kwargs`, as an object."""


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...


def tool(fn: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Mark a function as a tool; it stays the same function and can be called as before.

    Raises `DefinitionError` for a name in `state` that is no parameter. The other options are
    checked when the tool is made: a bad name costs its plugin that one tool, not the import of
    the whole module.
    """
    given = given_options(options)
    if fn is None:
        return lambda marked: _mark(marked, given)
    return _mark(fn, given)


def given_options(options: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    """Return the options that say something. Raises `TypeError` for an unknown one."""
    if unknown := options.keys() - ToolOptions.__optional_keys__:
        raise TypeError(f"unknown options of a tool: {', '.join(sorted(unknown))}")
    given = {name: value for name, value in options.items() if value is not None}
    if "state" in given:
        given["state"] = _tuple(given["state"])
    return MappingProxyType(given)


def _tuple(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def options_of(thing: object) -> Mapping[str, Any] | None:
    """Return the options that `@tool` got for a callable, also through a wrapper or a partial."""
    try:
        found = getattr(thing, _MARK, None) or getattr(beneath_partials(thing), _MARK, None)
    except Exception:
        # A lazy proxy in a plugin's module may raise at any touch; then it is no tool.
        return None
    return found if isinstance(found, MappingProxyType) else None


def _mark(fn: F, options: Mapping[str, Any]) -> F:
    # The class hands out what is inside, so the mark must be there.
    target = fn.__func__ if isinstance(fn, staticmethod | classmethod) else fn
    if isinstance(target, type) or not callable(target):
        raise DefinitionError(
            f"@tool marks functions, not {fn!r}",
            fix="decorate a function, or write a subclass of Tool and register an instance",
        )
    if "state" in options:
        require_parameters(target, options["state"], "state names")
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
