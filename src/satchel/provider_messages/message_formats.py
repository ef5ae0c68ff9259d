"""From a provider's message to calls, and from results to the provider's messages."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.lazy_dataclass import dataclass
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

Pair = tuple[ToolCall, ToolResult]


@dataclass(frozen=True, slots=True)
class MessageFormat:
    """How a provider's messages are read and written."""

    read_calls: Callable[[Any], list[ToolCall]]
    write_results: Callable[[Iterable[Pair]], list[Message]]


_FORMATS: Mapping[str, MessageFormat] = MappingProxyType(
    {
        **dict.fromkeys(
            ("openai", "openai-strict"),
            MessageFormat(openai_messages.read_calls, openai_messages.write_results),
        ),
        "openai-responses": MessageFormat(
            responses_messages.read_calls, responses_messages.write_results
        ),
        "anthropic": MessageFormat(anthropic_messages.read_calls, anthropic_messages.write_results),
        "gemini": MessageFormat(gemini_messages.read_calls, gemini_messages.write_results),
        "mcp": MessageFormat(mcp_messages.read_calls, mcp_messages.write_results),
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
