"""Messages of Anthropic's Messages API."""

from collections.abc import Iterable
from typing import Any

from satchel.provider_messages.message_parts import (
    NOTHING_SAID,
    TAKEN,
    Message,
    call_of,
    items_of,
    media_of,
    words_for,
)
from satchel.tools import ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text


def read_calls(message: Any) -> list[ToolCall]:
    """Return the calls of an assistant's message, or of its list of content blocks."""
    return [
        call_of(item.get("name"), item.get("input"), item.get("id"))
        for item in items_of(message, "content")
        if item.get("type") == "tool_use"
    ]


def write_results(pairs: Iterable[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return the user's message with all results: the API wants them together."""
    content = [_result(call, result) for call, result in pairs]
    return [{"role": "user", "content": content}] if content else []


def _result(call: ToolCall, result: ToolResult) -> Message:
    parts = [part for block in result.content if (part := _part(block))]
    block = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": parts or [{"type": "text", "text": NOTHING_SAID}],
    }
    return {**block, "is_error": True} if result.is_error else block


def _part(block: Block) -> Message | None:
    """Return the part for a block; `None` for an empty text, which the API refuses."""
    if media := media_of(block, TAKEN["anthropic"]):
        is_picture = media[1].startswith("image/")
        return {"type": "image" if is_picture else "document", "source": _source(*media)}
    text = words_for(block)
    return {"type": "text", "text": text} if text.strip() else None


def _source(data: bytes, mime_type: str) -> Message:
    return {"type": "base64", "media_type": mime_type, "data": base64_text(data)}
