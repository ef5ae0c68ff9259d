"""What a tool is: made of a function or a class, described by a schema, answered by a result."""

from satchel.tools.arguments import ArgumentError, ArgumentFault
from satchel.tools.base import Tool
from satchel.tools.decorator import ToolOptions, tool
from satchel.tools.function import FunctionTool, as_tool, tools_in
from satchel.tools.results import Text, ToolCall, ToolResult, failure, to_result

__all__ = [
    "ArgumentError",
    "ArgumentFault",
    "FunctionTool",
    "Text",
    "Tool",
    "ToolCall",
    "ToolOptions",
    "ToolResult",
    "as_tool",
    "failure",
    "to_result",
    "tool",
    "tools_in",
]
