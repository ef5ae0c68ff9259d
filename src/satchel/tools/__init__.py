"""Tools: functions or classes with a schema for the model and a result for each call."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.tools.argument_errors import ArgumentError, ArgumentFault
    from satchel.tools.base_tool import Tool
    from satchel.tools.content_blocks import Audio, Block, Image, Resource, ResourceLink, Text
    from satchel.tools.dialects import DIALECTS
    from satchel.tools.function_tool import FunctionTool, as_tool, set_extended_model, tools_in
    from satchel.tools.mcp_offers import McpPrompt, McpResource
    from satchel.tools.state_fields import MissingStateError
    from satchel.tools.tool_call import ToolCall
    from satchel.tools.tool_context import ToolContext
    from satchel.tools.tool_decorator import ToolOptions, tool
    from satchel.tools.tool_results import Item, ToolChunk, ToolResult, failure, to_result
    from satchel.tools.type_schemas import pydantic_to_json_schema
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "argument_errors": "ArgumentError ArgumentFault",
            "content_blocks": "Audio Block Image Resource ResourceLink Text",
            "dialects": "DIALECTS",
            "function_tool": "FunctionTool as_tool set_extended_model tools_in",
            "mcp_offers": "McpPrompt McpResource",
            "state_fields": "MissingStateError",
            "base_tool": "Tool",
            "tool_call": "ToolCall",
            "tool_context": "ToolContext",
            "tool_decorator": "ToolOptions tool",
            "tool_results": "Item ToolChunk ToolResult failure to_result",
            "type_schemas": "pydantic_to_json_schema",
        },
    )

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
