"""OpenAI's strict mode, in which the model cannot send what the schema does not allow.

It takes a part of JSON Schema, refuses the rest with the whole request, and has every property
sent: what may be left out is sent as `null`. The rules, read in 2026:
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.tools.dialects.object_schemas import object_schema, properties_of, required_of
from satchel.tools.dialects.openai_dialect import openai
from satchel.tools.dialects.schema_refs import DEFINITIONS, followed, steps_of
from satchel.tools.dialects.schema_text import about, join_texts
from satchel.tools.dialects.schema_types import (
    allows_null,
    branches_of,
    is_count,
    is_number,
    is_plain_pattern,
    members,
    types_of,
    values_of,
)
from satchel.tools.dialects.schema_walk import Walk, ordered, run_walk
from satchel.tools.dialects.strict_limits import is_too_large
from satchel.tools.dialects.tool_shape import ToolShape

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname"}) | {
    *("ipv4", "ipv6", "uuid"),
}
_NUMBERS = ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_KEPT = MappingProxyType(
    {
        "array": ("minItems", "maxItems"),
        "integer": _NUMBERS,
        "number": _NUMBERS,
        "string": ("pattern", "format"),
    }
)
_PREFIX = "#/$defs/"
_TEXTS = frozenset({"title", "description"})
_SAID = ("minLength", "maxLength", "uniqueItems", "default")
# Beside a reference or a union these say nothing of the value, or nothing that strict mode takes.
_ANNOTATIONS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated"),
        *("description", "discriminator", "example", "examples", "nullable", "readOnly", "title"),
        "writeOnly",
    }
)


class NotStrictError(Exception):
    """Strict mode cannot say what this schema says."""


def openai_strict(shape: ToolShape) -> dict[str, Any]:
    """Describe a tool for strict mode, or plainly if strict mode cannot express its schema."""
    made = openai(shape)
    try:
        parameters = _strict(object_schema(shape.parameters))
    except NotStrictError:
        made["function"]["strict"] = False
    else:
        made["function"] |= {"parameters": parameters, "strict": True}
    return made


def _strict(root: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = run_walk(_node(root, root))
    names = _names_in(made)
    definitions: dict[str, Any] = {}
    while names:
        name = names.pop()
        if name not in definitions:
            definitions[name] = run_walk(_node(_definitions(root)[name], root))
            names += _names_in(definitions[name])
    if definitions:
        made["$defs"] = ordered(definitions, _definitions(root))
    if made.get("type") != "object" or is_too_large(made):
        raise NotStrictError
    return ordered(made, root)


def _node(schema: Any, root: Mapping[str, Any]) -> Walk:
    if not isinstance(schema, Mapping):
        raise NotStrictError
    schema = _without_all_of(schema)
    if "$ref" in schema:
        made = _reference(schema, root)
    elif "anyOf" in schema or "oneOf" in schema:
        made = yield _union(schema, root)
    else:
        made = yield _by_type(schema, root)
    if schema.get("nullable") is True and not allows_null({**schema, "nullable": False}, root):
        made = _or_null(made)
    return ordered(_described(made, schema), schema)


def _without_all_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge a single schema in `allOf`, which is how a description got beside a reference once."""
    while "allOf" in schema:
        parts = members(schema, "allOf")
        if len(parts) != 1 or not isinstance(parts[0], Mapping):
            raise NotStrictError
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        _refuse_more(rest, parts[0], but=rest.keys() - parts[0].keys())
        schema = {**parts[0], **rest}
    return schema


def _refuse_more(
    schema: Mapping[str, Any], known: Mapping[str, Any], but: frozenset[str] | set[str]
) -> None:
    """Refuse what restricts the value, unless it is `known` or among those to let pass."""
    for key in schema.keys() - _ANNOTATIONS - but:
        if key not in known or schema[key] != known[key]:
            raise NotStrictError


