"""From a provider's message to calls, and from results to the provider's messages."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from satchel.names import require_known
from satchel.provider_messages import (
    anthropic_messages,
    gemini_messages,
    mcp_messages,
    openai_messages,
    responses_messages,
)
from satchel.provider_messages.message_parts import Message
from satchel.tools import ToolCall, ToolResult
from satchel.tools.tool_call import pairs_of


class MessageFormat(Protocol):
    """How the module of a provider's messages reads and writes them."""

    def read_calls(self, message: Any, /) -> list[ToolCall]:
        """Return the calls in a model's message."""

    def write_results(self, pairs: Iterable[tuple[ToolCall, ToolResult]], /) -> list[Message]:
        """Return the messages that answer calls."""


_FORMATS: Mapping[str, MessageFormat] = MappingProxyType(
    {
        "openai": openai_messages,
        "openai-strict": openai_messages,
        "openai-responses": responses_messages,
        "anthropic": anthropic_messages,
        "gemini": gemini_messages,
        "mcp": mcp_messages,
    }
)


def calls_in(message: Any, dialect: str = "openai") -> list[ToolCall]:
    """Return the tool calls in a model's message, in their order; `[]` if there are none.

    `message` is what the provider sent, as its library returns it or as JSON. Raises
    `NotFoundError` for an unknown dialect.
    """
    return _format_of(dialect).read_calls(message)


def result_messages(
    calls: Iterable[ToolCall], results: Iterable[ToolResult], dialect: str = "openai"
) -> list[Message]:
    """Return the messages that answer calls, to be sent after the model's message.

    `calls` are those of `calls_in`, `results` those of `execute`, in the same order. What the
    provider cannot take becomes words that say so. Raises `NotFoundError` for an unknown dialect,
    and `ValueError` unless there is one result for each call.
    """
    return _format_of(dialect).write_results(pairs_of(calls, results))


def _format_of(dialect: str) -> MessageFormat:
    require_known("dialect", dialect, _FORMATS)
    return _FORMATS[dialect]
