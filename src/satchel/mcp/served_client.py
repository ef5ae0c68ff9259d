"""One client: its session, and what it was told."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp.server.connection import Connection
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from satchel.catalog import SkillEntry
from satchel.mcp.skill_resources import address_of
from satchel.mcp.tool_client import Level
from satchel.mcp.view_cache import ClientMode, ClientView
from satchel.session import Session


@dataclass(eq=False, kw_only=True)
class ServedClient:
    """What is remembered of a client while its connection lasts; of one request, if it has none."""

    session: Session
    manner: ClientMode
    connection: Connection | None = None
    level: Level = "info"
    """From which level on it wants lines for its log."""
    subscribed: set[str] = field(default_factory=set)
    """The resources whose changes it wants to hear of."""
    told: ClientView | None = None
    """What it may take for current; `None` until it is ready to be told."""
    is_being_told: bool = False
    has_news: bool = False


def events_between(before: ClientView, after: ClientView) -> Iterator[ServerEvent]:
    """Yield what clients are told about the way from one to the other."""
    old, new = before.lists, after.lists
    if old["tools"] != new["tools"]:
        yield ToolsListChanged()
    if old["prompts"] != new["prompts"]:
        yield PromptsListChanged()
    if any(old[key] != new[key] for key in ("resources", "resourceTemplates")):
        yield ResourcesListChanged()
        yield from _updates(before.view.skills, after.view.skills)
    known = before.offers.resources
    for uri, resource in after.offers.resources.items():
        # Another version of the plugin that makes it may make another one of it.
        if not resource.is_template and known.get(uri) is not resource:
            yield ResourceUpdated(uri)


def _updates(before: Iterable[SkillEntry], after: Iterable[SkillEntry]) -> Iterator[ServerEvent]:
    """Yield which files came, went and changed."""
    # A skill that did not change is the same one in each generation.
    kept = {id(skill) for skill in before} & {id(skill) for skill in after}
    old, new = (
        {
            address_of(skill, file.name): file.digest
            for skill in skills
            if id(skill) not in kept
            for file in skill.files
        }
        for skills in (before, after)
    )
    for uri in sorted(old.keys() | new.keys()):
        if old.get(uri) != new.get(uri):
            yield ResourceUpdated(uri)


async def send(event: ServerEvent, talk: ServedClient) -> None:
    """Tell a client of the protocol with a handshake, whether it is busy or idle."""
    connection = talk.connection
    if connection is None:
        return
    match event:
        case ToolsListChanged():
            await connection.send_tool_list_changed()
        case PromptsListChanged():
            await connection.send_prompt_list_changed()
        case ResourcesListChanged():
            await connection.send_resource_list_changed()
        case ResourceUpdated(uri=uri) if uri in talk.subscribed:
            await connection.send_resource_updated(uri)


def connection_of(ctx: Any) -> Connection:
    """Return the connection that a request came by.

    The SDK keeps room on it for what lives as long as it does, but shows it to nobody yet.
    """
    found: Connection = ctx.session._connection  # noqa: SLF001 - see above
    return found
