"""What a host and the process of a plugin say to each other inside the messages of MCP.

The host trusts nothing that comes from there further than JSON; what it says itself may hold no
value that JSON would make another of.
"""

import json
import logging
from base64 import b64decode
from collections.abc import Mapping, MutableMapping
from typing import Any

from satchel.errors import ToolError
from satchel.tools import (
    Audio,
    Block,
    Image,
    Resource,
    ResourceLink,
    Text,
    ToolChunk,
    ToolResult,
)
from satchel.tools.empty_mapping import NOTHING

_log = logging.getLogger("satchel.workers")

RESULT = "dev.satchel/result"
"""Where an answer says what of a result MCP has no word for."""

RULES = "satchel:rules"
"""Asks what a function of a contract says; no tool can be called so."""

COMPLETE = "satchel:complete"
"""Asks what an argument of something that is offered to MCP clients may be."""

OFFER = "satchel:offer/"
"""What the calls begin with that make a prompt or a resource."""


def is_exact(value: Any) -> bool:
    """Tell whether a value is the same after it was JSON."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return bool(json.loads(text) == value)
    except Exception:  # what holds objects of a host may raise anything
        return False


def exact(value: Any, what: str) -> Any:
    """Return a value that is the same after it was JSON. Raises `ToolError`."""
    if not is_exact(value):
        raise _unsayable(what)
    return value


def to_json_value(value: Any, what: str) -> Any:
    """Return a value as JSON has it, with lists for tuples. Raises `ToolError`."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except Exception:  # what holds objects of a host may raise anything
        raise _unsayable(what) from None
    return json.loads(text)


def _unsayable(what: str) -> ToolError:
    return ToolError(f"{what} holds what cannot be sent to its process; do not retry")


def exact_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that can be sent."""
    return {key: value for key, value in values.items() if is_exact({key: value})}


def encode_chunk(chunk: ToolChunk) -> str:
    """Write a chunk."""
    told = {
        "content": [block.to_dict() for block in chunk.content],
        # What a middleware tells nobody has checked.
        "structured": chunk.structured if is_exact(chunk.structured) else None,
        "metadata": exact_part(chunk.metadata),
    }
    return json.dumps(told)


def decode_chunk(text: str) -> ToolChunk:
    """Read a chunk."""
    told = json.loads(text)
    content = tuple(_block(item) for item in told["content"])
    return ToolChunk(content=content, structured=told["structured"], metadata=told["metadata"])


def encode_result_extras(result: ToolResult, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a result MCP has no word for, and how the state was changed."""
    return {
        "changes": changes,
        "is_error": result.is_error,
        "is_interrupted": result.is_interrupted,
        "error_code": result.error_code,
        "metadata": exact_part(result.metadata),
    }


def decode_result(result: ToolResult) -> tuple[ToolResult, Mapping[str, Any]]:
    """Return a result as it was before it became an answer, and how the state was changed."""
    told = result.metadata.get(RESULT)
    if not isinstance(told, Mapping):
        return result, NOTHING
    return ToolResult(
        content=result.content,
        structured=result.structured,
        is_error=bool(told["is_error"]),
        is_interrupted=bool(told["is_interrupted"]),
        error_code=told["error_code"],
        metadata=told["metadata"],
    ), told["changes"]


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a tool changed the state; what cannot be sent is as it was, and is logged."""
    now = exact_part(after)
    if lost := after.keys() - now.keys():
        _log.warning("JSON cannot say what was put into the state, so it is lost: %s", lost)
    return {
        "set": {key: item for key, item in now.items() if key not in before or before[key] != item},
        "gone": [key for key in before if key not in after],
    }


def apply_changes(state: MutableMapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Change the state as a tool did."""
    state.update(changes.get("set", {}))
    for key in changes.get("gone", ()):
        state.pop(key, None)


def _block(told: Mapping[str, Any]) -> Block:
    match told:
        case {"type": "image"}:
            return Image(b64decode(told["data"]), told["mimeType"])
        case {"type": "audio"}:
            return Audio(b64decode(told["data"]), told["mimeType"])
        case {"type": "resource_link"}:
            return ResourceLink(
                uri=told["uri"],
                name=told["name"],
                description=told.get("description"),
                mime_type=told.get("mimeType"),
            )
        case {"type": "resource", "resource": inside}:
            content = inside["text"] if "text" in inside else b64decode(inside["blob"])
            return Resource(inside["uri"], content, inside.get("mimeType"))
    return Text(told["text"])
