"""Encode what a host and the process of a plugin exchange inside MCP messages.

The host accepts only JSON from the process, and sends no value that JSON would change.
"""

import json
import logging
from collections.abc import Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

from satchel.errors import IsolatedToolError, ToolError
from satchel.tools import ToolChunk, ToolContext, ToolResult
from satchel.tools.content_blocks import block_from_dict
from satchel.tools.empty_mapping import NOTHING

_log = logging.getLogger("satchel.workers")

RESULT = "dev.satchel/result"
"""The `_meta` key for the parts of a result that MCP does not define."""

COMPLETE = "satchel:complete"
"""The tool name that completes an argument of a prompt or a resource; it names no tool."""

OFFER = "satchel:offer/"
"""The prefix of tool names that create a prompt or a resource."""

HOST_DECIDES = "host"
"""The value of `errors` with which the host makes the text of an unexpected exception."""


def is_exact(value: Any) -> bool:
    """Return whether JSON preserves a value."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return bool(json.loads(text) == value)
    except Exception:  # objects of the host may raise anything
        return False


def exact(value: Any, name: str) -> Any:
    """Return the value. Raises `ToolError` if JSON does not preserve it."""
    if not is_exact(value):
        raise _not_json(name)
    return value


def to_json_value(value: Any, name: str) -> Any:
    """Convert a value to JSON types, with lists for tuples. Raises `ToolError`."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except Exception:  # objects of the host may raise anything
        raise _not_json(name) from None
    return json.loads(text)


def _not_json(name: str) -> ToolError:
    return ToolError(f"{name} contains a value that JSON cannot represent; do not retry")


def exact_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that JSON preserves."""
    return {key: value for key, value in values.items() if is_exact({key: value})}


def encode_context(context: ToolContext) -> dict[str, Any]:
    """Encode what a tool may know of its call; the other process adds the tool's name."""
    return {
        "metadata": exact_part(context.metadata),
        "config": exact_part(context.config),
        "state": exact_part(context.state),
        "preapproved": list(context.preapproved),
        "agent_id": context.agent_id,
        "run_id": context.run_id,
        "iteration": context.iteration,
        "call_id": context.call_id,
    }


def decode_context(encoded: Mapping[str, Any]) -> ToolContext:
    """Decode what `encode_context` returned. Raises `KeyError`, `TypeError` or `ValueError`."""
    return ToolContext(
        metadata=MappingProxyType(dict(encoded["metadata"])),
        config=MappingProxyType(dict(encoded["config"])),
        state=dict(encoded["state"]),
        preapproved=tuple(encoded["preapproved"]),
        agent_id=str(encoded["agent_id"]),
        run_id=str(encoded["run_id"]),
        iteration=encoded["iteration"],
        call_id=str(encoded["call_id"]),
    )


def encode_chunk(chunk: ToolChunk) -> str:
    """Encode a chunk as JSON."""
    encoded = {
        "content": [block.to_dict() for block in chunk.content],
        # Chunks of a middleware are not validated before.
        "structured": chunk.structured if is_exact(chunk.structured) else None,
        "metadata": exact_part(chunk.metadata),
    }
    return json.dumps(encoded)


def decode_chunk(text: str) -> ToolChunk:
    """Decode a chunk from JSON."""
    encoded = json.loads(text)
    content = tuple(block_from_dict(item) for item in encoded["content"])
    return ToolChunk(
        content=content, structured=encoded["structured"], metadata=encoded["metadata"]
    )


def encode_result_extras(
    result: ToolResult, changes: Mapping[str, Any], raised: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the parts of a result that MCP does not define, and the changes of the state.

    `raised` is the name of an exception's type and its text.
    """
    return {
        "changes": changes,
        "is_error": result.is_error,
        "is_interrupted": result.is_interrupted,
        "error_code": result.error_code,
        "metadata": exact_part(result.metadata),
        "raised": raised,
    }


def decode_result(result: ToolResult) -> tuple[ToolResult, Mapping[str, Any]]:
    """Return the result of the plugin's tool, and the changes of the state."""
    extras = result.metadata.get(RESULT)
    if not isinstance(extras, Mapping):
        return result, NOTHING
    return ToolResult(
        content=result.content,
        structured=result.structured,
        is_error=bool(extras["is_error"]),
        is_interrupted=bool(extras["is_interrupted"]),
        error_code=extras["error_code"],
        metadata=extras["metadata"],
        exception=_exception(result.text, extras),
    ), extras["changes"]


def _exception(text: str, extras: Mapping[str, Any]) -> Exception | None:
    if not extras["raised"]:
        return None
    is_for_model = extras["error_code"] == "tool_error"
    return ToolError(text) if is_for_model else IsolatedToolError(*extras["raised"])


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a tool changed the state; also log the keys whose values JSON cannot represent."""
    now = exact_part(after)
    if lost := sorted(after.keys() - now.keys()):
        _log.warning("values in the state that JSON cannot represent are lost: %s", lost)
    return {
        "lost": lost,
        "set": {key: item for key, item in now.items() if key not in before or before[key] != item},
        "gone": [key for key in before if key not in after],
    }


def apply_changes(state: MutableMapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Apply the changes of `changes_of` to the state."""
    state.update(changes.get("set", {}))
    for key in changes.get("gone", ()):
        state.pop(key, None)
