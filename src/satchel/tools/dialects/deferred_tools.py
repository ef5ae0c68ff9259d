"""Tools whose schemas a provider loads when the model finds them by the provider's own search."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

_SEARCHES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        "openai-responses": {"type": "tool_search"},
    }
)
"""The search tools of the providers that have one, by dialect.

Sources: "Tool search tool" in Anthropic's and "Tool search" in OpenAI's documentation.
"""


def with_deferred(
    dialect: str, sent: list[dict[str, Any]], deferred: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return schemas with those that the provider loads later, and the provider's search tool.

    A provider without such a search gets only what is sent at once.
    """
    search = _SEARCHES.get(dialect)
    if search is None:
        return sent
    return [dict(search), *sent, *({**schema, "defer_loading": True} for schema in deferred)]
