"""State fields: parameters of a tool that configuration fills in."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from satchel.errors import DefinitionError
from satchel.tools.signature import REQUIRED, Parameter, Signature, resolved, where


@dataclass(frozen=True, slots=True)
class StateField:
    """One parameter that configuration fills in."""

    name: str
    required: bool
    """Whether the function has no default of its own."""
    parameter: Parameter


class MissingStateError(DefinitionError):
    """A state field has neither a value nor a default."""

    def __init__(self, field: str, place: str, fix: str) -> None:
        self.field = field
        super().__init__(f"the state field {field!r} has no value", where=place, fix=fix)


def state_fields(signature: Signature, names: Iterable[str]) -> tuple[StateField, ...]:
    """Return the parameters of a callable that are state."""
    known = {item.name: item for item in signature.parameters}
    loose = Parameter("", REQUIRED, REQUIRED, positional_only=False)  # it goes into **kwargs
    return tuple(
        StateField(name, known.get(name, loose).default is REQUIRED, known.get(name, loose))
        for name in dict.fromkeys(names)
        if name not in signature.bound
    )


def bound_values(
    fn: Callable[..., Any],
    fields: Iterable[StateField],
    values: Mapping[str, Any],
    keys: str,
) -> dict[str, Any]:
    """Return a copy of each field's value, of the type that the parameter has.

    Raises `DefinitionError`, which never quotes a value.
    """
    found = {}
    for field in fields:
        if field.name in values:
            found[field.name] = _fitting(fn, field, _copied(fn, field, values[field.name]))
        elif field.required:
            raise MissingStateError(field.name, where(fn), keys or "give presets={...}")
    return found


def _copied(fn: Callable[..., Any], field: StateField, value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception as problem:
        raise DefinitionError(
            f"the value of the state field {field.name!r}, a {type(value).__name__}, "
            "cannot be copied",
            where=where(fn),
            fix="hold it in a subclass of Tool, and register an instance",
        ) from problem


def _fitting(fn: Callable[..., Any], field: StateField, value: Any) -> Any:
    """Return a value as what the annotation says; configuration is often text."""
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

    kind = resolved(fn, field.parameter)
    try:
        adapter = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a model has a configuration of its own
        adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        reason = problem.errors(include_url=False, include_input=False, include_context=False)
        told = reason[0]["msg"].replace("Input should", "should", 1)
        # The cause quotes the value, and it may be a secret.
        raise DefinitionError(
            f"the value of the state field {field.name!r} {told}", where=where(fn)
        ) from None
