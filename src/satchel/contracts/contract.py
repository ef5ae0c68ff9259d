"""A tool's whole interface as one record."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from satchel.contracts.records import (
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
    require_text,
)
from satchel.contracts.shortform import is_short_form, read_short_form
from satchel.errors import DefinitionError
from satchel.names import tool_name_fault
from satchel.tools import pydantic_to_json_schema
from satchel.tools.results import to_json
from satchel.tools.validator import Validator

T = TypeVar("T")


@dataclass(frozen=True)
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
        if not isinstance(self.name, str):
            raise DefinitionError("the name of a contract's tool must be text")
        place = f"contract {self.name!r}"
        if fault := tool_name_fault(self.name):
            raise DefinitionError(f"the tool name {self.name!r} {fault}", where=place)
        require_text(place, "description", self.description)
        self._set("invariants", _several(self.invariants, ToolInvariant, "id", place))
        for part, kind in _KEYED.items():
            self._set(part, _several(getattr(self, part), kind, "key", place))
        if isinstance(self.schema, Mapping):
            self._set("schema", _own(self.schema))
        self._set("parameters", _parameters(self.schema, place))
        _refuse_clashes(self, place)
        self.validator  # noqa: B018 - compiling is the check

    def _set(self, part: str, value: Any) -> None:
        object.__setattr__(self, part, value)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.invariants, self.config_params, self.state_reads, self.state_effects)
        return ToolContract, (self.name, self.schema, self.description, *parts)

    @cached_property
    def validator(self) -> Validator:
        """Return what judges arguments by the schema."""
        return Validator(self.parameters, f"contract {self.name!r}", self.supplied)

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
            if value is not None or name not in defaults
        }
        return {**deepcopy(defaults), **given}

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


_TELLING = ("properties", "$ref", "allOf", "anyOf", "oneOf", "additionalProperties", "type")
"""What tells that a mapping is JSON Schema."""

_KEYED: Mapping[str, type[Any]] = {
    "config_params": ToolConfigParam,
    "state_reads": ToolStateRead,
    "state_effects": ToolStateEffect,
}


def _several(given: Any, kind: type[T], name: str, place: str) -> tuple[T, ...]:
    """Return the parts of one kind; one may be given alone."""
    is_many = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    items: tuple[T, ...] = tuple(given) if is_many else (given,)
    for item in items:
        if not isinstance(item, kind):
            told = f"{type(item).__name__} is no {kind.__name__}"
            raise DefinitionError(told, where=place, fix=f"give a list of {kind.__name__}")
    names = [getattr(item, name) for item in items]
    for twice in names:
        if names.count(twice) > 1:
            raise DefinitionError(
                f"two of its {kind.__name__} have the {name} {twice!r}", where=place
            )
    return items


def _own(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy that nobody changes behind the contract's back."""
    try:
        return deepcopy(dict(schema))
    except Exception:
        return schema  # frozen, perhaps; or no JSON, which is told below


def _parameters(schema: Any, place: str) -> dict[str, Any]:
    """Return the JSON Schema of whatever describes the arguments."""
    if isinstance(schema, type) and hasattr(schema, "model_fields"):
        schema = pydantic_to_json_schema(schema)
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            f"its schema is {type(schema).__name__}",
            where=place,
            fix="give JSON Schema, a pydantic model, or {'query': 'str - the search query'}",
        )
    if is_short_form(schema):
        schema = read_short_form(schema, place)
    elif not any(key in schema for key in _TELLING):
        raise DefinitionError(
            "its schema is neither JSON Schema of an object nor the short form",
            where=place,
            fix="give every field as text, such as {'query': 'str - the search query'}",
        )
    try:
        made = _opened(json.loads(to_json(schema)))
    except Exception as problem:
        raise DefinitionError("its schema cannot be written as JSON", where=place) from problem
    if made.setdefault("type", "object") != "object":
        raise DefinitionError("its schema is not of type object", where=place)
    return made


def _opened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose properties stand at its top; a model that holds itself has none."""
    match schema:
        case {"$ref": str(reference), "$defs": dict(definitions), **others}:
            target = definitions.get(reference.removeprefix("#/$defs/"))
            if isinstance(target, dict):
                return {**target, "$defs": definitions, **others}
    return schema


def _refuse_clashes(contract: ToolContract, place: str) -> None:
    """Refuse names that would let the model set what only the host sets."""
    names = contract.supplied
    both = sorted({name for name in names if names.count(name) > 1})
    if both:
        told = f"{both[0]!r} is both a config param and a state read"
        raise DefinitionError(told, where=place, fix="rename one of them")
    properties = contract.parameters.get("properties")
    open_ones = [name for name in names if isinstance(properties, Mapping) and name in properties]
    if open_ones:
        told = f"its schema lets the model set {open_ones[0]!r}, which only the host sets"
        raise DefinitionError(told, where=place, fix="take it out of the schema")
