"""Messages of OpenAI's Chat Completions, and of providers that copy them."""

from collections.abc import Iterable
from typing import Any

from satchel.provider_messages.message_parts import (
    TAKEN,
    Message,
    call_of,
    custom_call_of,
    data_url,
    items_of,
    media_of,
    plain,
    text_only,
    words_for,
)
from satchel.tools import ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text


def read_calls(message: Any) -> list[ToolCall]:
    """Return the calls of a response, of its message, or of the list of its calls."""
    value = plain(message)
    if isinstance(value, dict) and (choices := items_of(value, "choices")):
        value = choices[0].get("message") or {}
    return [_call(item) for item in items_of(value, "tool_calls")]


def _call(item: Message) -> ToolCall:
    if isinstance(custom := item.get("custom"), dict):
        return custom_call_of(custom.get("name"), custom.get("input"), item.get("id"))
    parts = item.get("function")
    parts = parts if isinstance(parts, dict) else {}
    return call_of(parts.get("name"), parts.get("arguments"), item.get("id"))


def write_results(pairs: Iterable[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return a message for each result; pictures, sound and files follow as the user's.

    A tool's message can have only text.
    """
    messages: list[Message] = []
    shown: list[Message] = []
    for call, result in pairs:
        parts = [part for block in result.content if (part := _part(block))]
        blocks = [block for block in result.content if not _part(block)]
        text = "\n".join(map(words_for, blocks)).strip()
        if parts:
            text = f"{text}\n[attachments in the next message: {len(parts)}]".strip()
            shown.append({"type": "text", "text": f"Attachments of {call.name} ({call.id}):"})
            shown += parts
        content = text or text_only(result)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return [*messages, {"role": "user", "content": shown}] if shown else messages


def _part(block: Block) -> Message | None:
    """Return the part of a user's message for a block that is not text."""
    if (media := media_of(block, TAKEN["openai"])) is None:
        return None
    data, kind = media
    general, _, special = kind.partition("/")
    if general == "image":
        return {"type": "image_url", "image_url": {"url": data_url(*media)}}
    if general == "audio":
        return {
            "type": "input_audio",
            "input_audio": {"data": base64_text(data), "format": special},
        }
    return {"type": "file", "file": {"filename": "document.pdf", "file_data": data_url(*media)}}
