"""Contents of Google's Gemini API."""

from collections.abc import Iterable
from typing import Any

from satchel.provider_messages.message_parts import (
    NOTHING_SAID,
    TAKEN,
    Message,
    call_of,
    either,
    items_of,
    media_of,
    plain,
    words_for,
)
from satchel.tools import ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text


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
            texts.append(f"[attachments that follow: {len(attached)}]")
            data += [{"text": f"Attachments of {call.name}:"}, *attached]
        text = "\n".join(texts).strip() or NOTHING_SAID
        answer = {"name": call.name, "response": {"error" if result.is_error else "output": text}}
        answers.append({"functionResponse": answer | ({"id": call.id} if call.id else {})})
    return [{"role": "user", "parts": [*answers, *data]}] if answers else []


def _inline(block: Block) -> Message | None:
    if (media := media_of(block, TAKEN["gemini"])) is None:
        return None
    data, kind = media
    return {"inlineData": {"mimeType": kind, "data": base64_text(data)}}
