"""What a server answers to a call, as a result like any other."""

from base64 import b64decode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from satchel.remote.definitions import Definition
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
from satchel.tools.results import to_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult


_PROTOCOL = "io.modelcontextprotocol/"


def result_of(answer: "CallToolResult", tool: Definition) -> ToolResult:
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
        content,
        value,
        is_error=answer.is_error,
        error_code="tool_error" if answer.is_error else None,
        # What the protocol itself adds is of no interest to a host.
        metadata={k: v for k, v in (answer.meta or {}).items() if not k.startswith(_PROTOCOL)},
    )


def _is_unfit(tool: Definition, value: Any) -> bool:
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
            return ResourceLink(str(item.uri), item.name, item.description, item.mime_type)
    inside = item.resource
    text = getattr(inside, "text", None)
    content = text if text is not None else b64decode(inside.blob, validate=True)
    return Resource(str(inside.uri), content, inside.mime_type)
