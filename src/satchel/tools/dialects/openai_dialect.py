"""The dialect of OpenAI, which many other providers accept."""

from typing import Any

from satchel.text import visible
from satchel.tools.dialects.object_schemas import object_schema
from satchel.tools.dialects.tool_shape import ToolShape


def openai(shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool for OpenAI and compatible providers."""
    return {
        "type": "function",
        "function": {
            "name": shape.name,
            "description": visible(shape.description),
            "parameters": object_schema(shape.parameters),
        },
    }


def openai_responses(shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool for OpenAI's Responses API, which is strict by default."""
    return {"type": "function", **openai(shape)["function"], "strict": False}
