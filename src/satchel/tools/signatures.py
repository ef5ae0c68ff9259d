"""The parameters of any callable, with their annotations resolved."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, Unpack, get_args, get_origin, get_type_hints

from satchel.errors import DefinitionError
from satchel.tools.tool_context import ToolContext

REQUIRED: Any = inspect.Parameter.empty
"""Stands as the default of a parameter that has none."""

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
_NAMED = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter; the annotation is as written until `resolved`."""

    name: str
    annotation: Any
    default: Any
    positional_only: bool
    positional: bool = False
    """Whether it may be given by its position."""
    holds: type | None = None
    """`list` for `*args` and `dict` for `**kwargs`: what the annotation is about an item of."""

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a callable wants to be called, without what a partial already fills in."""

    parameters: tuple[Parameter, ...]
    bound: frozenset[str]
    """Names that a partial gives a value; they are the host's."""
    taken: frozenset[str] = frozenset()
    """Names that already have a value by their place, such as `self` in a bound method."""
    var_positional: Parameter | None = None
    var_keyword: Parameter | None = None

    @property
    def has_places(self) -> bool:
        """Whether some parameters cannot be given by name."""
        return any(item.positional_only for item in self.parameters)

    @property
    def names(self) -> frozenset[str]:
        """Names that nothing in `**kwargs` may have, because something else has them."""
        return self.bound.union(self.taken, (item.name for item in self.parameters))

    def place(
        self, values: Mapping[str, Any], spread: Iterable[Parameter] = ()
    ) -> tuple[list[Any], dict[str, Any]]:
        """Sort named values into positional and keyword arguments.

        `spread` are those of `*args` and `**kwargs` that are among the values, under their names.
        """
        keywords, more, further = dict(values), [], {}
        for item in spread:
            if item.holds is list:
                more = keywords.pop(item.name, [])
            else:
                further = keywords.pop(item.name, {})
        positional = []
        for item in self.parameters:
            if item.positional_only or (more and item.positional):
                # One can be left out only at the end, so defaults fill the gaps.
                value = keywords.pop(item.name, item.default)
                if value is REQUIRED:
                    break  # Python says best what is missing.
                positional.append(value)
        return [*positional, *more], {**further, **keywords}


def where(fn: Callable[..., Any]) -> str:
    """Name a callable so that its author finds it, without trusting its `repr`."""
    function = innermost(fn)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '?'}.{name}"


def name_and_docstring(fn: Callable[..., Any]) -> tuple[str, str | None]:
    """Return what a callable calls itself and says of itself."""
    name = getattr(beneath_partials(fn), "__name__", None) or type(fn).__name__
    return str(name), innermost(fn).__doc__ or beneath_partials(fn).__doc__


def innermost(fn: Any) -> Any:
    """Return the function that runs: beneath partials, and in place of a callable object."""
    fn = beneath_partials(fn)
    return fn if hasattr(fn, "__name__") else fn.__call__


def signature_of(fn: Callable[..., Any]) -> Signature:
    """Read the parameters of a callable."""
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError) as problem:
        raise DefinitionError("its parameters cannot be read", where=where(fn)) from problem
    by_kind: dict[Any, list[Parameter]] = {}
    for item in found:
        by_kind.setdefault(item.kind, []).append(_parameter(item))
    more = by_kind.pop(inspect.Parameter.VAR_POSITIONAL, [None])[0]
    rest = by_kind.pop(inspect.Parameter.VAR_KEYWORD, [None])[0]
    parameters = tuple(parameter for several in by_kind.values() for parameter in several)
    bound = frozenset(fn.keywords if isinstance(fn, partial) else ())
    taken = _all_names(fn).difference(bound, (item.name for item in parameters))
    return Signature(
        parameters=parameters, bound=bound, taken=taken, var_positional=more, var_keyword=rest
    )


