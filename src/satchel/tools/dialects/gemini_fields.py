"""The fields of one schema for Gemini, apart from the schemas that stand in it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.tools.dialects.schema_refs import name_of
from satchel.tools.dialects.schema_text import about, join_texts, one_of
from satchel.tools.dialects.schema_types import (
    is_count,
    is_number,
    is_plain_pattern,
    members,
    types_of,
    values_of,
)

_FORMATS = MappingProxyType(
    {"string": ("date-time",), "integer": ("int32", "int64"), "number": ("float", "double")}
)
_COUNTS = MappingProxyType(
    {
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
        "string": ("minLength", "maxLength"),
    }
)
# Integers beyond these are no whole numbers where a float comes from.
_LARGEST = 2**53
_LONGEST_NAME = 60


def anything() -> list[dict[str, Any]]:
    """Return the alternatives of a value without a type, which Gemini has no word for."""
    return [
        *_plain_kinds(),
        {"type": "array", "items": {"anyOf": _plain_kinds()}},
        {"type": "null"},
    ]


def fields_of(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the fields that Gemini knows, and in the description those that it does not."""
    made: dict[str, Any] = {"type": kind}
    lost: list[str] = []
    values = values_of(schema, kind)
    if kind == "null":
        return made
    if kind == "string" and values and all(values):
        made["enum"] = values
    elif values is not None:
        lost.append(one_of(values))
    for key in _COUNTS.get(kind, ()):
        if is_count(schema.get(key)):
            made[key] = schema[key]
    for add in (_add_text, _add_bounds, _add_shape):
        add(made, lost, schema)
    return {**made, **({"description": join_texts(*lost)} if lost else {})}


def items_of(schema: Mapping[str, Any]) -> Any:
    """Return one schema for all the items, those of a tuple included."""
    first, rest = _tuple_of(schema)
    if not first:
        return schema.get("items")
    return {"anyOf": [*first, *([rest] if isinstance(rest, Mapping) else [])]}


def _plain_kinds() -> list[dict[str, Any]]:
    return [{"type": kind} for kind in ("string", "number", "boolean", "object")]


def _add_text(made: dict[str, Any], lost: list[str], schema: Mapping[str, Any]) -> None:
    kind, given = made["type"], schema.get("format")
    if given in _FORMATS.get(kind, ()):
        made["format"] = given
    elif kind == "string":
        lost += about(schema, ["format"])
    if kind == "string" and is_plain_pattern(schema.get("pattern")):
        made["pattern"] = schema["pattern"]
    elif kind == "string":
        lost += about(schema, ["pattern"])


def _add_bounds(made: dict[str, Any], lost: list[str], schema: Mapping[str, Any]) -> None:
    if made["type"] not in {"integer", "number"}:
        return
    step = 1 if made["type"] == "integer" else 0
    for key, other, toward in (
        ("minimum", "exclusiveMinimum", step),
        ("maximum", "exclusiveMaximum", -step),
    ):
        bounds = [schema[key]] if is_number(schema.get(key)) else []
        if is_number(schema.get(other)):
            bounds.append(_next(schema[other], toward))
            lost += [] if step else about(schema, [other])
        if bounds:
            made[key] = max(bounds) if key == "minimum" else min(bounds)
    lost += about(schema, ["multipleOf"])


def _next(bound: float, toward: int) -> float:
    """Return the nearest integer beyond a bound, or for `toward` 0 the bound."""
    if toward == 0 or abs(bound) >= _LARGEST:
        return bound
    return int(bound // 1) + 1 if toward > 0 else -(int(-bound // 1) + 1)


def _add_shape(made: dict[str, Any], lost: list[str], schema: Mapping[str, Any]) -> None:
    values = schema.get("additionalProperties")
    if made["type"] == "object" and isinstance(values, Mapping) and values:
        lost.append(f"Free keys; each value: {_named(values)}.")
    if made["type"] == "array":
        first, rest = _tuple_of(schema)
        if first:
            lost.append(f"In this order: {', '.join(map(_named, first))}.")
        if first and rest is False:
            made["maxItems"] = min(len(first), made.get("maxItems", len(first)))
        lost += about(schema, ["uniqueItems"])


def _tuple_of(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and that of the rest; drafts differ in the words."""
    if first := members(schema, "items"):
        return first, schema.get("additionalItems")
    return members(schema, "prefixItems"), schema.get("items")


def _named(schema: Any) -> str:
    """Say in a few words what a schema takes."""
    of = ""
    while isinstance(schema, Mapping) and len(of) < _LONGEST_NAME:
        if isinstance(schema.get("$ref"), str):
            return of + name_of(schema["$ref"])
        kinds = types_of(schema)
        if kinds != ("array",) or not isinstance(schema.get("items"), Mapping):
            return of + (" or ".join(kinds) or "anything")
        schema, of = schema["items"], f"{of}array of "
    return f"{of}anything"
