"""A tool's whole interface as one record."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
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
from satchel.names import tool_name_fault
from satchel.tools import pydantic_to_json_schema
from satchel.tools.schema_validator import SchemaValidator
from satchel.tools.tool_results import to_json

T = TypeVar("T")

_RENAME = "Rename one of the two."


@dataclass(frozen=True, kw_only=True)
class ToolContract:
    """What a tool takes, which rules its calls keep, and what it reads and writes.

    `schema` is JSON Schema of type object, a pydantic model, or the short form
    `{"query": "str - the search query", "ids": "Optional[list[str]] - ..."}`. The description
    reaches the model word for word. Raises `DefinitionError` for what cannot be.
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
            self._set(part, _several(part, getattr(self, part), kind, place))
        if isinstance(self.schema, Mapping):
            self._set("schema", _own(self.schema))
        self._set("parameters", parameters_of(self.schema, place))
        _refuse_clashes(self, place)
        self.validator  # noqa: B018 - compiling is the check
        _refuse_odd_defaults(self, place)

    def _set(self, part: str, value: Any) -> None:
        object.__setattr__(self, part, value)

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("name", "schema", "description", *_PARTS)
        return partial(ToolContract, **{name: getattr(self, name) for name in names}), ()

    @cached_property
    def validator(self) -> SchemaValidator:
        """Return what judges arguments by the schema."""
        return SchemaValidator(self.parameters, f"contract {self.name!r}", self.supplied)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that fit the schema, with its defaults. Raises `ArgumentError`."""
        return self.with_defaults(self.validator.check(self.name, arguments))

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with the defaults of those that were left out, or sent as `null`."""
        defaults = self._defaults
        if not defaults:  # as most schemas
            return dict(arguments)
        given = {
            name: value
            for name, value in arguments.items()
            if value is not None or name not in defaults or _takes_null(self._about(name))
        }
        return {**deepcopy(defaults), **given}

    def _about(self, name: str) -> Any:
        return self.parameters["properties"][name]

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        properties = self.parameters.get("properties", {})
        return {
            name: about["default"]
            for name, about in properties.items()
            if isinstance(about, Mapping) and "default" in about
        }

    @cached_property
    def supplied(self) -> tuple[str, ...]:
        """Return the names of the values that the tool is handed beside its arguments."""
        return (
            *(item.key for item in self.config_params),
            *(item.key for item in self.state_reads),
        )

    @cached_property
    def sees_plan(self) -> bool:
        """Tell whether some rule concerns the siblings of a call."""
        return any(item.sees_plan for item in self.invariants)


_PARTS: Mapping[str, type[Any]] = {
    "invariants": ToolInvariant,
    "config_params": ToolConfigParam,
    "state_reads": ToolStateRead,
    "state_effects": ToolStateEffect,
}


def _several(part: str, given: Any, kind: type[T], place: str) -> tuple[T, ...]:
    """Return the parts of one kind; one may be given alone."""
    is_many = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    items: tuple[T, ...] = tuple(given) if is_many else (given,)
    for item in items:
        if not isinstance(item, kind):
            told = f"{type(item).__name__} is no {kind.__name__}"
            raise DefinitionError(told, where=place, fix=f"give a list of {kind.__name__}")
    key = "id" if kind is ToolInvariant else "key"
    names = [getattr(item, key) for item in items]
    for twice in names:
        if names.count(twice) > 1:
            message = f"two {part.replace('_', ' ')} have the {key} {twice!r}"
            raise DefinitionError(message, where=place, fix=_RENAME)
    return items


def _own(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy that nobody changes behind the contract's back."""
    try:
        return deepcopy(dict(schema))
    except Exception:
        return schema  # frozen, perhaps; or no JSON, which is told below


def parameters_of(schema: Any, place: str) -> dict[str, Any]:
    """Return the JSON Schema of whatever describes the arguments. Raises `DefinitionError`."""
    if isinstance(schema, type) and hasattr(schema, "model_fields"):
        schema = pydantic_to_json_schema(schema)
    elif isinstance(schema, Mapping) and is_short_form(schema):
        schema = read_short_form(schema, place)
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            f"its schema is {type(schema).__name__}",
            where=place,
            fix="give JSON Schema, a pydantic model, or {'query': 'str - the search query'}",
        )
    try:
        made = _inlined_root(json.loads(to_json(schema)))
    except Exception as problem:
        raise DefinitionError("its schema cannot be written as JSON", where=place) from problem
    if made.setdefault("type", "object") != "object":
        raise DefinitionError("its schema is not of type object", where=place)
    return made


def _inlined_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its properties at the top, also where its root is a reference."""
    match schema:
        case {"$ref": str(reference), "$defs": Mapping() as definitions, **others}:
            target = definitions.get(reference.removeprefix("#/$defs/"))
            if isinstance(target, Mapping):
                return {**target, "$defs": definitions, **others}
    return schema


def _refuse_clashes(contract: ToolContract, place: str) -> None:
    """Refuse names that would let the model set what only the host sets."""
    properties = contract.parameters.get("properties")
    sent = properties if isinstance(properties, Mapping) else ()
    config = {item.key for item in contract.config_params}
    for item in contract.state_reads:
        if item.key in config:
            message = f"{item.key!r} is both a config param and a state read"
            raise DefinitionError(message, where=place, fix=_RENAME)
    for key in contract.supplied:
        if key in sent:
            message = f"{key!r} is an argument too, which would let the model set it"
            raise DefinitionError(message, where=place, fix=_RENAME)


def _refuse_odd_defaults(contract: ToolContract, place: str) -> None:
    """Refuse defaults that the schema itself does not allow: no model is to blame for them."""
    defaults = contract.with_defaults({})
    if not defaults:
        return
    parts = ("properties", "$defs", "definitions")
    schema = {key: contract.parameters[key] for key in parts if key in contract.parameters}
    for fault in SchemaValidator(schema, place).faults(defaults):
        told = f"the default of {fault.argument!r} does not fit: {fault.expected}"
        raise DefinitionError(told, where=place, fix="correct the default, or the type")


def _takes_null(about: Any) -> bool:
    """Tell whether `null` is a value that a schema allows, and no way to leave something out."""
    if not isinstance(about, Mapping):
        return about is True
    if members := about.get("anyOf") or about.get("oneOf"):
        return any(map(_takes_null, members))
    kinds = about.get("type", "null")
    return "null" in ([kinds] if isinstance(kinds, str) else kinds)