def _all_names(fn: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters that a function has beneath partials and methods."""
    inner = innermost(fn)
    try:
        found = inspect.signature(getattr(inner, "__func__", inner)).parameters.values()
    except (TypeError, ValueError):
        return frozenset()  # Not written in Python, so it takes no `**kwargs`.
    return frozenset(item.name for item in found if item.kind in _NAMED)


def _parameter(item: inspect.Parameter) -> Parameter:
    kind: type | None = None
    default = item.default
    if item.kind is inspect.Parameter.VAR_POSITIONAL:
        kind, default = list, ()
    elif item.kind is inspect.Parameter.VAR_KEYWORD:
        kind, default = dict, {}
    return Parameter(
        name=item.name,
        annotation=item.annotation,
        default=default,
        positional_only=item.kind is inspect.Parameter.POSITIONAL_ONLY,
        positional=item.kind in _POSITIONAL,
        holds=kind,
    )


def resolve_annotation(fn: Callable[..., Any], parameter: Parameter) -> Any:
    """Return the type of a parameter, evaluated where the function was written."""
    if parameter.annotation is REQUIRED:
        found: Any = Any
    else:
        found = _evaluated(fn, parameter.name, parameter.annotation)
    if parameter.holds is list:
        return list[found]
    # `**options: Unpack[Options]` describes all of them, not each.
    if parameter.holds is dict:
        return get_args(found)[0] if get_origin(found) is Unpack else dict[str, found]
    return found


def return_annotation(fn: Callable[..., Any]) -> Any:
    """Return the type that a callable says it returns, or `REQUIRED` if it says none."""
    annotation = getattr(_as_written(fn), "__annotations__", {}).get("return", REQUIRED)
    return annotation if annotation is REQUIRED else _evaluated(fn, "returns", annotation)


def is_context(fn: Callable[..., Any], parameter: Parameter) -> bool:
    """Tell whether a parameter is annotated with `ToolContext`, alone or beside `None`."""
    try:
        return _is_context(resolve_annotation(fn, parameter))
    except Exception:
        return False  # Whoever describes the parameter says what is wrong with it.


def _is_context(found: Any) -> bool:
    origin = get_origin(found)
    if origin is Annotated:
        return _is_context(get_args(found)[0])
    if origin in {Union, UnionType}:
        return any(map(_is_context, get_args(found)))
    # `type Ctx = ToolContext`, a NewType, a TypeVar with a bound: the same by another name.
    for inside in ("__value__", "__supertype__", "__bound__"):
        if (other := getattr(found, inside, None)) is not None and not isinstance(found, type):
            return _is_context(other)
    return isinstance(found, type) and issubclass(found, ToolContext)


def _evaluated(fn: Callable[..., Any], name: str, annotation: Any) -> Any:
    written = _as_written(fn)

    # One at a time: a name that exists only for type checkers may stand beside it,
    # in the return type or at a parameter that the host fills in.
    def holder() -> None: ...

    holder.__annotations__ = {name: annotation}
    scope = getattr(written, "__globals__", {})
    # `def f[T](x: T)`, from Python 3.12 on
    inner = {item.__name__: item for item in getattr(written, "__type_params__", ())}
    try:
        return get_type_hints(holder, scope, inner, include_extras=True)[name]
    except NameError as problem:
        if problem.name != ToolContext.__name__:
            raise
        # It is often imported for type checkers only.
        inner[ToolContext.__name__] = ToolContext
        return get_type_hints(holder, scope, inner, include_extras=True)[name]


def held_by(fn: Any) -> dict[str, Any]:
    """Return what partials hold, by name or by position."""
    held: dict[str, Any] = {}
    while isinstance(fn, partial):
        held |= {**fn.keywords, **{f"{len(held)}.{at}": item for at, item in enumerate(fn.args)}}
        fn = fn.func
    return held


def beneath_partials(fn: Any) -> Any:
    """Return what a partial, or a partial of a partial, calls in the end."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn


def _as_written(fn: Any) -> Any:
    """Return the function beneath partials, methods, wrappers and callable objects."""
    fn = innermost(fn)
    return inspect.unwrap(getattr(fn, "__func__", fn))
