"""The shape of a tool in the Model Context Protocol."""

from collections.abc import Mapping
from typing import Any

from satchel.text import visible
from satchel.tools.dialects.schema_refs import followed
from satchel.tools.dialects.schema_walk import shown
from satchel.tools.dialects.tool_shape import ToolShape


def mcp(shape: ToolShape) -> dict[str, Any]:
    """Describe a tool as an MCP server lists it, its schemas kept in JSON Schema 2020-12."""
    hints = shown(shape.annotations or {})  # whose title is a text as a schema's is
    title = hints.get("title")
    made = {
        "name": shape.name,
        **({"title": title} if isinstance(title, str) and title else {}),
        "description": visible(shape.description),
        "inputSchema": _of_type_object(shape.parameters),
    }
    if _is_object(shape.output):
        made["outputSchema"] = _of_type_object(shape.output)
    if hints:
        made["annotations"] = hints
    return made


def _of_type_object(schema: Any) -> dict[str, Any]:
    """Copy a schema and say at its top what MCP wants to read there."""
    return {**(shown(schema) if isinstance(schema, Mapping) else {}), "type": "object"}


def _is_object(schema: Any) -> bool:
    target = followed(schema, schema)
    return isinstance(target, Mapping) and target.get("type") == "object"
