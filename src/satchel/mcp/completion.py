"""Complete an argument of a prompt, or a part of a resource's address."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from satchel.catalog.catalog_entries import SkillEntry
from satchel.errors import ToolError
from satchel.mcp.skill_resources import TEMPLATE
from satchel.mcp.tool_client import ToolClient
from satchel.mcp.view_cache import ClientView
from satchel.mcp_servers.client_callbacks import Caller
from satchel.mcp_servers.server_offers import RemoteOffer, no_suggestions
from satchel.settings import Limits
from satchel.text import has_hidden
from satchel.tools.callables import in_thread
from satchel.tools.mcp_offers import Complete, McpPrompt, McpResource

_LOG = logging.getLogger("satchel.mcp")
_MAX = 100
_PATIENCE = 10.0
"""Seconds that a server may take."""
_MAX_READ = 10_000
"""Suggestions read from a plugin's function, which may be endless."""


async def completion(
    params: types.CompleteRequestParams, shown: ClientView, limits: Limits, client: ToolClient
) -> dict[str, Any]:
    """Return the completions that begin with the typed text."""
    if not _is_listed(params.ref, shown):
        raise MCPError(types.INVALID_PARAMS, "There is nothing of that name to complete.")
    argument, typed = params.argument.name, params.argument.value
    others = (params.context.arguments if params.context else None) or {}
    words: Iterable[str] = ()
    offered = _offered(params.ref, shown)
    if isinstance(offered, RemoteOffer):
        return {
            **await _server_values(offered, argument, typed, others, client),
            "resultType": "complete",
        }
    if offered is not None and offered.complete is not None:
        words = await _plugin_values(offered.complete, argument, typed, limits)
    elif getattr(params.ref, "uri", None) == TEMPLATE["uriTemplate"]:
        words = _skill_values(argument, others, shown.view.skills)
    values = sorted({word for word in words if word.startswith(typed) and not has_hidden(word)})
    total = len(values)
    completion = {"values": values[:_MAX], "total": total, "hasMore": total > _MAX}
    return {"completion": completion, "resultType": "complete"}


def _is_listed(
    reference: types.PromptReference | types.ResourceTemplateReference, shown: ClientView
) -> bool:
    lists = shown.lists
    if isinstance(reference, types.PromptReference):
        return any(item["name"] == reference.name for item in lists["prompts"].items)
    return any(
        reference.uri in {item.get("uri"), item.get("uriTemplate")}
        for key in ("resources", "resourceTemplates")
        for item in lists[key].items
    )


def _offered(
    reference: types.PromptReference | types.ResourceTemplateReference, shown: ClientView
) -> McpPrompt | McpResource | None:
    if isinstance(reference, types.PromptReference):
        return shown.offers.prompts.get(reference.name)
    return shown.offers.resources.get(reference.uri)


async def _server_values(
    offer: RemoteOffer, argument: str, typed: str, others: Mapping[str, str], client: ToolClient
) -> dict[str, Any]:
    """Return what a server suggests: it chooses and sorts; nothing if it fails."""
    with suppress(ToolError, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            caller = Caller(client, asyncio.get_running_loop())
            return await offer.suggest(argument, typed, others, caller)
    return no_suggestions()


async def _plugin_values(
    complete: Complete, argument: str, typed: str, limits: Limits
) -> Iterable[str]:
    """Return the suggestions of a plugin; none if it fails."""

    def words() -> list[str]:
        try:
            suggested = islice(complete(argument, typed), _MAX_READ)
            return [word for word in suggested if isinstance(word, str)]
        except BaseException:  # any: `SystemExit` must not end the server
            _LOG.warning("completing %r failed", argument, exc_info=True)
            return []

    with suppress(TimeoutError):
        async with asyncio.timeout(limits.hook):
            values: list[str] = await in_thread(words)
            return values
    _LOG.warning("completing %r took too long", argument)
    return ()


def _skill_values(
    argument: str, others: Mapping[str, str], skills: Iterable[SkillEntry]
) -> Iterable[str]:
    match argument:
        case "name":
            return (skill.name for skill in skills)
        case "path":
            named = (skill for skill in skills if skill.name == others.get("name", skill.name))
            return (file.name for skill in named for file in skill.files)
    return ()
