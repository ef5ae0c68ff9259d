"""The results of calls, kept for a while so that a page can show their pictures and sounds."""

import itertools
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult
from satchel.web.page_rendering import spelled_out

_MOST_KEPT = 50
SHOWN_MEDIA = frozenset(
    {
        *("image/png", "image/jpeg", "image/gif", "image/webp"),
        *("audio/wav", "audio/x-wav", "audio/mpeg", "audio/ogg", "audio/webm"),
    }
)
"""What a browser may show; anything else is only downloaded, because it could be a page."""


class CallRecords:
    """The blocks of the newest calls by the id of the call."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[str, list[Block]] = OrderedDict()
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        """Return the id of a new call."""
        return f"call-{next(self._numbers)}"

    def add(self, call_id: str, blocks: Iterable[Block]) -> list[dict[str, Any]]:
        """Keep blocks; return what a page shows of them."""
        kept = self._blocks.setdefault(call_id, [])
        while len(self._blocks) > _MOST_KEPT:
            self._blocks.popitem(last=False)
        records = []
        for block in blocks:
            record = _shown_block(block, f"/calls/{call_id}/blocks/{len(kept)}")
            records.append(spelled_out(record))
            kept.append(block)
        return records

    def data(self, call_id: str, number: int) -> tuple[bytes, str] | None:
        """Return the bytes of a block and their media type."""
        blocks = self._blocks.get(call_id, [])
        match blocks[number] if number < len(blocks) else None:
            case Image(data, mime_type) | Audio(data, mime_type):
                return data, mime_type
            case Resource(_, bytes() as content, mime_type):
                return content, mime_type or "application/octet-stream"
        return None


def result_record(result: ToolResult, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a page shows of a result."""
    return {
        "blocks": blocks,
        "structured": spelled_out(result.to_dict()["structured"]),
        "is_error": result.is_error,
        "is_interrupted": result.is_interrupted,
        "error_code": result.error_code,
    }


def _shown_block(block: Block, address: str) -> dict[str, Any]:
    match block:
        case Text(text):
            # The lines of other systems end in two characters.
            return {"type": "text", "text": text.replace("\r\n", "\n")}
        case Image(data, mime_type) | Audio(data, mime_type):
            kind = "image" if isinstance(block, Image) else "audio"
            is_shown = mime_type in SHOWN_MEDIA
            return {
                "type": kind if is_shown else "file",
                "src": address,
                "mime_type": mime_type,
                "size": len(data),
            }
        case Resource(uri, str() as content, mime_type):
            return {"type": "resource", "uri": uri, "text": content, "mime_type": mime_type}
        case Resource(uri, content, mime_type):
            size = len(content)
            return {"type": "file", "src": address, "mime_type": mime_type, "size": size}
    assert isinstance(block, ResourceLink)
    return {"type": "link", "uri": block.uri, "text": block.name}
