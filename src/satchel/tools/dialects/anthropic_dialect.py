"""The dialect of Anthropic's Messages API."""

from typing import Any

from satchel.text import visible
from satchel.tools.dialects.object_schemas import object_schema
from satchel.tools.dialects.tool_shape import ToolShape


def anthropic(shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool for Anthropic's Messages API."""
    return {
        "name": shape.name,
        "description": visible(shape.description),
        "input_schema": object_schema(shape.parameters),
    }
