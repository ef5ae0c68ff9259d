"""Activation: a conversation's choice of groups, and what it makes visible."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from satchel.catalog import Catalog, GroupEntry, SkillEntry, State, ToolEntry
from satchel.errors import ConflictError
from satchel.names import BASIC_GROUP


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

    def covers(self, group: GroupEntry) -> bool:
        """Tell whether a group is active."""
        if group.name == BASIC_GROUP:  # Whatever a saved state says.
            return True
        return group.name in self.on or (group.active and group.name not in self.off)


@dataclass(frozen=True, slots=True)
class View:
    """What a conversation sees of one generation."""

    groups: tuple[GroupEntry, ...]
    tools: tuple[ToolEntry, ...]
    skills: tuple[SkillEntry, ...]
    by_name: Mapping[str, ToolEntry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        named = {entry.name: entry for entry in self.tools}
        object.__setattr__(self, "by_name", MappingProxyType(named))


def view_of(catalog: Catalog, activation: Activation) -> View:
    """Choose what the active groups make visible; skills are visible always."""
    groups = tuple(group for group in catalog.groups.values() if activation.covers(group))
    active = {group.name for group in groups}
    tools: dict[str, ToolEntry] = {}
    # Nearest first: a tool whose group is off does not shadow one whose group is on.
    for tool in catalog.all_tools:
        if tool.group in active and (tool.is_served or tool.state is State.SHADOWED):
            tools.setdefault(tool.name, tool)
    return View(groups, tuple(tools.values()), tuple(catalog.skills.values()))


def in_order_of_appearance(
    tools: Iterable[ToolEntry], seen: tuple[str, ...]
) -> tuple[ToolEntry, ...]:
    """Put tools in the order in which a conversation first saw them, the new ones at the end.

    What stands at the front of a prompt stays as it was, so the provider's cache stays warm.
    """
    known = {name: position for position, name in enumerate(seen)}
    return tuple(sorted(tools, key=lambda tool: known.get(tool.name, len(known))))
