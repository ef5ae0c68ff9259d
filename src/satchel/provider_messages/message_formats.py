"""From a provider's message to calls, and from results to the provider's messages."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, cast

from satchel.errors import NotFoundError
from satchel.names import near_misses
from satchel.provider_messages import (
    anthropic_messages,
    gemini_messages,
    mcp_messages,
    openai_messages,
    responses_messages,
)
from satchel.provider_messages.message_parts import Message
from satchel.tools import ToolCall, ToolResult

_PROVIDERS: Mapping[str, ModuleType] = MappingProxyType(
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
    read = cast("Callable[[Any], list[ToolCall]]", _messages_of(dialect).read_calls)
    return read(message)


def result_messages(
    calls: Iterable[ToolCall], results: Iterable[ToolResult], dialect: str = "openai"
) -> list[Message]:
    """Return the messages that answer calls, to be sent after the model's message.

    `calls` are those of `calls_in`, `results` those of `execute`, in the same order. What the
    provider cannot take becomes words that say so. Raises `NotFoundError` for an unknown dialect,
    and `ValueError` unless there is one result for each call.
    """
    write = _messages_of(dialect).write_results
    return cast("list[Message]", write(list(zip(calls, results, strict=True))))


def _messages_of(dialect: str) -> ModuleType:
    if dialect not in _PROVIDERS:
        raise NotFoundError("dialect", dialect, near_misses(dialect, _PROVIDERS))
    return _PROVIDERS[dialect]
