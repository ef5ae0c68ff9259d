"""The state of one served client."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from mcp.server.connection import Connection
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from satchel.catalog.catalog_entries import SkillEntry
from satchel.lazy_dataclass import dataclass
from satchel.mcp.skill_resources import address_of
from satchel.mcp.tool_client import Level
from satchel.mcp.view_cache import ClientMode, ClientView
from satchel.session.session import Session


@dataclass(eq=False, kw_only=True)
class ServedClient:
    """A client's session and state; it lasts as long as its connection, or for one request."""

    session: Session
    mode: ClientMode
    connection: Connection | None = None
    level: Level = "info"
    """The lowest level of log messages it wants."""
    given: frozenset[str] = frozenset()
    """The groups that the operator asked for and that were activated, now or earlier."""
    subscribed: dict[str, Callable[[], object]] = field(default_factory=dict)
    """The resources that it subscribed to, with what ends that."""
    updated: set[str] = field(default_factory=set)
    """Resources of servers that changed; it was not notified yet."""
    shown: ClientView | None = None
    """The last view it was notified of; `None` before it is initialized."""
    is_being_notified: bool = False
    has_news: bool = False

    def unsubscribe(self, *uris: str) -> None:
        """End the subscription to some resources, without any to all."""
        for uri in uris or tuple(self.subscribed):
            self.subscribed.pop(uri, lambda: None)()


def events_between(before: ClientView, after: ClientView) -> Iterator[ServerEvent]:
    """Yield the notifications for the differences between two views."""
    old, new = before.lists, after.lists
    if old["tools"] != new["tools"]:
        yield ToolsListChanged()
    if old["prompts"] != new["prompts"]:
        yield PromptsListChanged()
    if any(old[key] != new[key] for key in ("resources", "resourceTemplates")):
        yield ResourcesListChanged()
        yield from _updates(before.view.skills, after.view.skills)
    resources = before.offers.resources
    for uri, resource in after.offers.resources.items():
        # A new version of its plugin may return other content.
        if not resource.is_template and resources.get(uri) != resource:
            yield ResourceUpdated(uri)


def _updates(before: Iterable[SkillEntry], after: Iterable[SkillEntry]) -> Iterator[ServerEvent]:
    # An unchanged skill is the same object in each generation.
    kept = {id(skill) for skill in before} & {id(skill) for skill in after}
    old, new = (
        {
            address_of(skill, file.name): file.version
            for skill in skills
            if id(skill) not in kept
            for file in skill.files
        }
        for skills in (before, after)
    )
    for uri in sorted(old.keys() | new.keys()):
        if old.get(uri) != new.get(uri):
            yield ResourceUpdated(uri)


async def send(event: ServerEvent, client: ServedClient) -> None:
    """Send a notification over the client's connection, if it has one."""
    connection = client.connection
    if connection is None:
        return
    match event:
        case ToolsListChanged():
            await connection.send_tool_list_changed()
        case PromptsListChanged():
            await connection.send_prompt_list_changed()
        case ResourcesListChanged():
            await connection.send_resource_list_changed()
        case ResourceUpdated(uri=uri) if uri in client.subscribed:
            await connection.send_resource_updated(uri)
