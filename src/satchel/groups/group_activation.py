"""Which groups a session activates, and which tools and skills that makes visible."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import TypeVar

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import GroupEntry, SkillEntry, Status, ToolEntry
from satchel.errors import ConflictError
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP

M = TypeVar("M", ToolEntry, SkillEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The groups that a session activated or deactivated; each other group has its own default.

    Names of groups and tools that do not exist are kept: the group of a plugin that is removed and
    installed again is as it was.
    """

    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Tools that are active alone, without the rest of their groups."""
    defers: bool = False
    """Whether the model may also call the tools of groups that are not active."""

    def activate(self, name: str) -> "Activation":
        """Return a copy with a group activated."""
        return replace(self, on=self.on | {name}, off=self.off - {name})

    def deactivate(self, name: str) -> "Activation":
        """Return a copy with a group deactivated. Raises `ConflictError` for `basic`."""
        if name == BASIC_GROUP:
            raise ConflictError(f"group {BASIC_GROUP!r} is always active")
        return replace(self, on=self.on - {name}, off=self.off | {name})

    def only(self, names: Iterable[str], all_names: Iterable[str]) -> "Activation":
        """Return a copy with these groups activated, and all other groups deactivated."""
        on = frozenset(names)
        return replace(self, on=on, off=frozenset(all_names) - on - {BASIC_GROUP})

    def is_active(self, group: GroupEntry) -> bool:
        """Return whether a group is active."""
        if group.name == BASIC_GROUP:  # even if a saved state says otherwise
            return True
        if not group.is_available:
            return False
        return group.name in self.on or (group.active and group.name not in self.off)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of one catalog that a session sees."""

    groups: tuple[GroupEntry, ...]
    tools: tuple[ToolEntry, ...]
    skills: tuple[SkillEntry, ...]
    model_skills: tuple[SkillEntry, ...]
    """The skills that the model may see; only the host sees the others."""
    deferred: frozenset[str] = frozenset()
    """The names of the tools that the model may call but whose schemas it does not have yet."""
    by_name: Mapping[str, ToolEntry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        by_name = {entry.name: entry for entry in self.tools}
        object.__setattr__(self, "by_name", MappingProxyType(by_name))

    @property
    def sent_tools(self) -> tuple[ToolEntry, ...]:
        """Return the tools that can be called, without those that are deferred, as registered."""
        return as_registered(it for it in self.tools if it.name not in self.deferred)

    @property
    def deferred_tools(self) -> tuple[ToolEntry, ...]:
        """Return the tools that are deferred, as registered."""
        return as_registered(it for it in self.tools if it.name in self.deferred)


VisibleSkills = tuple[tuple[SkillEntry, ...], tuple[SkillEntry, ...]]
"""The visible skills, and those of them that the model may see."""


def active_in(catalog: Catalog, activation: Activation) -> frozenset[str]:
    """Return the names of the active groups."""
    groups = catalog.groups.values()
    return frozenset(group.name for group in groups if activation.is_active(group))


def view_of(catalog: Catalog, activation: Activation, skills: VisibleSkills | None = None) -> View:
    """Return what the active groups make visible, and the skills that belong to no group.

    `skills` is a result of `visible_skills` that another view with the same skills shares.
    """
    active = active_in(catalog, activation)
    groups = tuple(group for group in catalog.groups.values() if group.name in active)
    usable = frozenset(group.name for group in catalog.groups.values() if group.is_available)

    def is_sent(tool: ToolEntry) -> bool:
        is_alone = tool.name in activation.tools and not usable.isdisjoint(tool.groups)
        return is_alone or not active.isdisjoint(tool.groups)

    tools = _visible(catalog.all_tools, is_sent)
    deferred: tuple[ToolEntry, ...] = ()
    if activation.defers:
        sent = {tool.name for tool in tools}
        others = _visible(catalog.all_tools, lambda tool: not usable.isdisjoint(tool.groups))
        deferred = tuple(tool for tool in others if tool.tool and tool.name not in sent)
    visible, for_model = skills or visible_skills(catalog, active)
    return View(
        groups=groups,
        tools=(*tools, *deferred),
        skills=visible,
        model_skills=for_model,
        deferred=frozenset(tool.name for tool in deferred),
    )


def visible_skills(catalog: Catalog, active: frozenset[str]) -> VisibleSkills:
    """Return the skills of the active groups and those without a group.

    Groups without skills make no difference.
    """
    if catalog.groups_of_skills:
        skills = _visible(
            catalog.all_skills,
            lambda skill: not (skill.groups and active.isdisjoint(skill.groups)),
        )
    else:
        skills = catalog.served_skills  # one for each name, and no other is hidden
    return skills, tuple(compress(skills, map(attrgetter("is_for_model"), skills)))


def _visible(entries: Iterable[M], is_active: Callable[[M], bool]) -> tuple[M, ...]:
    """Return one entry for each name: an inactive entry does not shadow an active one."""
    by_name: dict[str, M] = {}
    for entry in entries:
        if not is_active(entry):
            continue
        if entry.is_served:
            by_name[entry.name] = entry
        elif entry.state is Status.SHADOWED:
            by_name.setdefault(entry.name, entry)
    return tuple(by_name.values())


def as_registered(entries: Iterable[ToolEntry]) -> tuple[ToolEntry, ...]:
    """Return the tools that can be called in the order of their registration.

    The tools of the host come first, then those of folders and packages by path, and in a file
    those that it defines first.
    """
    callable_tools = (entry for entry in entries if entry.tool)
    return tuple(sorted(callable_tools, key=attrgetter("scope", "rank")))


def stable_order(names: tuple[str, ...], seen: tuple[str, ...]) -> tuple[str, ...]:
    """Sort tools by when the session first saw them, with new ones at the end.

    The start of the prompt does not change then, so the model provider's cache stays valid.
    """
    if not seen or names == seen:
        return names
    positions = {name: position for position, name in enumerate(seen)}
    return tuple(sorted(names, key=lambda name: positions.get(name, len(positions))))
