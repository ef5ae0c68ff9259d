"""The catalog: an immutable snapshot of everything that is loaded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from satchel.catalog.catalog_entries import (
    SERVED,
    Entry,
    Status,
)
from satchel.errors import NotFoundError
from satchel.names import near_misses

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import (
        GroupEntry,
        PluginEntry,
        SkillEntry,
        ToolEntry,
    )
    from satchel.contracts.contract_set import Contracts
    from satchel.diagnostics import Diagnostic

E = TypeVar("E", bound=Entry)
_NAME, _STATE = attrgetter("name"), attrgetter("state")


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """An immutable snapshot of everything that is loaded.

    `skills`, `tools`, `groups` and `plugins` map names to the served entries, sorted by name.
    `all_skills` and its siblings also contain failed, shadowed and disabled entries.
    """

    generation: int = 0
    all_skills: tuple[SkillEntry, ...] = ()
    all_tools: tuple[ToolEntry, ...] = ()
    all_groups: tuple[GroupEntry, ...] = ()
    all_plugins: tuple[PluginEntry, ...] = ()
    source_diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics that belong to no entry: missing folders, refused links, the watcher."""
    first_skills: tuple[str, ...] = ()
    """Patterns of the skills that the prompt describes first if it cannot describe all."""

    changed_skills: frozenset[str] | None = field(default=None, compare=False, repr=False)
    """The names of all skills that may differ from the generation before, if they are known."""

    # Each is made when it is first used: most catalogs differ from the one before in one skill.
    @cached_property
    def skills(self) -> Mapping[str, SkillEntry]:
        """Return the served skills."""
        return _by_name(self.served_skills)

    @cached_property
    def served_skills(self) -> tuple[SkillEntry, ...]:
        """Return the served skills in their order; a prompt needs no mapping."""
        return _served(self.all_skills)

    @cached_property
    def tools(self) -> Mapping[str, ToolEntry]:
        """Return the served tools."""
        return _by_name(_served(self.all_tools))

    @cached_property
    def groups(self) -> Mapping[str, GroupEntry]:
        """Return the served groups."""
        return _by_name(_served(self.all_groups))

    @cached_property
    def plugins(self) -> Mapping[str, PluginEntry]:
        """Return the served plugins."""
        return _by_name(_served(self.all_plugins))

    @cached_property
    def has_ascii_names(self) -> bool:
        """Return whether the names of all skills are ASCII."""
        # Others are never built from the changes alone.
        return self.changed_skills is not None or "".join(map(_NAME, self.all_skills)).isascii()

    @cached_property
    def contracts(self) -> Contracts:
        """Return the contracts of the served tools."""
        from satchel.contracts.contract_set import Contracts  # lazy: needed only with contracts

        return Contracts(entry.contract for entry in self.tools.values() if entry.contract)

    @cached_property
    def skills_by_folder(self) -> Mapping[str, SkillEntry]:
        """Return the usable skills by folder, including those reachable only by a long name."""
        usable = (
            entry for entry in self.all_skills if entry.is_served or entry.state is Status.SHADOWED
        )
        return MappingProxyType({entry.path: entry for entry in usable})

    @cached_property
    def groups_of_skills(self) -> frozenset[str]:
        """Return the names of the groups that have skills."""
        # Few entries differ in their groups.
        different = set(map(attrgetter("groups"), self.all_skills))
        return frozenset(name for names in different for name in names)

    def only(self, accepts: Callable[[Entry], bool]) -> Catalog:
        """Return this snapshot with only the tools and skills that are accepted."""
        tools = {entry.name for entry in self.tools.values() if accepts(entry)}
        skills = {entry.name for entry in self.skills.values() if accepts(entry)}
        groups = (
            replace(
                group,
                tools=tuple(filter(tools.__contains__, group.tools)),
                skills=tuple(filter(skills.__contains__, group.skills)),
            )
            for group in self.all_groups
        )
        return replace(
            self,
            all_tools=tuple(filter(accepts, self.all_tools)),
            all_skills=tuple(filter(accepts, self.all_skills)),
            all_groups=tuple(groups),
            changed_skills=None,
        )

    @property
    def parts(self) -> dict[str, Any]:
        """Return the content of the snapshot, without its generation number."""
        return {
            "all_skills": self.all_skills,
            "all_tools": self.all_tools,
            "all_groups": self.all_groups,
            "all_plugins": self.all_plugins,
            "source_diagnostics": self.source_diagnostics,
            "first_skills": self.first_skills,
        }

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of every kind and state."""
        return (*self.all_plugins, *self.all_groups, *self.all_skills, *self.all_tools)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the sources and of all entries, without duplicates."""
        of_entries = (item for entry in self.entries for item in entry.diagnostics)
        return tuple(dict.fromkeys((*self.source_diagnostics, *of_entries)))

    def skills_named(self, names: Iterable[str] | None) -> Sequence[SkillEntry]:
        """Return all skills of some names, whatever their state; `None` means all names."""
        skills = self.all_skills
        if names is None:
            return skills
        return [entry for name in sorted(names) for entry in skills[places_of(name, skills)]]

    def skill(self, name: str) -> SkillEntry:
        """Return a skill by its name, or by `source:name` when it is shadowed.

        Raises `NotFoundError` with the near misses.
        """
        return _find("skill", name, self.all_skills)

    def tool(self, name: str) -> ToolEntry:
        """Return a tool by its name, or by `source:name` when it is shadowed.

        Raises `NotFoundError` with the near misses.
        """
        return _find("tool", name, self.all_tools)

    def group(self, name: str) -> GroupEntry:
        """Return a tool group. Raises `NotFoundError` with the near misses."""
        return _find("group", name, self.all_groups)

    def plugin(self, name: str) -> PluginEntry:
        """Return a plugin. Raises `NotFoundError` with the near misses."""
        return _find("plugin", name, self.all_plugins)

    def plugin_digest_of(self, tool: str) -> str:
        """Return the digest of the served plugin that a served tool comes from, or `""`."""
        plugin = self._plugin_of(self.tools.get(tool))
        return plugin.contribution.digest if plugin else ""

    def compatible_digests_of(self, tool: str) -> tuple[str, ...]:
        """Return the digests of the other versions whose calls a served tool may answer."""
        plugin = self._plugin_of(self.tools.get(tool))
        return plugin.contribution.compatible_with if plugin else ()

    def runner_name_of(self, tool: str) -> str:
        """Return the runner that a served tool names, or else its groups, or its plugin."""
        entry = self.tools.get(tool)
        plugin = self._plugin_of(entry)
        if entry is None or plugin is None:
            return ""
        groups = (self.groups[name].runner for name in entry.groups if name in self.groups)
        own = (plugin.contribution.runners.get(tool), entry.tool and entry.tool.runner_name)
        names = (*own, *groups, plugin.contribution.runner)
        return next((name for name in names if name), "")

    def _plugin_of(self, entry: ToolEntry | None) -> PluginEntry | None:
        units = (it for it in self.plugins.values() if entry and it.unit == entry.unit)
        return next(units, None)


def places_of(name: str, entries: Sequence[Entry]) -> slice:
    """Return where the entries of a name are; `entries` are sorted by name."""
    start = bisect_left(entries, name, key=_NAME)
    return slice(start, bisect_right(entries, name, start, key=_NAME))


def _served(entries: Sequence[E]) -> tuple[E, ...]:
    # No loop in Python: there may be very many skills.
    return tuple(compress(entries, map(SERVED.__contains__, map(_STATE, entries))))


def _by_name(served: Sequence[E]) -> Mapping[str, E]:
    return MappingProxyType(dict(zip(map(_NAME, served), served, strict=True)))


def _find(kind: str, name: str, entries: tuple[E, ...]) -> E:
    """Find an entry by address or name; an address wins, so no name can pose as another entry."""
    served = [entry for entry in entries if entry.is_served and entry.name == name]
    addressed = [entry for entry in entries if entry.address == name]
    addressed.sort(key=lambda entry: entry.state is Status.HELD)
    addressed += [entry for entry in entries if name in entry.addresses]
    named = [entry for entry in entries if entry.name == name]
    for entry in (*addressed, *served, *named):
        return entry
    raise NotFoundError(kind, name, near_misses(name, (entry.name for entry in entries)))
