"""State fields: parameters of a tool that configuration fills in."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from satchel.errors import DefinitionError
from satchel.tools.signatures import REQUIRED, Parameter, Signature, resolve_annotation, where

if TYPE_CHECKING:
    from pydantic import TypeAdapter


_QUOTING = frozenset({"assertion_error", "union_tag_invalid", "value_error"})
"""Kinds of faults whose text may quote the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateField:
    """One parameter that configuration fills in."""

    name: str
    required: bool
    """Whether the function has no default of its own."""
    parameter: Parameter
    default: Any = None
    """The field of pydantic's that gives the default, where Python itself has none."""

    def made_default(self) -> Any:
        """Make the default of the field of pydantic's."""
        return self.default.get_default(call_default_factory=True)


class MissingStateError(DefinitionError):
    """A state field has neither a value nor a default."""

    def __init__(self, field: str, place: str, fix: str) -> None:
        self.field = field
        super().__init__(f"the state field {field!r} has no value", where=place, fix=fix)


def state_fields(
    fn: Callable[..., Any], signature: Signature, names: Iterable[str]
) -> tuple[StateField, ...]:
    """Return the parameters of a callable that are state."""
    known = {item.name: item for item in signature.parameters}
    loose = Parameter(
        name="", annotation=REQUIRED, default=REQUIRED, positional_only=False
    )  # it goes into **kwargs
    return tuple(
        _state_field(fn, name, known.get(name, loose))
        for name in dict.fromkeys(names)
        if name not in signature.bound
    )


def _state_field(fn: Callable[..., Any], name: str, parameter: Parameter) -> StateField:
    from pydantic.fields import FieldInfo

    if parameter.default is not REQUIRED and not isinstance(parameter.default, FieldInfo):
        return StateField(name=name, required=False, parameter=parameter)
    kind = _kind(fn, parameter)
    if parameter.default is REQUIRED:
        field = FieldInfo.from_annotation(kind)
    else:  # `key: str = Field(...)`: Python's default is the description, not the value
        field = FieldInfo.from_annotated_attribute(kind, parameter.default)
    if field.is_required():
        return StateField(name=name, required=True, parameter=parameter)
    return StateField(name=name, required=False, parameter=parameter, default=field)


def _kind(fn: Callable[..., Any], parameter: Parameter) -> Any:
    try:
        return resolve_annotation(fn, parameter)
    except Exception:
        return Any  # It is often imported for type checkers only.


def bind_values(
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
    from pydantic import ValidationError

    try:
        return _adapter(_kind(fn, field.parameter)).validate_python(value)
    except ValidationError as problem:
        reason = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        told = "does not fit"
        if reason["type"] not in _QUOTING:
            told = reason["msg"].replace("Input ", "", 1)
    except Exception as problem:
        told = f"cannot be read: its validator raised {type(problem).__name__}"
    # No cause: it quotes the value, which may be a secret.
    raise DefinitionError(f"the value of the state field {field.name!r} {told}", where=where(fn))


def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    # A model has a configuration of its own, and takes no other.
    for config in (ConfigDict(arbitrary_types_allowed=True), None):
        with suppress(PydanticUserError):
            return TypeAdapter(kind, config=config)
    return TypeAdapter(Any)  # What pydantic does not know it cannot judge.
