"""Contents of Google's Gemini API."""

from collections.abc import Iterable
from typing import Any

from satchel.provider_messages.message_parts import (
    NOTHING_SAID,
    Message,
    call_of,
    either,
    file_of,
    items_of,
    plain,
    words_for,
)
from satchel.tools import Audio, Image, ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text

_TAKEN = ("image/", "audio/", "video/", "text/", "application/pdf")
"""The types of data that the models take; the API refuses others."""


def read_calls(message: Any) -> list[ToolCall]:
    """Return the calls of a response, of its content, or of the list of its parts.

    A call may have no id; results are then matched by the order of the calls.
    """
    value = plain(message)
    if isinstance(value, dict) and value.get("candidates"):
        value = value["candidates"][0].get("content") or {}
    calls = (either(item, "functionCall", "function_call") for item in items_of(value, "parts"))
    return [
        call_of(call.get("name"), call.get("args"), call.get("id"))
        for call in calls
        if isinstance(call, dict)
    ]


def write_results(pairs: Iterable[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return the user's content with all results; pictures, sound and files follow them."""
    answers: list[Message] = []
    data: list[Message] = []
    for call, result in pairs:
        attached = [part for block in result.content if (part := _inline(block))]
        texts = [words_for(block) for block in result.content if not _inline(block)]
        if attached:
            texts.append(f"[{len(attached)} attachments follow]")
            data += [{"text": f"Attachments of {call.name}:"}, *attached]
        text = "\n".join(texts).strip() or NOTHING_SAID
        answer = {"name": call.name, "response": {"error" if result.is_error else "output": text}}
        answers.append({"functionResponse": answer | ({"id": call.id} if call.id else {})})
    return [{"role": "user", "parts": [*answers, *data]}] if answers else []


def _inline(block: Block) -> Message | None:
    if isinstance(block, Image | Audio):
        data, kind = block.data, block.mime_type
    elif file := file_of(block):
        data, kind = file
    else:
        return None
    if not kind.startswith(_TAKEN):
        return None
    return {"inlineData": {"mimeType": kind, "data": base64_text(data)}}
