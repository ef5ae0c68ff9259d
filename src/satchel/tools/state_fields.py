"""State fields: parameters of a tool that get their values from configuration."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools.signatures import REQUIRED, Parameter, Signature, resolve_annotation, where

if TYPE_CHECKING:
    from pydantic import TypeAdapter


_QUOTING_ERRORS = frozenset({"assertion_error", "union_tag_invalid", "value_error"})
"""Types of pydantic errors whose message may quote the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateField:
    """One parameter that gets its value from configuration."""

    name: str
    required: bool
    """Whether it has no default."""
    parameter: Parameter
    default: Any = None
    """The pydantic field that has the default, for `key: str = Field(...)`."""

    def made_default(self) -> Any:
        """Return a new default of the pydantic field."""
        return self.default.get_default(call_default_factory=True)


class MissingStateError(DefinitionError):
    """A state field has neither a value nor a default."""

    def __init__(self, field: str, place: str, fix: str) -> None:
        self.field = field
        super().__init__(f"the state field {field!r} has no value", where=place, fix=fix)


def state_fields(
    fn: Callable[..., Any], signature: Signature, names: Iterable[str]
) -> tuple[StateField, ...]:
    """Return the state fields for the named parameters; others than these go into `**kwargs`."""
    parameters = {item.name: item for item in signature.parameters}
    in_kwargs = Parameter(name="", annotation=REQUIRED, default=REQUIRED, positional_only=False)
    return tuple(
        _state_field(fn, name, parameters.get(name, in_kwargs))
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
    else:  # `key: str = Field(...)`: Python's default is the field, not the value
        field = FieldInfo.from_annotated_attribute(kind, parameter.default)
    if field.is_required():
        return StateField(name=name, required=True, parameter=parameter)
    return StateField(name=name, required=False, parameter=parameter, default=field)


def _kind(fn: Callable[..., Any], parameter: Parameter) -> Any:
    try:
        return resolve_annotation(fn, parameter)
    except Exception:
        return Any  # the type is often imported for type checkers only


def bind_values(
    fn: Callable[..., Any],
    fields: Iterable[StateField],
    values: Mapping[str, Any],
    fix: str,
) -> dict[str, Any]:
    """Return a copy of each field's value, coerced to the type of the parameter.

    Raises `DefinitionError`, which never quotes a value.
    """
    bound = {}
    for field in fields:
        if field.name in values:
            bound[field.name] = _coerce(fn, field, _copy(fn, field, values[field.name]))
        elif field.required:
            raise MissingStateError(field.name, where(fn), fix or "pass presets={...}")
    return bound


def _copy(fn: Callable[..., Any], field: StateField, value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception as problem:
        raise DefinitionError(
            f"the value of the state field {field.name!r}, a {type(value).__name__}, "
            "cannot be copied",
            where=where(fn),
            fix="keep it in a subclass of Tool, and register an instance",
        ) from problem


def _coerce(fn: Callable[..., Any], field: StateField, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return _adapter(_kind(fn, field.parameter)).validate_python(value)
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        reason = "is invalid"
        if error["type"] not in _QUOTING_ERRORS:
            reason = error["msg"].replace("Input ", "", 1)
    except Exception as problem:
        reason = f"cannot be validated: its validator raised {type(problem).__name__}"
    # Without a cause: the cause quotes the value, which may be a secret.
    raise DefinitionError(f"the value of the state field {field.name!r} {reason}", where=where(fn))


def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    # A model has its own configuration, and pydantic refuses a second one.
    for config in (ConfigDict(arbitrary_types_allowed=True), None):
        with suppress(PydanticUserError):
            return TypeAdapter(kind, config=config)
    return TypeAdapter(Any)  # pydantic does not support the type
