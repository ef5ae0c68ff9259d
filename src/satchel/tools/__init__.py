"""What a tool is: made of a function or a class, described by a schema, answered by a result."""

from satchel.tools.arguments import ArgumentError, ArgumentFault
from satchel.tools.base import Tool
from satchel.tools.call import ToolCall
from satchel.tools.content import Audio, Block, Image, Resource, ResourceLink, Text
from satchel.tools.context import ToolContext
from satchel.tools.decorator import ToolOptions, tool
from satchel.tools.dialects import DIALECTS
from satchel.tools.function import FunctionTool, as_tool, set_extended_model, tools_in
from satchel.tools.offers import McpPrompt, McpResource
from satchel.tools.results import Item, ToolChunk, ToolResult, failure, to_result
from satchel.tools.schema import pydantic_to_json_schema
from satchel.tools.state import MissingStateError

__all__ = [
    "DIALECTS",
    "ArgumentError",
    "ArgumentFault",
    "Audio",
    "Block",
    "FunctionTool",
    "Image",
    "Item",
    "McpPrompt",
    "McpResource",
    "MissingStateError",
    "Resource",
    "ResourceLink",
    "Text",
    "Tool",
    "ToolCall",
    "ToolChunk",
    "ToolContext",
    "ToolOptions",
    "ToolResult",
    "as_tool",
    "failure",
    "pydantic_to_json_schema",
    "set_extended_model",
    "to_result",
    "tool",
    "tools_in",
]
