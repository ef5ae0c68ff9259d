"""What the tool of a call tells about it."""

from satchel.tools import Tool, ToolCall


def tool_of(call: ToolCall) -> Tool | None:
    """Return the tool that a call is of, if that is known.

    A layer may have sent the call to another tool by its name, and then `call.tool` is still
    the first one, whose promises are not those of the tool that will run.
    """
    return call.tool if call.tool is not None and call.tool.name == call.name else None


def may_change_something(call: ToolCall) -> bool:
    """Tell whether a call may do more than read, which is so unless `readOnlyHint` denies it."""
    tool = tool_of(call)
    return tool is None or (tool.annotations or {}).get("readOnlyHint") is not True