def _reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    target = followed(schema, root)
    if not isinstance(target, Mapping):
        raise NotStrictError
    _refuse_more(schema, target, but={"$ref"})
    if schema["$ref"] == "#":
        return {"$ref": "#"}
    match steps_of(schema["$ref"]):
        case [keyword, name] if keyword in DEFINITIONS:
            return {"$ref": f"{_PREFIX}{_safe(name)}"}
    raise NotStrictError  # strict mode is only known to look into $defs


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return all definitions under names that need no escape in a reference."""
    made: dict[str, Any] = {}
    for keyword in DEFINITIONS:
        named = root.get(keyword)
        for name, schema in (named if isinstance(named, dict) else {}).items():
            if made.setdefault(_safe(name), schema) != schema:
                raise NotStrictError
    return made


def _safe(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def _names_in(made: Any) -> list[str]:
    names, todo = [], [made]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            ref = item.get("$ref")
            if isinstance(ref, str) and ref.startswith(_PREFIX):
                names.append(ref.removeprefix(_PREFIX))
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return names


def _union(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Walk:
    _refuse_more(schema, {}, but={"anyOf"} if "anyOf" in schema else {"oneOf"})
    made: list[Any] = []
    for branch in branches_of(schema):
        choice = yield _node(branch, root)
        if choice not in made:
            made.append(choice)
    if not made:
        raise NotStrictError
    return {"anyOf": made}


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Walk:
    made: list[Any] = []
    for kind in types_of(schema):
        if values_of(schema, kind) != []:
            made += [(yield _typed(schema, kind, root))]
    if not made:
        raise NotStrictError
    return made[0] if len(made) == 1 else {"anyOf": made}


def _typed(schema: Mapping[str, Any], kind: str, root: Mapping[str, Any]) -> Walk:
    made: dict[str, Any] = {"type": kind}
    values = values_of(schema, kind)
    if kind == "object":
        made |= yield _object(schema, root)
    elif kind == "array":
        made["items"] = yield _node(_items(schema), root)
    elif values is not None and kind != "null":
        made |= {"const": values[0]} if "const" in schema else {"enum": values}
    made |= {key: schema[key] for key in _KEPT.get(kind, ()) if _is_taken(key, schema.get(key))}
    return ordered(made, schema)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Walk:
    properties, needed = properties_of(schema), required_of(schema)
    is_closed = schema.get("additionalProperties", "properties" not in schema) is False
    is_open = {"patternProperties", "const", "enum"} & schema.keys()
    if not is_closed or is_open or schema.get("unevaluatedProperties", False) is not False:
        raise NotStrictError
    if any(name not in properties for name in needed):
        raise NotStrictError
    made = {}
    for name, item in properties.items():
        made[name] = yield _node(item, root)
        if name not in needed and not allows_null(item, root):
            made[name] = _or_null(made[name])
    return {"properties": made, "required": list(properties), "additionalProperties": False}


def _items(schema: Mapping[str, Any]) -> Any:
    if {"prefixItems", "const", "enum"} & schema.keys():
        raise NotStrictError
    return schema.get("items")


def _is_taken(keyword: str, value: Any) -> bool:
    match keyword:
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "pattern":
            return is_plain_pattern(value)
        case "minItems" | "maxItems":
            return is_count(value)
    return is_number(value)


def _or_null(made: dict[str, Any]) -> dict[str, Any]:
    core = {key: value for key, value in made.items() if key not in _TEXTS}
    texts = {key: value for key, value in made.items() if key in _TEXTS}
    return {**texts, "anyOf": [*core.get("anyOf", [core]), {"type": "null"}]}


def _described(made: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the author's texts and, in words, what strict mode does not take as keywords."""
    lost = [key for key in ("format", "pattern") if not _is_taken(key, schema.get(key))]
    said = join_texts(schema.get("description"), *about(schema, (*_SAID, *lost)))
    texts: dict[str, str] = {"title": join_texts(schema.get("title")), "description": said}
    given = {key: text for key, text in texts.items() if text}
    # Strict mode takes nothing beside a reference.
    return {**({"anyOf": [made]} if given and "$ref" in made else made), **given}
