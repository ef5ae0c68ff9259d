"""The dialect of Gemini: a function declaration with a JSON Schema.

`parametersJsonSchema` accepts JSON Schema and ignores most unknown keywords. Gemini refuses the
whole request if a reference has no target, or has other keywords beside it than a description and
a default. The rules: https://ai.google.dev/api/caching#FunctionDeclaration.
"""

from collections.abc import Mapping
from typing import Any

from satchel.text import visible
from satchel.tools.dialects.object_schemas import object_schema, properties_of
from satchel.tools.dialects.schema_refs import DEFINITIONS, steps_of, target_of
from satchel.tools.dialects.schema_walk import schemas_in
from satchel.tools.dialects.tool_shape import ToolShape

_BESIDE_A_REFERENCE = ("description", "default")


def gemini(shape: ToolShape) -> dict[str, Any]:
    """Return a function declaration; without parameters it has no schema."""
    root = object_schema(shape.parameters)
    declaration: dict[str, Any] = {"name": shape.name, "description": visible(shape.description)}
    if properties_of(root):
        declaration["parametersJsonSchema"] = _normalize(root)
    return declaration


def _normalize(root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that Gemini accepts; `root` is changed."""
    root.pop("$schema", None)
    definitions = _definitions(root)
    for node in schemas_in(root):
        if "$ref" in node:
            kept = {key: node[key] for key in _BESIDE_A_REFERENCE if key in node}
            reference = _reference(node["$ref"], root)
            node.clear()
            node.update(reference | kept)
        elif isinstance(node.get("const"), str | int | float):
            node["enum"] = [node.pop("const")]
    for keyword in DEFINITIONS:
        root.pop(keyword, None)
    return {**root, **({"$defs": definitions} if definitions else {})}


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    """Return all definitions; those of `$defs` take precedence over those of older drafts."""
    definitions: dict[str, Any] = {}
    for keyword in DEFINITIONS:
        value = root.get(keyword)
        definitions = {**(value if isinstance(value, dict) else {}), **definitions}
    return definitions


def _reference(ref: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reference into `$defs`; any other reference becomes `object` or no constraint."""
    target = target_of(ref, root)
    if not isinstance(target, Mapping):
        return {}
    match steps_of(ref):
        case [keyword, name] if keyword in DEFINITIONS:
            return {"$ref": f"#/$defs/{name}"}
    return {"type": "object"} if target.get("type") == "object" else {}
