"""The shapes that providers want tools in: pure functions of values, one module for each."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.errors import NotFoundError
from satchel.names import near_misses
from satchel.tools.dialects.anthropic_dialect import anthropic
from satchel.tools.dialects.gemini_dialect import gemini
from satchel.tools.dialects.mcp_dialect import mcp
from satchel.tools.dialects.null_arguments import without_nulls
from satchel.tools.dialects.openai_dialect import openai
from satchel.tools.dialects.openai_strict_dialect import openai_strict
from satchel.tools.dialects.schema_walk import shown
from satchel.tools.dialects.tool_shape import ToolShape

DIALECTS = ("openai", "openai-strict", "anthropic", "gemini", "mcp")
"""The names of the dialects, in the order in which they are listed to people."""

_MAKERS: Mapping[str, Callable[[ToolShape], dict[str, Any]]] = MappingProxyType(
    dict(zip(DIALECTS, (openai, openai_strict, anthropic, gemini, mcp), strict=True))
)

__all__ = ["DIALECTS", "ToolShape", "in_dialect", "shown", "without_nulls"]


def in_dialect(dialect: str, shape: ToolShape) -> dict[str, Any]:
    """Describe a tool as the provider wants it; what comes back shares nothing with the tool.

    Raises `NotFoundError` for a dialect that there is not, and `DefinitionError` for a schema that
    is nested deeper than 256 schemas.
    """
    if dialect not in _MAKERS:
        raise NotFoundError("dialect", dialect, near_misses(dialect, DIALECTS))
    return _MAKERS[dialect](shape)
