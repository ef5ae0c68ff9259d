"""The dialect of the Model Context Protocol."""

from collections.abc import Mapping
from typing import Any

from satchel.text import visible
from satchel.tools.dialects.schema_refs import followed
from satchel.tools.dialects.schema_walk import shown
from satchel.tools.dialects.tool_shape import ToolShape


def mcp(shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool as an MCP server lists it, in JSON Schema 2020-12."""
    hints = shown(shape.annotations or {})  # their title is text, as that of a schema
    title = hints.get("title")
    described = {
        "name": shape.name,
        **({"title": title} if isinstance(title, str) and title else {}),
        "description": visible(shape.description),
        "inputSchema": _object_schema(shape.parameters),
    }
    if _is_object(shape.output):
        described["outputSchema"] = _object_schema(shape.output)
    if hints:
        described["annotations"] = hints
    return described


def _object_schema(schema: Any) -> dict[str, Any]:
    """Return a copy of a schema with the type `object`, which MCP requires."""
    return {**(shown(schema) if isinstance(schema, Mapping) else {}), "type": "object"}


def _is_object(schema: Any) -> bool:
    target = followed(schema, schema)
    return isinstance(target, Mapping) and target.get("type") == "object"
