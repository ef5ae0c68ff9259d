"""The contract of a tool: its whole interface as one record."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from functools import cached_property, partial
from typing import Any, TypeVar

from satchel.contracts.contract_parts import (
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
    require_text,
)
from satchel.contracts.short_schema import is_short_form, read_short_form
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.names import tool_name_fault
from satchel.tools import ToolCall, pydantic_to_json_schema
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.schema_validator import SchemaValidator
from satchel.tools.tool_results import to_json

T = TypeVar("T")

_RENAME = "rename one of the two"


@dataclass(frozen=True, kw_only=True)
class ToolContract:
    """The arguments, rules, configuration and state access of one tool.

    `schema` is JSON Schema of type object, a pydantic model, or the short form
    `{"query": "str - the search query", "ids": "Optional[list[str]] - ..."}`. The description
    is shown to the model unchanged. Raises `DefinitionError` if a field is invalid.
    """

    name: str
    schema: Mapping[str, Any] | type[Any] = field(hash=False)
    description: str
    invariants: Sequence[ToolInvariant] = ()
    config_params: Sequence[ToolConfigParam] = ()
    state_reads: Sequence[ToolStateRead] = ()
    state_effects: Sequence[ToolStateEffect] = ()
    parameters: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The schema as JSON Schema."""

    def __post_init__(self) -> None:
        require_text("name", "the contract", self.name)
        place = f"contract {self.name!r}"
        if fault := tool_name_fault(self.name):
            raise DefinitionError(f"the tool's name {fault}", where=place)
        require_text("description", "the contract", self.description, place)
        for part, kind in _PARTS.items():
            self._set(part, _parts_of_kind(part, getattr(self, part), kind, place))
        if isinstance(self.schema, Mapping):
            self._set("schema", _copied(self.schema))
        self._set("parameters", parameters_of(self.schema, place))
        _refuse_clashes(self, place)
        self.validator  # noqa: B018 - compiling is the check
        _refuse_invalid_defaults(self, place)

    def _set(self, part: str, value: Any) -> None:
        object.__setattr__(self, part, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A partial, because `__reduce__` itself can pass only positional arguments.
        names = ("name", "schema", "description", *_PARTS)
        return partial(ToolContract, **{name: getattr(self, name) for name in names}), ()

    @cached_property
    def validator(self) -> SchemaValidator:
        """The validator of the schema."""
        return SchemaValidator(self.parameters, f"contract {self.name!r}", self.injected_names)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate arguments, and return them with defaults. Raises `ArgumentError`."""
        return self.with_defaults(self.validator.check(self.name, arguments))

    def validate(
        self,
        call: ToolCall,
        state: Mapping[str, Any] = NOTHING,
        config: Mapping[str, Any] = NOTHING,
    ) -> tuple[str, ...]:
        """Return what is wrong with a call, for the model: no message if it may run as it is.

        Every rule is asked, and none corrects. `satchel.contracts.validate` corrects whole plans.
        """
        from satchel.contracts.plan_validation import faults_of  # it imports this module

        return faults_of(self, call, state, config)

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with the defaults of those that are missing or `null`."""
        defaults = self._defaults
        if not defaults:  # As in most schemas.
            return dict(arguments)
        values = {
            name: value
            for name, value in arguments.items()
            if value is not None
            or name not in defaults
            or _takes_null(self.parameters["properties"][name])
        }
        return {**deepcopy(defaults), **values}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        properties = self.parameters.get("properties", {})
        return {
            name: schema["default"]
            for name, schema in properties.items()
            if isinstance(schema, Mapping) and "default" in schema
        }

    @cached_property
    def injected_names(self) -> tuple[str, ...]:
        """The names of the injected values: configuration and state reads."""
        return (
            *(item.key for item in self.config_params),
            *(item.key for item in self.state_reads),
        )

    @cached_property
    def sees_plan(self) -> bool:
        """Whether a rule depends on the other calls of the plan."""
        return any(item.sees_plan for item in self.invariants)


_PARTS: Mapping[str, type[Any]] = {
    "invariants": ToolInvariant,
    "config_params": ToolConfigParam,
    "state_reads": ToolStateRead,
    "state_effects": ToolStateEffect,
}


def _parts_of_kind(part: str, value: Any, kind: type[T], place: str) -> tuple[T, ...]:
    """Validate the parts of one kind; a single part may stand without a list."""
    is_collection = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    items: tuple[T, ...] = tuple(value) if is_collection else (value,)
    for item in items:
        if not isinstance(item, kind):
            message = f"{type(item).__name__} is not a {kind.__name__}"
            raise DefinitionError(message, where=place, fix=f"pass a list of {kind.__name__}")
    key = "id" if kind is ToolInvariant else "key"
    names = [getattr(item, key) for item in items]
    for name in names:
        if names.count(name) > 1:
            message = f"two {part.replace('_', ' ')} have the {key} {name!r}"
            raise DefinitionError(message, where=place, fix=_RENAME)
    return items


def _copied(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the schema, so that later changes of the original have no effect."""
    try:
        return deepcopy(dict(schema))
    except Exception:
        return schema  # It cannot be copied. If it is not JSON, `parameters_of` raises.


def parameters_of(schema: Any, place: str) -> dict[str, Any]:
    """Return the JSON Schema of a contract's `schema`. Raises `DefinitionError`."""
    if isinstance(schema, type) and hasattr(schema, "model_fields"):
        schema = pydantic_to_json_schema(schema)
    elif isinstance(schema, Mapping) and is_short_form(schema):
        schema = read_short_form(schema, place)
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            f"its schema is {type(schema).__name__}",
            where=place,
            fix="pass JSON Schema, a pydantic model, or {'query': 'str - the search query'}",
        )
    try:
        parameters = _inlined_root(json.loads(to_json(schema)))
    except Exception as problem:
        raise DefinitionError("its schema cannot be written as JSON", where=place) from problem
    if parameters.setdefault("type", "object") != "object":
        raise DefinitionError("its schema is not of type object", where=place)
    return parameters


def _inlined_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace a reference at the root by its target, so that the properties are at the top."""
    match schema:
        case {"$ref": str(reference), "$defs": Mapping() as definitions, **others}:
            target = definitions.get(reference.removeprefix("#/$defs/"))
            if isinstance(target, Mapping):
                return {**target, "$defs": definitions, **others}
    return schema


def _refuse_clashes(contract: ToolContract, place: str) -> None:
    """Refuse names that would let the model set injected values."""
    properties = contract.parameters.get("properties")
    arguments = properties if isinstance(properties, Mapping) else ()
    config = {item.key for item in contract.config_params}
    for item in contract.state_reads:
        if item.key in config:
            message = f"{item.key!r} is both a config param and a state read"
            raise DefinitionError(message, where=place, fix=_RENAME)
    for key in contract.injected_names:
        if key in arguments:
            message = f"{key!r} is also an argument, so the model could set it"
            raise DefinitionError(message, where=place, fix=_RENAME)


def _refuse_invalid_defaults(contract: ToolContract, place: str) -> None:
    """Refuse defaults that do not fit the schema; the model cannot correct them."""
    defaults = contract.with_defaults({})
    if not defaults:
        return
    keys = ("properties", "$defs", "definitions")
    schema = {key: contract.parameters[key] for key in keys if key in contract.parameters}
    for fault in SchemaValidator(schema, place).faults(defaults):
        message = f"the default of {fault.argument!r} does not fit: {fault.expected}"
        raise DefinitionError(message, where=place, fix="correct the default, or the type")


def _takes_null(schema: Any) -> bool:
    """Return whether a schema allows `null` as a value."""
    if not isinstance(schema, Mapping):
        return schema is True
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return any(map(_takes_null, members))
    types = schema.get("type", "null")
    return "null" in ([types] if isinstance(types, str) else types)
