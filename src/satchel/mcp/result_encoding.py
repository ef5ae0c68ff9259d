"""Encode tool results for the protocol."""

from collections.abc import Mapping
from typing import Any

from satchel.tools import ToolResult


def encode_result(result: ToolResult, *, is_stateless: bool) -> dict[str, Any]:
    """Return a result in the words of the protocol."""
    answered: dict[str, Any] = {
        "content": [block.to_dict() for block in result.content],
        "isError": result.is_error or result.is_interrupted,
        "resultType": "complete",
    }
    structured = result.structured
    # Only the later protocol has room for what is no object.
    if isinstance(structured, Mapping) or (is_stateless and structured is not None):
        answered["structuredContent"] = structured
    return answered
