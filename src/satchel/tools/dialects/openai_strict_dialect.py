"""The dialect of OpenAI's strict mode, in which the model always sends valid arguments.

It supports a part of JSON Schema and refuses requests with other keywords. The model sends every
property; for an optional one it may send `null`. The rules, read in 2026:
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
_IN_DESCRIPTION = ("minLength", "maxLength", "uniqueItems", "default")
# Keywords that do not restrict the value: dropped beside a reference or a union.
_ANNOTATIONS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated"),
        *("description", "discriminator", "example", "examples", "nullable", "readOnly", "title"),
        "writeOnly",
    }
)


class NotStrictError(Exception):
    """Strict mode cannot express a schema."""


def openai_strict(shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool in strict mode, or without it if that is impossible."""
    described = openai(shape)
    try:
        parameters = _strict(object_schema(shape.parameters))
    except NotStrictError:
        described["function"]["strict"] = False
    else:
        described["function"] |= {"parameters": parameters, "strict": True}
    return described


def _strict(root: dict[str, Any]) -> dict[str, Any]:
    strict: dict[str, Any] = run_walk(_node(root, root))
    names = _referenced_names(strict)
    definitions: dict[str, Any] = {}
    while names:
        name = names.pop()
        if name not in definitions:
            definitions[name] = run_walk(_node(_definitions(root)[name], root))
            names += _referenced_names(definitions[name])
    if definitions:
        strict["$defs"] = ordered(definitions, _definitions(root))
    if strict.get("type") != "object" or is_too_large(strict):
        raise NotStrictError
    return ordered(strict, root)


def _node(schema: Any, root: Mapping[str, Any]) -> Walk:
    if not isinstance(schema, Mapping):
        raise NotStrictError
    schema = _without_all_of(schema)
    if "$ref" in schema:
        strict = _reference(schema, root)
    elif "anyOf" in schema or "oneOf" in schema:
        strict = yield _union(schema, root)
    else:
        strict = yield _by_type(schema, root)
    if schema.get("nullable") is True and not allows_null({**schema, "nullable": False}, root):
        strict = _or_null(strict)
    return ordered(_with_texts(strict, schema), schema)


def _without_all_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge an `allOf` of one schema; older generators write a description to a reference so."""
    while "allOf" in schema:
        parts = members(schema, "allOf")
        if len(parts) != 1 or not isinstance(parts[0], Mapping):
            raise NotStrictError
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        _refuse_restrictions(rest, parts[0], allowed=rest.keys() - parts[0].keys())
        schema = {**parts[0], **rest}
    return schema


def _refuse_restrictions(
    schema: Mapping[str, Any], target: Mapping[str, Any], allowed: frozenset[str] | set[str]
) -> None:
    """Raise for keywords that restrict the value and are neither `allowed` nor in `target`."""
    for key in schema.keys() - _ANNOTATIONS - allowed:
        if key not in target or schema[key] != target[key]:
            raise NotStrictError


def _reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    target = followed(schema, root)
    if not isinstance(target, Mapping):
        raise NotStrictError
    _refuse_restrictions(schema, target, allowed={"$ref"})
    if schema["$ref"] == "#":
        return {"$ref": "#"}
    match steps_of(schema["$ref"]):
        case [keyword, name] if keyword in DEFINITIONS:
            return {"$ref": f"{_PREFIX}{_safe_name(name)}"}
    raise NotStrictError  # strict mode supports references to $defs only


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return all definitions, under names that need no escaping in a reference."""
    definitions: dict[str, Any] = {}
    for keyword in DEFINITIONS:
        value = root.get(keyword)
        for name, schema in (value if isinstance(value, dict) else {}).items():
            if definitions.setdefault(_safe_name(name), schema) != schema:
                raise NotStrictError
    return definitions


def _safe_name(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def _referenced_names(schema: Any) -> list[str]:
    names, todo = [], [schema]
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
    _refuse_restrictions(schema, {}, allowed={"anyOf"} if "anyOf" in schema else {"oneOf"})
    choices: list[Any] = []
    for branch in branches_of(schema):
        choice = yield _node(branch, root)
        if choice not in choices:
            choices.append(choice)
    if not choices:
        raise NotStrictError
    return {"anyOf": choices}


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Walk:
    choices: list[Any] = []
    for kind in types_of(schema):
        if values_of(schema, kind) != []:
            choices += [(yield _typed(schema, kind, root))]
    if not choices:
        raise NotStrictError
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _typed(schema: Mapping[str, Any], kind: str, root: Mapping[str, Any]) -> Walk:
    strict: dict[str, Any] = {"type": kind}
    values = values_of(schema, kind)
    if kind == "object":
        strict |= yield _object(schema, root)
    elif kind == "array":
        strict["items"] = yield _node(_items(schema), root)
    elif values is not None and kind != "null":
        strict |= {"const": values[0]} if "const" in schema else {"enum": values}
    kept = (key for key in _KEPT.get(kind, ()) if _is_supported(key, schema.get(key)))
    return ordered(strict | {key: schema[key] for key in kept}, schema)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Walk:
    properties, required = properties_of(schema), required_of(schema)
    is_closed = schema.get("additionalProperties", "properties" not in schema) is False
    is_open = {"patternProperties", "const", "enum"} & schema.keys()
    if not is_closed or is_open or schema.get("unevaluatedProperties", False) is not False:
        raise NotStrictError
    if any(name not in properties for name in required):
        raise NotStrictError
    strict = {}
    for name, item in properties.items():
        strict[name] = yield _node(item, root)
        if name not in required and not allows_null(item, root):
            strict[name] = _or_null(strict[name])
    return {"properties": strict, "required": list(properties), "additionalProperties": False}


def _items(schema: Mapping[str, Any]) -> Any:
    if {"prefixItems", "const", "enum"} & schema.keys():
        raise NotStrictError
    return schema.get("items")


def _is_supported(keyword: str, value: Any) -> bool:
    match keyword:
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "pattern":
            return is_plain_pattern(value)
        case "minItems" | "maxItems":
            return is_count(value)
    return is_number(value)


def _or_null(strict: dict[str, Any]) -> dict[str, Any]:
    core = {key: value for key, value in strict.items() if key not in _TEXTS}
    texts = {key: value for key, value in strict.items() if key in _TEXTS}
    return {**texts, "anyOf": [*core.get("anyOf", [core]), {"type": "null"}]}


def _with_texts(strict: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add title and description, with sentences for the keywords that strict mode lacks."""
    lost = [key for key in ("format", "pattern") if not _is_supported(key, schema.get(key))]
    sentences = about(schema, (*_IN_DESCRIPTION, *lost))
    texts = {
        "title": join_texts(schema.get("title")),
        "description": join_texts(schema.get("description"), *sentences),
    }
    texts = {key: text for key, text in texts.items() if text}
    # Strict mode allows no keyword beside a reference.
    return {**({"anyOf": [strict]} if texts and "$ref" in strict else strict), **texts}
