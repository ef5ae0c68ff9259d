"""The types that a schema allows, given or to be read off its other keywords."""

from collections.abc import Iterable, Mapping
from typing import Any

from satchel.tools.dialects.schema_refs import target_of

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_OBJECTS = frozenset({"properties", "additionalProperties", "required", "patternProperties"})
_ARRAYS = frozenset({"items", "prefixItems"})
_LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the types, or nothing if any value may stand there."""
    given = schema.get("type")
    if isinstance(given, str):
        names: Iterable[Any] = [given]
    elif isinstance(given, list):
        names = given
    elif (values := values_of(schema)) is not None:
        names = [type_of(value) for value in values]
    elif _OBJECTS & schema.keys():
        names = ["object"]
    else:
        names = ["array"] if _ARRAYS & schema.keys() else []
    known = dict.fromkeys(name for name in names if name in TYPES)
    if "number" in known:
        known.pop("integer", None)  # every integer is a number
    return tuple(known)


def values_of(schema: Mapping[str, Any], kind: str | None = None) -> list[Any] | None:
    """Return the values that alone are allowed, those of one type if it is named, or `None`."""
    if "const" in schema:
        values = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        values = schema["enum"]
    else:
        return None
    return [value for value in values if kind is None or _is_of(value, kind)]


def type_of(value: Any) -> str:
    """Return the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(value: Any) -> bool:
    """Tell whether JSON can carry it as a number, which it cannot infinity."""
    return type_of(value) == "integer" or (isinstance(value, float) and abs(value) < float("inf"))


def is_count(value: Any) -> bool:
    """Tell whether it can be a number of characters, items or properties."""
    return type_of(value) == "integer" and value >= 0


def is_plain_pattern(value: Any) -> bool:
    """Tell whether providers can match a pattern: none of them looks ahead or behind."""
    return isinstance(value, str) and not any(part in value for part in _LOOKAROUNDS)


def allows_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Tell whether `null` is among the values, through references too."""
    todo, seen = [schema], set()
    while todo:
        item = todo.pop()
        if not isinstance(item, Mapping):
            continue
        if item.get("nullable") is True:
            return True
        if not _may_be_null(item):
            continue
        ref = item.get("$ref")
        parts = [*branches_of(item), *members(item, "allOf")]
        if isinstance(ref, str) and ref not in seen:
            seen.add(ref)
            parts.append(target_of(ref, root))
        elif not parts and ref is None:
            return True
        todo += parts
    return False


def branches_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives of `anyOf`, or else of `oneOf`."""
    return members(schema, "anyOf") or members(schema, "oneOf")


def members(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    """Return the schemas that a keyword combines."""
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    types, values = types_of(schema), values_of(schema)
    return (not types or "null" in types) and (values is None or None in values)


def _is_of(value: Any, kind: str) -> bool:
    return type_of(value) == kind or (kind == "number" and type_of(value) == "integer")
