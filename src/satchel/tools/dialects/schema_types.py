"""The types and values that a schema allows."""

from collections.abc import Iterable, Mapping
from typing import Any

from satchel.tools.dialects.schema_refs import target_of

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_OBJECTS = frozenset({"properties", "additionalProperties", "required", "patternProperties"})
_ARRAYS = frozenset({"items", "prefixItems"})
_LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the allowed types; `()` means any type.

    Without `type`, they follow from other keywords.
    """
    declared = schema.get("type")
    if isinstance(declared, str):
        names: Iterable[Any] = [declared]
    elif isinstance(declared, list):
        names = declared
    elif (values := values_of(schema)) is not None:
        names = [type_of(value) for value in values]
    elif _OBJECTS & schema.keys():
        names = ["object"]
    else:
        names = ["array"] if _ARRAYS & schema.keys() else []
    types = dict.fromkeys(name for name in names if name in TYPES)
    if "number" in types:
        types.pop("integer", None)  # every integer is a number
    return tuple(types)


def values_of(schema: Mapping[str, Any], kind: str | None = None) -> list[Any] | None:
    """Return the values of `const` or `enum`, of one type if named; `None` without either."""
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
    """Return whether a value is a JSON number; infinity is not."""
    return type_of(value) == "integer" or (isinstance(value, float) and abs(value) < float("inf"))


def is_count(value: Any) -> bool:
    """Return whether a value is an integer that is not negative."""
    return type_of(value) == "integer" and value >= 0


def is_plain_pattern(value: Any) -> bool:
    """Return whether a value is a pattern without lookaround, which no provider supports."""
    return isinstance(value, str) and not any(part in value for part in _LOOKAROUNDS)


def allows_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a schema allows `null`, also through references."""
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
    """Return the list of a keyword such as `anyOf`, or `[]`."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    types, values = types_of(schema), values_of(schema)
    return (not types or "null" in types) and (values is None or None in values)


def _is_of(value: Any, kind: str) -> bool:
    return type_of(value) == kind or (kind == "number" and type_of(value) == "integer")
