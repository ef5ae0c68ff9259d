"""Convert the response of a server to a tool result."""

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.mcp_servers.protocol_fields import fields_of, result_metadata
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult, failure
from satchel.tools.tool_results import to_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult


_MAX_BLOCKS = 1_000
"""Content blocks that are kept of one result."""

_PROTOCOL = "io.modelcontextprotocol/"

_RESULT_FIELDS = {"content", "structured_content", "is_error", "result_type"}
_BLOCK_FIELDS = {
    **dict.fromkeys(("type", "text", "data", "mime_type", "uri", "name", "description"), True),
    "resource": {"text", "blob", "mime_type", "uri"},
}
"""The fields of blocks, and of a document inside one, that blocks here have, too."""


def truncate_blocks(result: dict[str, Any]) -> None:
    """Truncate the content blocks of a result as it is received.

    Everything after this takes time per block, on the event loop of all servers.
    """
    content = result.get("content")
    if isinstance(content, list) and (left_out := len(content) - _MAX_BLOCKS) > 0:
        note = {"type": "text", "text": f"[left out: {left_out:,} more blocks]"}
        content[_MAX_BLOCKS:] = [note]


def decode_response(raw: Mapping[str, Any], tool: ToolDefinition) -> ToolResult:
    """Return a response as a result. Raises `ToolError` for an invalid one.

    Run it in a thread: a large one takes long.
    """
    from mcp_types import CallToolResult

    if raw.get("resultType") == "input_required":
        raise ToolError(
            f"{tool.name} asks for input from a person, and none is available; "
            "continue without this tool"
        )
    try:
        return _result_of(CallToolResult.model_validate(raw, by_name=False), tool)
    except ValueError:  # pydantic's ValidationError, or a number that JSON does not have
        raise invalid_response(tool.name) from None


def invalid_response(tool: str) -> ToolError:
    """Return the error for a response that is not valid MCP."""
    return ToolError(f"the server of {tool} returned an invalid response; do not retry")


def _result_of(response: "CallToolResult", tool: ToolDefinition) -> ToolResult:
    value = response.structured_content
    if not response.is_error and tool.output is not None and _violates_output_schema(tool, value):
        message = f"{tool.name} ran, but its result does not match its output schema; do not retry"
        return failure("invalid_result", message)
    content = tuple(_blocks(response.content))
    if not content and value is not None:
        content = (Text(to_json(value)),)
    return ToolResult(
        content=content,
        structured=value,
        is_error=response.is_error,
        error_code="tool_error" if response.is_error else None,
        # Keys of the protocol itself are of no use to a host.
        metadata={k: v for k, v in (response.meta or {}).items() if not k.startswith(_PROTOCOL)}
        | result_metadata(fields_of(response, exclude=_RESULT_FIELDS)),
    )


def _violates_output_schema(tool: ToolDefinition, value: Any) -> bool:
    if not isinstance(value, dict):
        # Only objects can be validated; newer servers may declare any value.
        return (tool.output or {}).get("type") == "object"
    return bool(tool.promise.faults(value))


def _blocks(content: Iterable[Any]) -> Iterable[Block]:
    for item in content:
        try:
            fields = fields_of(item, exclude=_BLOCK_FIELDS)
            further = {key: value for key, value in fields.items() if value != {}}
            yield replace(_block(item), mcp_fields=further) if further else _block(item)
        except ValueError:  # of base64
            yield Text(f"[left out: {item.type}, which cannot be decoded]")


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
