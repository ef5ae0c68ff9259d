"""The shape that OpenAI made common."""

from typing import Any

from satchel.text import visible
from satchel.tools.dialects.object_schemas import object_schema
from satchel.tools.dialects.tool_shape import ToolShape


def openai(shape: ToolShape) -> dict[str, Any]:
    """Describe a tool for OpenAI and for the many that take the same."""
    return {
        "type": "function",
        "function": {
            "name": shape.name,
            "description": visible(shape.description),
            "parameters": object_schema(shape.parameters),
        },
    }
