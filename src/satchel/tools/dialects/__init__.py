"""Dialects: the formats in which providers expect tools, one module each, pure functions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.names import require_known
from satchel.tools.dialects.anthropic_dialect import anthropic
from satchel.tools.dialects.deferred_tools import with_deferred
from satchel.tools.dialects.gemini_dialect import gemini
from satchel.tools.dialects.mcp_dialect import mcp
from satchel.tools.dialects.null_arguments import without_nulls
from satchel.tools.dialects.openai_dialect import openai, openai_responses
from satchel.tools.dialects.openai_strict_dialect import openai_strict
from satchel.tools.dialects.schema_walk import shown
from satchel.tools.dialects.tool_shape import ToolShape

DIALECTS = ("openai", "openai-strict", "openai-responses", "anthropic", "gemini", "mcp")
"""The names of the dialects, in the order in which they are listed."""

_MAKERS: Mapping[str, Callable[[ToolShape], dict[str, Any]]] = MappingProxyType(
    dict(
        zip(
            DIALECTS, (openai, openai_strict, openai_responses, anthropic, gemini, mcp), strict=True
        )
    )
)

__all__ = ["DIALECTS", "ToolShape", "in_dialect", "shown", "with_deferred", "without_nulls"]


def in_dialect(dialect: str, shape: ToolShape) -> dict[str, Any]:
    """Return the description of a tool in a dialect; it shares nothing with the tool.

    Raises `NotFoundError` for an unknown dialect, and `DefinitionError` for a schema that is nested
    deeper than 256 levels.
    """
    require_known("dialect", dialect, DIALECTS)
    return _MAKERS[dialect](shape)
