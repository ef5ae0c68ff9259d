"""From types to JSON Schema, by pydantic and without the titles that it makes up."""

import json
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any

from satchel.errors import DefinitionError
from satchel.tools.signatures import REQUIRED, return_annotation, where

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

_SAY_NOTHING = (REQUIRED, None, NoneType, Any, object)


def schema_of(model: "type[BaseModel]") -> dict[str, Any]:
    """Return the schema of a model; raises what pydantic raises."""
    return _without_enum_titles(model.model_json_schema(schema_generator=_untitled_generator()))


def pydantic_to_json_schema(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of a pydantic model or any other type, without made-up titles.

    Raises `DefinitionError` for a type that no JSON Schema describes.
    """
    return _generated(model, getattr(model, "__name__", str(model)), "validation")


def output_schema(fn: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the schema of what a callable returns if that is an object, or else `None`."""
    try:
        kind = return_annotation(fn)
        if kind in _SAY_NOTHING or getattr(kind, "__module__", "").startswith("satchel.tools."):
            return None
        schema = _generated(kind, where(fn), "serialization")
        json.dumps(schema, allow_nan=False)
    except Exception:
        return None  # What a function returns need not be described.
    # It may point at its own definition.
    _, _, name = schema.get("$ref", "").rpartition("/")
    target = schema.get("$defs", {}).get(name, schema)
    return schema if target.get("type") == "object" else None


def schema_type_name(schema: Any) -> str:
    """Name the type that a schema asks for in a word or two."""
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


def _generated(kind: Any, place: str, mode: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    try:
        schema = TypeAdapter(kind).json_schema(mode=mode, schema_generator=_untitled_generator())
    except Exception as problem:
        raise DefinitionError("no JSON Schema describes this type", where=place) from problem
    return _without_enum_titles(schema)


def _without_enum_titles(schema: dict[str, Any]) -> dict[str, Any]:
    # The title of an enum is its name, and comes from where the generator cannot be told.
    for definition in schema.get("$defs", {}).values():
        if "enum" in definition:
            definition.pop("title", None)
    return schema


@cache
def _untitled_generator() -> "type[GenerateJsonSchema]":
    """Return a generator that leaves out the titles pydantic makes up of names.

    A title that an author wrote stays, and so does a property that is called `title`.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        # A default that JSON cannot carry is left out, and nobody need hear of it.
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
