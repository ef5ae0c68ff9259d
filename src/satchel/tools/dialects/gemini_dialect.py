"""The shape that Gemini wants: a function declaration whose schema is JSON Schema.

`parametersJsonSchema` takes JSON Schema and ignores most keywords that it does not know. It
refuses the whole request for a reference to nowhere, or one with more beside it than a description
and a default. The rules: https://ai.google.dev/api/caching#FunctionDeclaration.
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
    """Describe a tool as a function declaration; one without parameters has no schema."""
    root = object_schema(shape.parameters)
    made: dict[str, Any] = {"name": shape.name, "description": visible(shape.description)}
    if properties_of(root):
        made["parametersJsonSchema"] = _normalized(root)
    return made


def _normalized(root: dict[str, Any]) -> dict[str, Any]:
    """Change a schema in place to what Gemini reads, and return it."""
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
    """Return all definitions, those of `$defs` before those of older drafts."""
    made: dict[str, Any] = {}
    for keyword in DEFINITIONS:
        named = root.get(keyword)
        made = {**(named if isinstance(named, dict) else {}), **made}
    return made


def _reference(ref: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reference into `$defs`; any other becomes the type of its target, if it has one."""
    target = target_of(ref, root)
    if not isinstance(target, Mapping):
        return {}
    match steps_of(ref):
        case [keyword, name] if keyword in DEFINITIONS:
            return {"$ref": f"#/$defs/{name}"}
    return {"type": "object"} if target.get("type") == "object" else {}
