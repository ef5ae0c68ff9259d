"""Read the parameters of a callable, and resolve their annotations."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, Unpack, get_args, get_origin, get_type_hints

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools.tool_context import ToolContext

REQUIRED: Any = inspect.Parameter.empty
"""The default of a parameter that has none."""

CONTEXT_NAMES = frozenset({"ctx", "context"})
"""Parameters that receive the context if they have no annotation."""
_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
_NAMED = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter; `resolve_annotation` evaluates its annotation."""

    name: str
    annotation: Any
    default: Any
    positional_only: bool
    positional: bool = False
    """Whether it may be passed by position."""
    holds: type | None = None
    """`list` for `*args`, `dict` for `**kwargs`; the annotation describes one item."""

    @property
    def is_required(self) -> bool:
        """Return whether it has no default."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parameters of a callable, without those that a partial passes by position."""

    parameters: tuple[Parameter, ...]
    bound: frozenset[str]
    """Names that a partial passes by keyword; only the host sets them."""
    taken: frozenset[str] = frozenset()
    """Names that are already passed by position, such as `self` of a bound method."""
    var_positional: Parameter | None = None
    var_keyword: Parameter | None = None

    @property
    def has_positional_only(self) -> bool:
        """Return whether some parameters are positional-only."""
        return any(item.positional_only for item in self.parameters)

    @property
    def names(self) -> frozenset[str]:
        """Return the names that `**kwargs` must not contain."""
        return self.bound.union(self.taken, (item.name for item in self.parameters))

    def split_arguments(
        self, values: Mapping[str, Any], spread: Iterable[Parameter] = ()
    ) -> tuple[list[Any], dict[str, Any]]:
        """Split named values into positional and keyword arguments.

        `spread` are the parameters `*args` and `**kwargs` whose items are among the values.
        """
        keywords = dict(values)
        var_positional: list[Any] = []
        var_keyword: dict[str, Any] = {}
        for item in spread:
            if item.holds is list:
                var_positional = keywords.pop(item.name, [])
            else:
                var_keyword = keywords.pop(item.name, {})
        positional = []
        for item in self.parameters:
            if item.positional_only or (var_positional and item.positional):
                # Positional arguments cannot have gaps, so defaults fill them.
                value = keywords.pop(item.name, item.default)
                if value is REQUIRED:
                    break  # Python's own error names what is missing
                positional.append(value)
        return [*positional, *var_positional], {**var_keyword, **keywords}


def where(fn: Callable[..., Any]) -> str:
    """Return module and name of a callable, for messages; its `repr` may raise."""
    function = innermost(fn)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '?'}.{name}"


def name_and_docstring(fn: Callable[..., Any]) -> tuple[str, str | None]:
    """Return the name and the docstring of a callable."""
    name = getattr(beneath_partials(fn), "__name__", None) or type(fn).__name__
    return str(name), innermost(fn).__doc__ or beneath_partials(fn).__doc__


def innermost(fn: Any) -> Any:
    """Return the function inside partials; for a callable object, its `__call__`."""
    fn = beneath_partials(fn)
    return fn if hasattr(fn, "__name__") else fn.__call__


def signature_of(fn: Callable[..., Any]) -> Signature:
    """Read the parameters of a callable."""
    try:
        items = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError) as problem:
        raise DefinitionError("its parameters cannot be read", where=where(fn)) from problem
    by_kind: dict[Any, list[Parameter]] = {}
    for item in items:
        by_kind.setdefault(item.kind, []).append(_parameter(item))
    var_positional = by_kind.pop(inspect.Parameter.VAR_POSITIONAL, [None])[0]
    var_keyword = by_kind.pop(inspect.Parameter.VAR_KEYWORD, [None])[0]
    parameters = tuple(parameter for group in by_kind.values() for parameter in group)
    bound = frozenset(fn.keywords if isinstance(fn, partial) else ())
    return Signature(
        parameters=parameters,
        bound=bound,
        taken=_all_names(fn).difference(bound, (item.name for item in parameters)),
        var_positional=var_positional,
        var_keyword=var_keyword,
    )


