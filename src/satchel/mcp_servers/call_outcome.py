"""What a server answers to a call, as a result like any other."""

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import (
    Audio,
    Block,
    Image,
    Resource,
    ResourceLink,
    Text,
    ToolResult,
    failure,
)
from satchel.tools.tool_results import to_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult


_MOST_BLOCKS = 1_000
"""How many blocks of one result are kept."""

_PROTOCOL = "io.modelcontextprotocol/"


def with_fewer_blocks(received: Any) -> Any:
    """Leave out most blocks of an answer that has very many; for a message as it comes in.

    Whatever looks at it afterwards takes as long as there are blocks, on the loop of all servers.
    """
    result = getattr(getattr(received, "message", None), "result", None)
    content = result.get("content") if isinstance(result, dict) else None
    if isinstance(content, list) and (more := len(content) - _MOST_BLOCKS) > 0:
        note = {"type": "text", "text": f"[left out: {more:,} more blocks]"}
        content[_MOST_BLOCKS:] = [note]
    return received


def decode_answer(raw: Mapping[str, Any], tool: ToolDefinition) -> ToolResult:
    """Return what a server answered as a result. Raises `ToolError` for what is none.

    Not for an event loop: what is large takes long.
    """
    from mcp_types import CallToolResult

    if raw.get("resultType") == "input_required":
        raise ToolError(f"{tool.name} asks a person for input, and nobody is there to answer")
    try:
        return result_of(CallToolResult.model_validate(raw, by_name=False), tool)
    except ValueError:  # of pydantic, or for a number that no JSON has
        raise ToolError(
            f"the server of {tool.name} gave an answer that is none; do not retry"
        ) from None


def result_of(answer: "CallToolResult", tool: ToolDefinition) -> ToolResult:
    """Return an answer as a result: all of its blocks, its value, and whether it is an error.

    A value that is not what the tool promised is an error.
    """
    value = answer.structured_content
    if not answer.is_error and tool.output is not None and _is_unfit(tool, value):
        told = f"{tool.name} ran, but its result is not what it promised; do not retry"
        return failure("invalid_result", told)
    content = tuple(_blocks(answer.content))
    if not content and value is not None:
        content = (Text(to_json(value)),)
    return ToolResult(
        content=content,
        structured=value,
        is_error=answer.is_error,
        error_code="tool_error" if answer.is_error else None,
        # What the protocol itself adds is of no interest to a host.
        metadata={k: v for k, v in (answer.meta or {}).items() if not k.startswith(_PROTOCOL)},
    )


def _is_unfit(tool: ToolDefinition, value: Any) -> bool:
    if not isinstance(value, dict):
        # Only objects can be judged; newer servers may promise any value.
        return (tool.output or {}).get("type") == "object"
    return bool(tool.promise.faults(value))


def _blocks(content: Iterable[Any]) -> Iterable[Block]:
    for item in content:
        try:
            yield _block(item)
        except ValueError:  # of base64
            yield Text(f"[left out: {item.type}, which cannot be read]")


def _block(item: Any) -> Block:
    match item.type:
        case "text":
            return Text(item.text)
        case "image":
            return Image(b64decode(item.data, validate=True), item.mime_type)
        case "audio":
            return Audio(b64decode(item.data, validate=True), item.mime_type)
        case "resource_link":
            return ResourceLink(
                uri=str(item.uri),
                name=item.name,
                description=item.description,
                mime_type=item.mime_type,
            )
    inside = item.resource
    text = getattr(inside, "text", None)
    content = text if text is not None else b64decode(inside.blob, validate=True)
    return Resource(str(inside.uri), content, inside.mime_type)
