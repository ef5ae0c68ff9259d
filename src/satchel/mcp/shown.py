"""What a server shows of one generation with the same groups active: its lists, made once."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from satchel.catalog import Catalog
from satchel.errors import SatchelError
from satchel.groups import View
from satchel.mcp.choosing import Choice, seen, with_those_of_skills
from satchel.mcp.fitness import Fitting
from satchel.mcp.listing import Listing
from satchel.mcp.offering import Offers, described_prompt, described_resource
from satchel.mcp.prompts import prompts_of
from satchel.mcp.skills import TEMPLATE, resources_of
from satchel.names import BASIC_GROUP
from satchel.prompt.skills import DEFAULT_TEMPLATE, LOADER_TIGHT_TEMPLATE
from satchel.satchel import Satchel
from satchel.session import Session

GROUP_KEY = "dev.satchel/group"
"""Where in `_meta` a tool says which group it belongs to."""

_TASK_TOOLS = frozenset({"view_task", "wait_task", "cancel_task"})


@dataclass(frozen=True, slots=True)
class Manner:
    """How a connection works: what its protocol and transport let a session do."""

    can_switch: bool
    """Whether groups can be switched, because its tools may differ from those of others."""
    is_lasting: bool
    """Whether its session lives longer than one request."""


@dataclass(frozen=True)
class Shown:
    """The lists, and what of the generation they were made of."""

    catalog: Catalog
    active: frozenset[str]
    view: View
    tools: Listing
    prompts: Listing
    resources: Listing
    templates: Listing
    offers: Offers
    """What plugins offer beside tools and skills."""
    texts: Mapping[str, str]
    """The skill prompt and the notes, by the names of their prompts."""
    schemas: Mapping[str, Mapping[str, Any]]
    """The schema of the arguments of each tool, by its name."""
    instructions: str
    """What a model should know before it begins."""
    on_wire: dict[tuple[str, str, str | None], dict[str, Any]] = field(default_factory=dict)
    """Answers as they were sent: by method, version of the protocol, and cursor."""
    entries: list[Listing] = field(default_factory=list)
    """The entries of the skills, once somebody asked for them."""


class Showcase:
    """Makes what is shown, and keeps it while the generation is the newest."""

    def __init__(self, bag: Satchel, choice: Choice) -> None:
        self._bag, self.choice = bag, choice
        self._catalog = bag.catalog
        self._made: dict[tuple[frozenset[str], Manner], Shown] = {}
        self._first: dict[Manner, frozenset[str]] = {}
        self._fitting = Fitting()

    def session(self, manner: Manner) -> Session:
        """Begin a session with what is active to begin with."""
        options = self.choice
        session = self._bag.session(
            meta_tool=manner.can_switch,
            skill_tools=options.skill_tools,
            search=None if manner.can_switch else False,
        )
        style = session.skill_style
        # Where a skill lies on this machine is of no use to a client that loads it by its name.
        if options.skill_tools and style.template == DEFAULT_TEMPLATE:
            session.skill_style = replace(style, template=LOADER_TIGHT_TEMPLATE)
        self.settle(session, self.first(manner))
        return session

    def first(self, manner: Manner) -> frozenset[str]:
        """Return the groups that are active to begin with."""
        catalog = self._newest()
        if (active := self._first.get(manner)) is None:
            active = self.choice.active_in(catalog)
            if not (manner.can_switch or self.choice.is_fixed):
                active = with_those_of_skills(catalog, active)
            self._first[manner] = active
        return active

    def settle(self, session: Session, active: frozenset[str]) -> None:
        """Have exactly these groups active."""
        now = frozenset(session.active_groups)
        for name in now ^ active:
            with suppress(SatchelError):  # a reload may take a group away at any moment
                (session.deactivate if name in now else session.activate)(name)

    def shown(self, active: Iterable[str], manner: Manner) -> Shown:
        """Return what is shown of the newest generation while these groups are active."""
        catalog, key = self._newest(), (frozenset(active), manner)
        if (made := self._made.get(key)) is None:
            made = self._made[key] = self._make(catalog, *key)
        return made

    def _newest(self) -> Catalog:
        """Return the newest generation, and forget what was made of another."""
        if (catalog := self._bag.catalog) is not self._catalog:
            self._catalog, self._made, self._first = catalog, {}, {}
            self._fitting.forget_all_but((tool.name, tool.version) for tool in catalog.all_tools)
        return self._catalog

    def _make(self, catalog: Catalog, active: frozenset[str], manner: Manner) -> Shown:
        session = self.session(manner)
        self.settle(session, active)
        step = session.step()
        view = seen(catalog, active)
        tools = [
            {**fitted, "_meta": {GROUP_KEY: _group_of(schema["name"], view)}}
            for schema in step.schemas("mcp")
            if self.choice.lets(schema["name"])
            and (manner.is_lasting or not _is_of_tasks(schema["name"], view))
            and (fitted := self._fitting.fitted(schema, _version_of(schema["name"], view)))
        ]
        texts = {"skill_prompt": step.skill_prompt(), "activated_notes": step.activated_notes()}
        texts = {name: text for name, text in texts.items() if text}
        offers = Offers.of(catalog, active)
        described = [described_resource(one) for one in offers.resources.values()]
        return Shown(
            catalog,
            active,
            view,
            Listing.of(tools),
            Listing.of(_prompts(view, texts, offers)),
            # Also when only the text of a skill changes, what was read is out of date.
            Listing.of(
                [*resources_of(view.skills), *(one for one in described if "uri" in one)],
                (skill.version for skill in view.skills),
            ),
            Listing.of([TEMPLATE, *(one for one in described if "uri" not in one)]),
            offers,
            texts,
            {tool["name"]: tool["inputSchema"] for tool in tools},
            step.prompt(),
        )


def _prompts(view: View, texts: Iterable[str], offers: Offers) -> list[dict[str, Any]]:
    """Describe all prompts; of one name ours count first, then those of plugins, then skills."""
    found: dict[str, dict[str, Any]] = {}
    ours, skills = prompts_of(view, texts)
    for one in (*ours, *map(described_prompt, offers.prompts.values()), *skills):
        found.setdefault(one["name"], one)
    return list(found.values())


def _group_of(name: str, view: View) -> str:
    entry = view.by_name.get(name)
    return entry.group if entry else BASIC_GROUP


def _version_of(name: str, view: View) -> str:
    entry = view.by_name.get(name)
    return entry.version if entry else ""


def _is_of_tasks(name: str, view: View) -> bool:
    """Tell whether a tool is one of those that look after background tasks."""
    return name in _TASK_TOOLS and name not in view.by_name
