"""Convert the short form of a schema, `{"query": "str - the search query"}`, to JSON Schema."""

import ast
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.errors import DefinitionError
from satchel.names import near_misses
from satchel.text import shorten
from satchel.tools.schema_validator import SchemaValidator

_TYPES = MappingProxyType(
    {
        "str": "string",
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "list": "array",
        "List": "array",
        "dict": "object",
        "Dict": "object",
        # The names in JSON Schema.
        "string": "string",
        "integer": "integer",
        "number": "number",
        "boolean": "boolean",
        "array": "array",
        "object": "object",
    }
)
_NULL = MappingProxyType({"type": "null"})
_FIX = 'write it as "str - what it is", with a type such as int, list[str] or Optional[bool]'

_JSON_SCHEMA_KEYS = ("$ref", "allOf", "anyOf", "oneOf", "additionalProperties")
_SIGNS = re.compile(r"""'[^']*'|"[^"]*"|[\[({]|[\])}]| - |[\u2013\u2014]|:(?=\s|$)|=""")
_BEFORE_DESCRIPTION = frozenset({" - ", "\u2013", "\u2014", ":"})
"""What separates a type from its description; ` - `, an en dash, an em dash, or a colon."""


def is_short_form(schema: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is in the short form and not JSON Schema."""
    return not (
        schema.get("type") == "object"
        or isinstance(schema.get("properties"), Mapping)
        or any(key in schema for key in _JSON_SCHEMA_KEYS)
        or any(isinstance(key, str) and key.startswith("$") for key in schema)
    )


def read_short_form(fields: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the JSON Schema of a short form. Raises `DefinitionError`.

    A field is `TYPE - description` or `TYPE = default - description`; an en dash, an em dash or a
    colon may stand for the hyphen. It is optional if its type is `Optional[...]` or
    `... | None`, or if it has a default.
    """
    properties, required = {}, []
    for name, text in fields.items():
        if not isinstance(name, str):
            raise DefinitionError(f"the name of its field {name!r} is not a string", where=where)
        if not isinstance(text, str):
            raise DefinitionError(
                f"its field {name!r} is {type(text).__name__}, not a string",
                where=where,
                fix="write every field as a string, such as {'query': 'str - the search query'}",
            )
        properties[name], is_required = _field(text, f"{where}, field {name!r}")
        if is_required:
            required.append(name)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _field(text: str, place: str) -> tuple[dict[str, Any], bool]:
    kind, _, description = _partition(text, _BEFORE_DESCRIPTION)
    kind, has_default, default = (part.strip() for part in _partition(kind, frozenset("=")))
    try:
        schema, is_optional = _type(_parsed(kind, place), place)
    except (RecursionError, ValueError):  # A huge union or number.
        raise _invalid_type(kind, place) from None
    if description.strip():
        schema["description"] = description.strip()
    if has_default:
        value = _literal(default, place)
        if value is not None and SchemaValidator({"properties": {"value": schema}}, place).faults(
            {"value": value}
        ):
            message = f"the default {shorten(default, 80)} is not of type {shorten(kind, 80)}"
            raise DefinitionError(message, where=place, fix="correct the default or the type")
        schema["default"] = value
    return schema, not (has_default or is_optional)


def _partition(text: str, signs: frozenset[str]) -> tuple[str, str, str]:
    """Split a field at the first of some signs outside brackets and quotes."""
    depth = 0
    for match in _SIGNS.finditer(text):
        if match[0] in {"[", "(", "{"}:
            depth += 1
        elif match[0] in {"]", ")", "}"}:
            depth -= 1
        elif match[0] in signs and depth <= 0:
            return text[: match.start()], match[0], text[match.end() :]
    return text, "", ""


def _parsed(kind: str, place: str) -> ast.expr:
    try:
        return ast.parse(kind, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _invalid_type(kind, place) from None


def _invalid_type(kind: str, place: str) -> DefinitionError:
    return DefinitionError(f"{shorten(kind, 80)!r} is not a type", where=place, fix=_FIX)


def _type(node: ast.expr, place: str) -> tuple[dict[str, Any], bool]:
    """Return the schema of a type, and whether `None` makes it optional."""
    members = [item for item in _members(node) if not _is_none(item)]
    is_optional = len(members) < len(_members(node))
    schemas = [_one(item, place) for item in members]
    if not schemas:
        return dict(_NULL), True
    return (schemas[0] if len(schemas) == 1 else {"anyOf": schemas}), is_optional


def _item(node: ast.expr, place: str) -> dict[str, Any]:
    """Return the schema of an item of a list or dict; there, `None` is a value."""
    schema, is_optional = _type(node, place)
    is_whole = not is_optional or schema in ({}, _NULL)
    return schema if is_whole else {"anyOf": [schema, _NULL]}


def _members(node: ast.expr) -> list[ast.expr]:
    """Return the members of a union, or the type itself."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return [*_members(left), *_members(right)]
        case ast.Subscript() if _name(node.value) == "Optional":
            return [*_members(node.slice), ast.Constant(None)]
        case ast.Subscript() if _name(node.value) == "Union":
            return [member for item in _arguments(node) for member in _members(item)]
    return [node]


def _one(node: ast.expr, place: str) -> dict[str, Any]:
    name = _name(node.value if isinstance(node, ast.Subscript) else node)
    arguments = _arguments(node) if isinstance(node, ast.Subscript) else []
    match name, arguments:
        case "Literal", [_, *_]:
            return {"enum": [_value(item, place) for item in arguments]}
        case (("list" | "List" | "array" | "set" | "Sequence"), [item]):
            return {"type": "array", "items": _item(item, place)}
        case (("dict" | "Dict" | "Mapping"), [_, item]):
            return {"type": "object", "additionalProperties": _item(item, place)}
        case (("Any" | "any"), []):
            return {}
        case _, [] if name in _TYPES:
            return {"type": _TYPES[name]}
    text = shorten(ast.unparse(node), 80)
    near = near_misses(name, _TYPES, most=1)
    fix = f"did you mean {near[0]}?" if near and near[0] != name else _FIX
    raise DefinitionError(f"{text!r} is not a type of the short form", where=place, fix=fix)


def _arguments(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(_, name):  # typing.Optional
            return name
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _value(node: ast.expr, place: str) -> Any:
    text = ast.unparse(node)
    value = _literal(text, place)
    if isinstance(value, str | int | bool | None):
        return value
    raise DefinitionError(f"{shorten(text, 80)!r} is not a literal", where=place, fix=_FIX)


def _literal(text: str, place: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        fix = "write it as a Python literal, with quotes around strings"
        message = f"{shorten(text, 80)!r} is not a literal"
        raise DefinitionError(message, where=place, fix=fix) from None
