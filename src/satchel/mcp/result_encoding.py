"""Encode tool results for the protocol."""

from collections.abc import Mapping
from typing import Any

from satchel.mcp_servers.protocol_fields import MCP_FIELDS
from satchel.tools import Block, ToolResult


def encode_result(result: ToolResult, *, is_stateless: bool) -> dict[str, Any]:
    """Return a result in the words of the protocol."""
    answered: dict[str, Any] = {
        **further_fields(result),
        "content": [encode_block(block) for block in result.content],
        "isError": result.is_error or result.is_interrupted,
        "resultType": "complete",
    }
    structured = result.structured
    # Only the later protocol has room for what is no object.
    if isinstance(structured, Mapping) or (is_stateless and structured is not None):
        answered["structuredContent"] = structured
    return answered


def further_fields(result: ToolResult) -> Mapping[str, Any]:
    """Return the fields of a result that its server sent beside its content."""
    fields: Mapping[str, Any] = result.metadata.get(MCP_FIELDS) or {}
    return fields


def encode_block(block: Block) -> dict[str, Any]:
    """Return a block with all fields that its server sent."""
    fields, encoded = block.mcp_fields, block.to_dict()
    if not fields:  # as nearly all blocks are
        return encoded
    if "resource" in encoded:
        encoded["resource"] = {**fields.get("resource", {}), **encoded["resource"]}
    return {**fields, **encoded}
