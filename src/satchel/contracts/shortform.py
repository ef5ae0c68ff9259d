"""The short form of a schema: `{"query": "str - the search query"}`, as JSON Schema."""

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.errors import DefinitionError
from satchel.names import near_misses

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
        # As JSON Schema calls them.
        "string": "string",
        "integer": "integer",
        "number": "number",
        "boolean": "boolean",
        "array": "array",
        "object": "object",
    }
)
_FIX = 'write it as "str - what it is", with a type such as int, list[str] or Optional[bool]'


def is_short_form(schema: Mapping[str, Any]) -> bool:
    """Tell whether a mapping names fields in the short form, rather than being JSON Schema."""
    are_texts = all(isinstance(value, str) for value in schema.values())
    return are_texts and schema.get("type") != "object" and not any(k[:1] == "$" for k in schema)


def read_short_form(fields: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return the JSON Schema that a short form stands for.

    A field is `TYPE - description` or `TYPE = default - description`; one whose type is
    `Optional[...]` or `... | None`, or that has a default, may be left out. Raises
    `DefinitionError`.
    """
    properties, required = {}, []
    for name, text in fields.items():
        kind, _, description = text.partition(" - ")
        kind, has_default, default = (part.strip() for part in _parted(kind))
        place = f"{where}, field {name!r}"
        about, is_optional = _type(_parsed(kind, place), place)
        if description.strip():
            about["description"] = description.strip()
        if has_default:
            about["default"] = _literal(default, place)
        elif not is_optional:
            required.append(name)
        properties[name] = about
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _parted(text: str) -> tuple[str, str, str]:
    """Split `TYPE = default`; a `Literal["a=b"]` is left whole."""
    head, equals, tail = text.partition("=")
    return (text, "", "") if head.count("[") > head.count("]") else (head, equals, tail)


def _parsed(kind: str, place: str) -> ast.expr:
    try:
        return ast.parse(kind, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DefinitionError(f"{kind!r} is no type", where=place, fix=_FIX) from None


def _type(node: ast.expr, place: str) -> tuple[dict[str, Any], bool]:
    """Return the schema of a type, and whether it takes `None`, which means leaving it out."""
    members = [item for item in _members(node) if not _is_none(item)]
    is_optional = len(members) < len(_members(node))
    schemas = [_one(item, place) for item in members]
    if not schemas:
        return {"type": "null"}, True
    return (schemas[0] if len(schemas) == 1 else {"anyOf": schemas}), is_optional


def _members(node: ast.expr) -> list[ast.expr]:
    """Return what a union is made of; anything else is its only member."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return [*_members(left), *_members(right)]
        case ast.Subscript() if _name(node.value) == "Optional":
            return [*_members(node.slice), ast.Constant(None)]
        case ast.Subscript() if _name(node.value) == "Union":
            return [member for item in _inside(node) for member in _members(item)]
    return [node]


def _one(node: ast.expr, place: str) -> dict[str, Any]:
    name = _name(node.value if isinstance(node, ast.Subscript) else node)
    inside = _inside(node) if isinstance(node, ast.Subscript) else []
    match name, inside:
        case "Literal", [_, *_]:
            return {"enum": [_value(item, place) for item in inside]}
        case (("list" | "List" | "array" | "set" | "Sequence"), [item]):
            return {"type": "array", "items": _type(item, place)[0]}
        case (("dict" | "Dict" | "Mapping"), [_, item]):
            return {"type": "object", "additionalProperties": _type(item, place)[0]}
        case (("Any" | "any"), []):
            return {}
        case _, [] if name in _TYPES:
            return {"type": _TYPES[name]}
    told = ast.unparse(node)
    near = near_misses(name, _TYPES, most=1)
    fix = f"did you mean {near[0]}?" if near and near[0] != name else _FIX
    raise DefinitionError(f"{told!r} is no type of the short form", where=place, fix=fix)


def _inside(node: ast.Subscript) -> list[ast.expr]:
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | bool | None):
        return node.value
    raise DefinitionError(f"{ast.unparse(node)!r} is no literal", where=place, fix=_FIX)


def _literal(text: str, place: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        fix = f"write it as Python does, such as {text!r} with quotes around text"
        raise DefinitionError(f"the default {text!r} is no literal", where=place, fix=fix) from None
