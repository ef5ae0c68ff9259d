"""Items of OpenAI's Responses API."""

from collections.abc import Iterable, Iterator
from typing import Any

from satchel.provider_messages.message_parts import (
    NOTHING_SAID,
    TAKEN,
    Message,
    call_of,
    custom_call_of,
    data_url,
    items_of,
    media_of,
    words_for,
)
from satchel.tools import ToolCall, ToolResult
from satchel.tools.content_blocks import Block


def read_calls(message: Any) -> list[ToolCall]:
    """Return the calls of a response, or of its list of output items."""
    return [call for item in items_of(message, "output") for call in _calls(item)]


def _calls(item: Message) -> Iterator[ToolCall]:
    name, call_id = item.get("name"), item.get("call_id")
    match item.get("type"):
        case "function_call":
            yield call_of(name, item.get("arguments"), call_id)
        case "custom_tool_call":
            yield custom_call_of(name, item.get("input"), call_id)


def write_results(pairs: Iterable[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return an input item for each result."""
    return [
        {
            "type": "custom_tool_call_output" if call.custom else "function_call_output",
            "call_id": call.id,
            "output": _output(result),
        }
        for call, result in pairs
    ]


def _output(result: ToolResult) -> str | list[Message]:
    parts = [_part(block) for block in result.content]
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(part["text"] for part in parts).strip() or NOTHING_SAID
    return parts


def _part(block: Block) -> Message:
    if (media := media_of(block, TAKEN["openai-responses"])) is None:
        return {"type": "input_text", "text": words_for(block)}
    if media[1].startswith("image/"):
        return {"type": "input_image", "image_url": data_url(*media)}
    return {"type": "input_file", "filename": "document.pdf", "file_data": data_url(*media)}
