"""The input of every dialect."""

from collections.abc import Mapping
from typing import Any

from satchel.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolShape:
    """A tool as data: everything that a provider may see."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments; untrusted, so it may be any value."""
    output: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    """MCP's hints: title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint."""