def _all_names(fn: Callable[..., Any]) -> frozenset[str]:
    """Return the names of all parameters, with those that partials and methods pass."""
    inner = innermost(fn)
    try:
        items = inspect.signature(getattr(inner, "__func__", inner)).parameters.values()
    except (TypeError, ValueError):
        return frozenset()  # not written in Python, so it has no `**kwargs`
    return frozenset(item.name for item in items if item.kind in _NAMED)


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
    """Return the type of a parameter, evaluated in the module of the function."""
    kind: Any = Any
    if parameter.annotation is not REQUIRED:
        kind = _evaluate(fn, parameter.name, parameter.annotation)
    if parameter.holds is list:
        return list[kind]
    # `**options: Unpack[Options]` describes all items, not one.
    if parameter.holds is dict:
        return get_args(kind)[0] if get_origin(kind) is Unpack else dict[str, kind]
    return kind


def return_annotation(fn: Callable[..., Any]) -> Any:
    """Return the return type of a callable, or `REQUIRED` without an annotation."""
    annotation = getattr(_unwrapped(fn), "__annotations__", {}).get("return", REQUIRED)
    return annotation if annotation is REQUIRED else _evaluate(fn, "returns", annotation)


def is_context(fn: Callable[..., Any], parameter: Parameter) -> bool:
    """Return whether a parameter's annotation is `ToolContext`, or a union with it.

    Without an annotation, a parameter named `ctx` or `context` is meant.
    """
    if parameter.annotation is REQUIRED:
        return parameter.name in CONTEXT_NAMES and parameter.holds is None
    try:
        return _is_context(resolve_annotation(fn, parameter))
    except Exception:
        return False  # ArgumentModel reports the annotation


def _is_context(kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Annotated:
        return _is_context(get_args(kind)[0])
    if origin in {Union, UnionType}:
        return any(map(_is_context, get_args(kind)))
    # An alias (`type Ctx = ToolContext`), a NewType, or a TypeVar with a bound.
    for attribute in ("__value__", "__supertype__", "__bound__"):
        if (target := getattr(kind, attribute, None)) is not None and not isinstance(kind, type):
            return _is_context(target)
    return isinstance(kind, type) and issubclass(kind, ToolContext)


def _evaluate(fn: Callable[..., Any], name: str, annotation: Any) -> Any:
    function = _unwrapped(fn)

    # One annotation at a time: others may use names that exist only for type checkers.
    def holder() -> None: ...

    holder.__annotations__ = {name: annotation}
    scope = getattr(function, "__globals__", {})
    # `def f[T](x: T)`, from Python 3.12 on
    local = {item.__name__: item for item in getattr(function, "__type_params__", ())}
    try:
        return get_type_hints(holder, scope, local, include_extras=True)[name]
    except NameError as problem:
        if problem.name != ToolContext.__name__:
            raise
        # ToolContext is often imported for type checkers only.
        local[ToolContext.__name__] = ToolContext
        return get_type_hints(holder, scope, local, include_extras=True)[name]


def partial_arguments(fn: Any) -> dict[str, Any]:
    """Return the arguments that partials hold, by name or position."""
    arguments: dict[str, Any] = {}
    while isinstance(fn, partial):
        by_position = {f"{len(arguments)}.{at}": item for at, item in enumerate(fn.args)}
        arguments |= {**fn.keywords, **by_position}
        fn = fn.func
    return arguments


def beneath_partials(fn: Any) -> Any:
    """Return the function that a partial, or a partial of a partial, calls."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn


def _unwrapped(fn: Any) -> Any:
    """Return the function inside partials, methods, wrappers and callable objects."""
    fn = innermost(fn)
    return inspect.unwrap(getattr(fn, "__func__", fn))
