"""The decorator `@tool`: it marks a function as a tool and does not change it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from satchel.errors import DefinitionError
from satchel.names import near_misses
from satchel.tools.signatures import beneath_partials, signature_of, where

_MARK = "__satchel_tool__"

F = TypeVar("F", bound=Callable[..., Any])


class ToolOptions(TypedDict, total=False):
    """The options of a tool that is made from a function.

    If an option is missing or `None`, the default comes from the function.
    """

    name: str | None
    description: str | None
    group: str | Iterable[str] | None
    """The name of its group, or of several."""
    presets: Mapping[str, Any] | None
    """Fixed values of parameters; the model does not see these parameters."""
    state: str | Iterable[str] | None
    """Names of parameters that get their values from configuration; the model does not see them."""
    timeout: float | None
    """Seconds that one call may take."""
    idempotent: bool | None
    """Whether a repeated call is answered from memory."""
    remember: Literal["turn", "session"] | None
    """How long that memory lasts: one `turn` of the user (the default), or the `session`."""
    blocking: bool | None
    """`False` runs a function that is not async on the event loop; it must be quick."""
    runner: str | None
    """The name of a runner of the host, such as `"remote"`, that runs it elsewhere."""
    background: bool | None
    """Whether a call starts a background task and returns its id."""
    annotations: Mapping[str, Any] | None
    """MCP tool annotations, such as `readOnlyHint`."""
    examples: Sequence[Mapping[str, Any]] | None
    """Arguments as a model would send them; `satchel test` calls the tool with each."""
    parameters: Mapping[str, Any] | None
    """A JSON Schema that replaces the generated one; the annotations still coerce arguments."""
    postprocess: Callable[..., Any] | None
    """A function of the `ToolCall` and its result; its return value replaces the result."""
    include_long_description: bool
    """Whether the description is the whole docstring (the default) or its first paragraph."""
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

    Raises `DefinitionError` if a name in `state` is not a parameter. The other options are checked
    later: an invalid one fails this tool only, and not the import of the plugin's module.
    """
    chosen = given_options(options)
    if fn is None:
        return lambda function: _mark(function, chosen)
    return _mark(fn, chosen)


def given_options(options: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    """Return the options that are not `None`. Raises `TypeError` for an unknown one."""
    if unknown := options.keys() - ToolOptions.__optional_keys__:
        raise TypeError(f"unknown options of a tool: {', '.join(sorted(unknown))}")
    chosen = {name: value for name, value in options.items() if value is not None}
    if "state" in chosen:
        names = chosen["state"]
        chosen["state"] = (names,) if isinstance(names, str) else tuple(names)
    return MappingProxyType(chosen)


def options_of(value: object) -> Mapping[str, Any] | None:
    """Return the options of a callable with `@tool`, also in a wrapper or partial, or `None`."""
    try:
        options = getattr(value, _MARK, None) or getattr(beneath_partials(value), _MARK, None)
    except Exception:
        # A lazy proxy in a plugin's module may raise on any access; it is not a tool.
        return None
    return options if isinstance(options, MappingProxyType) else None


def _mark(fn: F, options: Mapping[str, Any]) -> F:
    # Access through the class returns the function inside, so that gets the mark.
    target = fn.__func__ if isinstance(fn, staticmethod | classmethod) else fn
    if isinstance(target, type) or not callable(target):
        raise DefinitionError(
            f"@tool needs a function, not {fn!r}",
            fix="decorate a function, or write a subclass of Tool and register an instance",
        )
    if "state" in options:
        require_parameters(target, options["state"], "state names")
    try:
        setattr(target, _MARK, options)
    except (AttributeError, TypeError) as problem:
        raise DefinitionError(
            f"@tool cannot mark {fn!r}", fix="pass it to FunctionTool instead"
        ) from problem
    return fn


def require_parameters(fn: Callable[..., Any], names: Iterable[str], subject: str) -> None:
    """Raise `DefinitionError` for the first name that is not a parameter of a callable.

    `subject` begins the message, such as `"state names"`.
    """
    signature = signature_of(fn)
    parameters = [item.name for item in signature.parameters]
    for name in names:
        if name not in parameters and signature.var_keyword is None:
            near = near_misses(name, parameters)
            hint = f"did you mean {', '.join(near)}?" if near else ""
            raise DefinitionError(
                f"{subject} {name!r}, which is not a parameter of the function",
                where=where(fn),
                fix=hint or f"it has {', '.join(parameters) or 'none'}",
            )
