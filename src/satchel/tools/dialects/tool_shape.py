"""What every dialect is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolShape:
    """A tool as data: all that a provider may be told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments; of type object, but what strangers write may be anything."""
    output: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    """MCP's hints: title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint."""
