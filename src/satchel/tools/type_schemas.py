"""JSON Schemas of Python types, by pydantic but without generated titles."""

import json
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any

from satchel.errors import DefinitionError
from satchel.tools.signatures import REQUIRED, return_annotation, where

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

_UNTYPED = (REQUIRED, None, NoneType, Any, object)


def schema_of(adapter: "TypeAdapter[Any]", mode: Any = "validation") -> dict[str, Any]:
    """Return the schema of a type. Raises what pydantic raises."""
    schema = adapter.json_schema(mode=mode, schema_generator=_untitled_generator())
    # The generator cannot omit the title of an enum, which is its name.
    for definition in schema.get("$defs", {}).values():
        if "enum" in definition:
            definition.pop("title", None)
    return schema


def pydantic_to_json_schema(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of a pydantic model or another type, without generated titles.

    Raises `DefinitionError` for a type that no JSON Schema describes.
    """
    return _generate(model, getattr(model, "__name__", str(model)), "validation")


def output_schema(fn: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the schema of a callable's return type if it is of type object, or else `None`."""
    try:
        kind = return_annotation(fn)
        if kind in _UNTYPED or getattr(kind, "__module__", "").startswith("satchel.tools."):
            return None
        schema = _generate(kind, where(fn), "serialization")
        json.dumps(schema, allow_nan=False)
    except Exception:
        return None  # the output schema is optional
    # The schema may be a reference to one of its own definitions.
    _, _, name = schema.get("$ref", "").rpartition("/")
    target = schema.get("$defs", {}).get(name, schema)
    return schema if target.get("type") == "object" else None


def schema_type_name(schema: Any) -> str:
    """Return a short name for the type of a schema, such as `string` or `'a' | 'b'`."""
    match schema:
        case {"enum": [*values]}:
            return " | ".join(map(repr, values))
        case {"const": value}:
            return repr(value)
        case {"type": str(kind)}:
            return kind
        case {"anyOf": [*members]} | {"oneOf": [*members]}:
            return " | ".join(map(schema_type_name, members))
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
    return "any"


def _generate(kind: Any, place: str, mode: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    try:
        return schema_of(TypeAdapter(kind), mode)
    except Exception as problem:
        raise DefinitionError("no JSON Schema describes this type", where=place) from problem


@cache
def _untitled_generator() -> "type[GenerateJsonSchema]":
    """Return a generator that omits the titles that pydantic derives from names.

    Titles that an author wrote stay, and so does a property with the name `title`.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        # A default that JSON cannot represent is omitted, without a warning.
        ignored_warning_kinds: Any = frozenset(("skipped-choice", "non-serializable-default"))

        def field_title_should_be_set(self, _schema: Any) -> bool:
            return False

        def model_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().model_schema(schema), schema["cls"])

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().dataclass_schema(schema), schema["cls"])

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().typed_dict_schema(schema), schema.get("cls"))

    return Untitled


def _without_title(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    if schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
