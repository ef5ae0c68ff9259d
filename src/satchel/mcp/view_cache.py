"""The views of clients: lists of one catalog generation with the same active groups, made once."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_offers import CatalogOffers
from satchel.configuration.selection import tool_pattern
from satchel.errors import SatchelError
from satchel.groups.group_activation import View
from satchel.lazy_dataclass import dataclass
from satchel.mcp.mcp_prompts import prompts_of
from satchel.mcp.pagination import PagedList
from satchel.mcp.plugin_offers import described_offer
from satchel.mcp.protocol_validation import DescriptionCache, described_tool
from satchel.mcp.served_selection import ServedSelection, with_those_of_skills
from satchel.mcp.skill_resources import TEMPLATE, SkillEntryCache, resources_of, without_folders
from satchel.names import BASIC_GROUP
from satchel.prompt.skill_prompt import DEFAULT_TEMPLATE, LOADER_LINE, NO_LOCATION_TEMPLATE
from satchel.satchel import Satchel
from satchel.session.session import Session
from satchel.session.step import Step
from satchel.shared import Memo
from satchel.tools import McpPrompt, McpResource

_TASK_TOOLS = frozenset({"view_task", "wait_task", "cancel_task"})
_TEXTS = ("skill_prompt", "activated_notes")
"""The names of the built-in prompts."""
_MOST = 16
"""How many views are kept, one for each choice of groups."""


@dataclass(frozen=True, slots=True)
class ClientMode:
    """What the protocol and the transport of a connection let a session do."""

    can_switch: bool
    """Whether the client can activate groups: its tools may differ from those of other clients."""
    is_lasting: bool
    """Whether its session lives longer than one request."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientView:
    """What a client sees: the lists, and the catalog they were made from."""

    catalog: Catalog
    active: frozenset[str]
    view: View
    lists: Mapping[str, PagedList]
    """The lists, by the names that the protocol gives them."""
    offers: CatalogOffers
    """The prompts and resources of plugins and servers."""
    texts: Mapping[str, str]
    """The skill prompt and the notes, by the names of their prompts."""
    instructions: str
    """The instructions for the model, sent when a client connects."""
    manifests: SkillEntryCache

    @cached_property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the input schema of each tool, by its name."""
        return {tool["name"]: tool["inputSchema"] for tool in self.lists["tools"].items}

    @cached_property
    def entries(self) -> PagedList:
        """Return the entries of the skills; this reads their files."""
        return PagedList.of(self.manifests.listed(self.view.model_skills))


Key = tuple[frozenset[str], ClientMode]
"""A view depends on the active groups and on the connection."""


class ViewCache:
    """Makes views, and keeps them with the catalog that they are made from.

    Clients that are not `local` do not see the paths of skills on this machine.
    """

    def __init__(
        self,
        app: Satchel,
        choice: ServedSelection,
        manifests: SkillEntryCache,
        *,
        local: bool = True,
    ) -> None:
        self._app, self.choice, self._is_local = app, choice, local
        self._manifests = manifests
        self._lists: dict[Key, Mapping[str, PagedList]] = {}
        """The last lists, of any generation."""
        self._fitting = DescriptionCache()
        self._key = object()

    def session(self, mode: ClientMode) -> Session:
        """Return a new session with the groups that are active at first."""
        options = self.choice
        session = self._app.session(
            meta_tool=mode.can_switch,
            skill_tools=options.skill_tools,
            search=None if mode.can_switch else False,
            # Names of tools: without a kind, a pattern counts for skills, too.
            enable=list(map(tool_pattern, options.enable)),
            disable=list(map(tool_pattern, options.disable)),
        )
        style = session.skill_style
        # A client that loads skills by name does not need their paths on this machine.
        if options.skill_tools and style.template == DEFAULT_TEMPLATE:
            line = style.line_template or LOADER_LINE
            session.skill_style = replace(style, template=NO_LOCATION_TEMPLATE, line_template=line)
        self.activate_only(session, self.initial_groups(mode))
        return session

    def initial_groups(self, mode: ClientMode) -> frozenset[str]:
        """Return the groups that are active at first."""
        cache = self._app.catalog_cache

        def active() -> frozenset[str]:
            active = self.choice.active_in(cache.catalog, can_switch=mode.can_switch)
            if not (mode.can_switch or self.choice.is_fixed):
                active = with_those_of_skills(cache.catalog, active)
            return active

        return cache.get_or_make((self._key, mode), active)

    def activate(self, session: Session, groups: Iterable[str]) -> None:
        """Activate further groups."""
        for name in groups:
            with suppress(SatchelError):  # a reload may remove a group at any moment
                session.activate(name)

    def activate_only(self, session: Session, active: frozenset[str]) -> None:
        """Activate these groups and deactivate all others."""
        now = frozenset(session.active_groups)
        for name in now ^ active:
            with suppress(SatchelError):  # a reload may remove a group at any moment
                (session.deactivate if name in now else session.activate)(name)

    def view_of(self, active: Iterable[str], mode: ClientMode) -> ClientView:
        """Return the view of the newest generation while these groups are active."""
        cache, key = self._app.catalog_cache, (frozenset(active), mode)
        # With its own bound: views are large, and clients choose the groups.
        views = cache.get_or_make(self._key, lambda: self._new_memo(cache.catalog))
        return views.get_or_make(key, lambda: self._make(cache.catalog, *key))

    def hider(self, catalog: Catalog) -> Callable[[str], str] | None:
        """Return a function that removes local paths from a text; `None` for local clients."""
        if self._is_local:
            return None
        return lambda text: without_folders(text, catalog.all_skills)

    def _new_memo(self, catalog: Catalog) -> Memo:
        """Return the memo for the views of a catalog; forget what is not in it any more."""
        offers = (one for plugin in catalog.plugins.values() for one in plugin.contribution.offers)
        self._fitting.forget_all_but([*catalog.all_tools, *offers])
        self._manifests.forget_all_but(catalog.all_skills)
        return Memo(_MOST)

    def _make(self, catalog: Catalog, active: frozenset[str], mode: ClientMode) -> ClientView:
        session = self.session(mode)
        self.activate_only(session, active)
        step = session.step()
        hide = self.hider(catalog) or str
        texts = {"skill_prompt": step.skill_prompt(), "activated_notes": step.activated_notes()}
        texts = {name: hide(text) for name, text in texts.items() if text}
        # Prompts of servers are listed with their own arguments, not as skills of the user.
        skills = [one for one in step.view.skills if not one.access.fills_arguments]
        offers = CatalogOffers.of(catalog, active, {*_TEXTS, *(skill.name for skill in skills)})
        resources, view = self._offered(offers.resources.values()), step.view
        lists = {
            "tools": PagedList.of(self._tools(step, mode)),
            "prompts": PagedList.of(
                prompts_of(skills, texts, self._offered(offers.prompts.values()))
            ),
            "resources": PagedList.of(
                [*resources_of(skills), *(one for one in resources if "uri" in one)],
                # If only the text of a skill changes, resources that were read are outdated.
                (skill.version for skill in view.skills),
            ),
            "resourceTemplates": PagedList.of(
                [TEMPLATE, *(one for one in resources if "uri" not in one)]
            ),
        }
        # An equal list is the same object, with the responses that were made from it.
        before = self._lists.pop((active, mode), {})
        lists = {
            key: earlier if (earlier := before.get(key)) == listing else listing
            for key, listing in lists.items()
        }
        self._lists[active, mode] = lists  # now the newest
        if len(self._lists) > _MOST:
            del self._lists[next(iter(self._lists))]
        instructions = hide(step.prompt())
        return ClientView(
            catalog=catalog,
            active=active,
            view=view,
            lists=lists,
            offers=offers,
            texts=texts,
            instructions=instructions,
            manifests=self._manifests,
        )

    def _tools(self, step: Step, mode: ClientMode) -> Iterable[dict[str, Any]]:
        described = self._fitting.described
        descriptions = [
            described(entry, partial(described_tool, entry.tool, entry.group))
            for entry in step.view.tools
            if entry.tool is not None
        ]
        descriptions += [
            described(tool, partial(described_tool, tool, BASIC_GROUP))
            for tool in step.own_tools
            if self.choice.enables(tool.name) and (mode.is_lasting or tool.name not in _TASK_TOOLS)
        ]
        return (item for item in descriptions if item is not None)

    def _offered(self, offers: Iterable[McpPrompt | McpResource]) -> list[dict[str, Any]]:
        described = self._fitting.described
        descriptions = (described(offer, partial(described_offer, offer)) for offer in offers)
        return [item for item in descriptions if item is not None]
