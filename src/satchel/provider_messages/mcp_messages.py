"""Messages of the Model Context Protocol."""

from collections.abc import Iterable
from typing import Any

from satchel.provider_messages.message_parts import Message, call_of, plain
from satchel.tools import ToolCall, ToolResult


def read_calls(message: Any) -> list[ToolCall]:
    """Return the call of a `tools/call` request, or of its parameters."""
    value = plain(message)
    if not isinstance(value, dict):
        return []
    call_id = value.get("id")
    parameters = value.get("params", value)
    name, arguments = parameters.get("name"), parameters.get("arguments")
    return [call_of(name, arguments, str(call_id or ""))] if name else []


def write_results(pairs: Iterable[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return the result of each call, as `CallToolResult`."""
    return [_result(result) for _, result in pairs]


def _result(result: ToolResult) -> Message:
    message: Message = {
        "content": [block.to_dict() for block in result.content],
        "isError": result.is_error,
    }
    if isinstance(result.structured, dict):
        message["structuredContent"] = result.structured
    return message
