"""What the annotations of a tool say about its calls."""

from satchel.tools import Tool, ToolCall


def tool_of(call: ToolCall) -> Tool | None:
    """Return the tool that a call will run, if it is known.

    Other middleware may have sent the call to another tool by its name. Then `call.tool` is still
    the first tool, and its annotations do not apply to the other.
    """
    return call.tool if call.tool is not None and call.tool.name == call.name else None


def says_read_only(call: ToolCall) -> bool:
    """Return whether the tool of a call has `readOnlyHint`."""
    tool = tool_of(call)
    return tool is not None and (tool.annotations or {}).get("readOnlyHint") is True


def may_change_something(call: ToolCall) -> bool:
    """Return whether a call may do more than read: its tool has no `readOnlyHint`, or is remote."""
    tool = tool_of(call)
    return tool is None or tool.is_remote or not says_read_only(call)
