"""The parameters of any callable, with their annotations resolved."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from satchel.errors import DefinitionError

REQUIRED: Any = inspect.Parameter.empty
"""Stands as the default of a parameter that has none."""

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; the annotation is as written until `resolved`."""

    name: str
    annotation: Any
    default: Any
    positional_only: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """How a callable wants to be called, without what a partial already fills in."""

    parameters: tuple[Parameter, ...]
    bound: frozenset[str]
    """Names of parameters that a partial holds; they are the host's."""

    def place(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Sort named values into positional and keyword arguments."""
        keywords = dict(values)
        # A positional argument can be left out only at the end, so defaults fill the gaps.
        positional = [
            keywords.pop(item.name, item.default)
            for item in self.parameters
            if item.positional_only
        ]
        return positional, keywords


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
    """Read the parameters of a callable; `*args` and `**kwargs` are left out."""
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError) as problem:
        raise DefinitionError("its parameters cannot be read", where=where(fn)) from problem
    parameters = tuple(
        Parameter(
            item.name, item.annotation, item.default, item.kind is inspect.Parameter.POSITIONAL_ONLY
        )
        for item in found
        if item.kind not in _VARIADIC
    )
    held = fn.keywords if isinstance(fn, partial) else {}
    return Signature(parameters, frozenset(held).intersection(item.name for item in parameters))


def resolved(fn: Callable[..., Any], parameter: Parameter) -> Any:
    """Return the type of a parameter, evaluated where the function was written."""
    if parameter.annotation is REQUIRED:
        return Any
    written = _as_written(fn)

    # One at a time: a name that exists only for type checkers may stand beside it,
    # in the return type or at a parameter that the host fills in.
    def holder() -> None: ...

    holder.__annotations__ = {parameter.name: parameter.annotation}
    scope = getattr(written, "__globals__", {})
    # `def f[T](x: T)`, from Python 3.12 on
    inner = {item.__name__: item for item in getattr(written, "__type_params__", ())}
    return get_type_hints(holder, scope, inner, include_extras=True)[parameter.name]


def beneath_partials(fn: Any) -> Any:
    """Return what a partial, or a partial of a partial, calls in the end."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn


def _as_written(fn: Any) -> Any:
    """Return the function beneath partials, methods, wrappers and callable objects."""
    fn = innermost(fn)
    return inspect.unwrap(getattr(fn, "__func__", fn))
