"""Activation: a conversation's choice of groups, and what it makes visible."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from satchel.catalog import Catalog, GroupEntry, SkillEntry, Status, ToolEntry
from satchel.errors import ConflictError
from satchel.names import BASIC_GROUP

M = TypeVar("M", ToolEntry, SkillEntry)


@dataclass(frozen=True, slots=True)
class Activation:
    """What one conversation switched on and off, against each group's own default.

    Groups that do not exist are kept: a plugin that goes and comes back finds its group as it was.
    """

    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()

    def activate(self, name: str) -> "Activation":
        """Return the activation with a group switched on."""
        return replace(self, on=self.on | {name}, off=self.off - {name})

    def deactivate(self, name: str) -> "Activation":
        """Return the activation with a group switched off. Raises `ConflictError` for `basic`."""
        if name == BASIC_GROUP:
            raise ConflictError(f"group {BASIC_GROUP!r} is always active")
        return replace(self, on=self.on - {name}, off=self.off | {name})

    def only(self, names: Iterable[str], known: Iterable[str]) -> "Activation":
        """Return the activation with these groups switched on and all other known ones off."""
        on = frozenset(names)
        return Activation(on, frozenset(known) - on - {BASIC_GROUP})

    def covers(self, group: GroupEntry) -> bool:
        """Tell whether a group is active."""
        if group.name == BASIC_GROUP:  # Whatever a saved state says.
            return True
        if not group.is_available:
            return False
        return group.name in self.on or (group.active and group.name not in self.off)


@dataclass(frozen=True, slots=True)
class View:
    """What a conversation sees of one generation."""

    groups: tuple[GroupEntry, ...]
    tools: tuple[ToolEntry, ...]
    skills: tuple[SkillEntry, ...]
    model_skills: tuple[SkillEntry, ...]
    """The skills that the model may see; the others are for the host alone."""
    by_name: Mapping[str, ToolEntry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        named = {entry.name: entry for entry in self.tools}
        object.__setattr__(self, "by_name", MappingProxyType(named))


Skills = tuple[tuple[SkillEntry, ...], tuple[SkillEntry, ...]]
"""The skills that are seen, and those of them that the model may see."""


def active_in(catalog: Catalog, activation: Activation) -> frozenset[str]:
    """Return the names of the groups that an activation makes active."""
    groups = catalog.groups.values()
    return frozenset(group.name for group in groups if activation.covers(group))


def view_of(catalog: Catalog, activation: Activation, skills: Skills | None = None) -> View:
    """Choose what the active groups make visible; skills that belong to no group always are.

    `skills` are those of another view for which `visible_skills` would give the same.
    """
    active = active_in(catalog, activation)
    groups = tuple(group for group in catalog.groups.values() if group.name in active)
    tools = _seen(catalog.all_tools, lambda tool: not active.isdisjoint(tool.groups))
    return View(groups, tools, *(skills or visible_skills(catalog, active)))


def visible_skills(catalog: Catalog, active: frozenset[str]) -> Skills:
    """Choose the skills that are seen; only those of `active` groups that hold any matter."""
    skills = _seen(
        catalog.all_skills,
        lambda skill: not (skill.groups and active.isdisjoint(skill.groups)),
    )
    return skills, tuple(skill for skill in skills if skill.is_for_model)


def _seen(entries: Iterable[M], is_active: Callable[[M], bool]) -> tuple[M, ...]:
    """Choose one entry for each name: what is off does not shadow what is on."""
    found: dict[str, M] = {}
    for entry in entries:
        if not is_active(entry):
            continue
        if entry.is_served:
            found[entry.name] = entry
        elif entry.state is Status.SHADOWED:
            found.setdefault(entry.name, entry)
    return tuple(found.values())


def stable_order(names: tuple[str, ...], seen: tuple[str, ...]) -> tuple[str, ...]:
    """Put tools in the order in which a conversation first saw them, the new ones at the end.

    What stands at the front of a prompt stays as it was, so the provider's cache stays warm.
    """
    if not seen or names == seen:
        return names
    known = {name: position for position, name in enumerate(seen)}
    return tuple(sorted(names, key=lambda name: known.get(name, len(known))))
