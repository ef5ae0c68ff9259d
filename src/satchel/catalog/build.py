"""Building the next generation: findings and the last generation in, a catalog out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from satchel.catalog.catalog import Catalog
from satchel.catalog.conflicts import settle_plugins, settle_skills, settle_tools
from satchel.catalog.entries import (
    HOST,
    Entry,
    Group,
    GroupEntry,
    PluginEntry,
    SkillEntry,
    State,
    Supply,
    ToolEntry,
    ToolSupply,
)
from satchel.diagnostics import Diagnostic, Where, report
from satchel.names import BASIC_GROUP
from satchel.sources.places import Scope
from satchel.sources.skills import SkillFinding

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """A skill that was found, and where its place stands in the order of precedence."""

    finding: SkillFinding
    rank: tuple[object, ...]
    unsettled: bool = False
    """Whether it is broken but may be half written: what was served before stays as it was."""


def build_plugins(supplies: Iterable[Supply], previous: Catalog) -> tuple[PluginEntry, ...]:
    """Decide which version of each plugin is served, and which of two of one name."""
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_plugins}
    entries = []
    for supply in supplies:
        old = before.get((supply.scope, supply.source, supply.unit))
        if not supply.unsettled:
            entries.append(_plugin(supply, old))
        elif old is not None:
            entries.append(replace(_unshadowed(old), rank=supply.rank))
    return tuple(settle_plugins(entries))


def build(
    skills: Iterable[RankedSkill],
    plugins: Sequence[PluginEntry],
    previous: Catalog,
    diagnostics: Iterable[Diagnostic] = (),
) -> Catalog:
    """Build the generation after `previous`, or return `previous` itself if nothing changed.

    `plugins` come from `build_plugins`. A unit that is broken now and was good in `previous`
    keeps its good version, marked stale.
    """
    number = previous.generation + 1
    tools = settle_tools(_tools(plugins))
    listed = tuple(entry for entry in plugins if entry.source != HOST)
    parts = (
        _dated(settle_skills(_skills(skills, previous)), previous.all_skills, number),
        _dated(tools, previous.all_tools, number),
        _dated(_groups(plugins, tools), previous.all_groups, number),
        _dated(listed, previous.all_plugins, number),
        tuple(dict.fromkeys(diagnostics)),
    )
    return previous if parts == previous.parts else Catalog(number, *parts)


def _dated(entries: Iterable[E], before: Sequence[E], number: int) -> tuple[E, ...]:
    """Give each entry the generation in which it became what it is, in the order of names."""
    known = {entry.identity: entry for entry in before}
    dated = []
    for entry in entries:
        old = known.get(entry.identity)
        if old is not entry:
            same = old is not None and replace(entry, generation=old.generation) == old
            entry = replace(entry, generation=old.generation if old and same else number)  # noqa: PLW2901 - as it leaves
        dated.append(entry)
    return tuple(sorted(dated, key=lambda entry: (entry.name, entry.scope, entry.rank)))


def _skills(found: Iterable[RankedSkill], previous: Catalog) -> Iterable[SkillEntry]:
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_skills}
    for ranked in found:
        place = ranked.finding.place
        old = before.get((place.scope, place.source, ranked.finding.path))
        if not ranked.unsettled:
            yield _skill(ranked, old)
        elif old is not None:
            yield replace(_unshadowed(old), rank=ranked.rank)


def _unshadowed(entry: E) -> E:
    """Return an entry of the last generation as it was before its conflicts were settled."""
    if entry.state is not State.SHADOWED:
        return entry
    kept = entry.diagnostics[:-1]
    stale = any(item.code == "last-good" for item in kept)
    return replace(entry, state=State.STALE if stale else State.OK, diagnostics=kept)


def _skill(ranked: RankedSkill, old: SkillEntry | None) -> SkillEntry:
    finding = ranked.finding
    if old is not None and old.finding is finding and old.rank == ranked.rank:
        return _unshadowed(old)
    problems = (*finding.diagnostics, *finding.folder.diagnostics)
    manifest = finding.manifest
    if manifest is None and old is not None and old.manifest is not None:
        return replace(
            old,
            rank=ranked.rank,
            state=State.STALE,
            digest=finding.digest,
            finding=finding,
            diagnostics=(*problems, _last_good("skill", old)),
        )
    return SkillEntry(
        name=manifest.name if manifest else finding.folder_name,
        description=manifest.description if manifest else "",
        source=finding.place.source,
        scope=finding.place.scope,
        path=finding.path,
        unit=finding.path,
        rank=ranked.rank,
        state=State.OK if manifest else State.FAILED,
        diagnostics=problems,
        manifest=manifest,
        key=finding.key,
        digest=finding.digest,
        files=finding.files,
        finding=finding,
    )


def _plugin(supply: Supply, old: PluginEntry | None) -> PluginEntry:
    served, state, problems = supply, State.OK, supply.diagnostics
    if supply.disabled:
        state = State.DISABLED
    elif (supply.failed or supply.flawed) and old is not None and old.supply.is_sound:
        served, state = old.supply, State.STALE
        problems = (*problems, _last_good("plugin", old))
    elif supply.failed:
        state = State.FAILED
    return PluginEntry(
        name=served.name,
        description=served.description,
        source=supply.source,
        scope=supply.scope,
        path=supply.path,
        unit=supply.unit,
        rank=supply.rank,
        state=state,
        diagnostics=problems,
        version=served.version,
        digest=supply.digest,
        supply=served,
    )


def _last_good(kind: str, old: SkillEntry | PluginEntry) -> Diagnostic:
    return report(
        "last-good",
        Where(old.path),
        f"the newest version of this {kind} is broken; the last good one is served",
        "mend what the errors above say; it is read again by itself",
    )


def _tools(plugins: Iterable[PluginEntry]) -> Iterable[ToolEntry]:
    for plugin in plugins:
        if plugin.is_served:
            for position, tool in enumerate(plugin.supply.tools):
                yield _tool(plugin, tool, position)


def _tool(plugin: PluginEntry, tool: ToolSupply, position: int) -> ToolEntry:
    return ToolEntry(
        name=tool.name,
        description=tool.description,
        source=plugin.name,
        scope=plugin.scope,
        path=tool.path,
        unit=plugin.unit,
        rank=(*plugin.rank, position),
        state=plugin.state,
        group=group_of(tool, plugin.supply),
        version=tool.version,
        tool=tool.tool,
    )


def group_of(tool: ToolSupply, owner: Supply) -> str:
    """Return the group that a tool belongs to.

    Its own word counts first, then the group that lists it, then the first group of its owner;
    what the host adds without a word is basic.
    """
    if tool.group:
        return tool.group
    for group in owner.groups:
        if tool.name in group.tools:
            return group.name
    return owner.groups[0].name if owner.groups and owner.source != HOST else BASIC_GROUP


def _groups(plugins: Sequence[PluginEntry], tools: Sequence[ToolEntry]) -> list[GroupEntry]:
    """Gather the groups; of two descriptions of one group the one by the nearer owner counts."""
    found: dict[str, GroupEntry] = {BASIC_GROUP: _basic()}
    for plugin in plugins:
        for group in plugin.supply.groups if plugin.is_served else ():
            entry = _group(plugin, group)
            first = found.setdefault(group.name, entry)
            if first is not entry:
                found[group.name] = replace(
                    first, diagnostics=(*first.diagnostics, _declared_twice(first, plugin))
                )
    for tool in tools:
        if tool.is_served and tool.group not in found:
            found[tool.group] = _undeclared(tool)
    members = {
        name: tuple(t.name for t in tools if t.is_served and t.group == name) for name in found
    }
    return [replace(entry, tools=tuple(sorted(members[name]))) for name, entry in found.items()]


def _basic() -> GroupEntry:
    return GroupEntry(
        name=BASIC_GROUP,
        description="Always active.",
        source="satchel",
        scope=Scope.EXPLICIT,
        path="",
        unit="",
        rank=(),
        active=True,
    )


def _group(plugin: PluginEntry, group: Group) -> GroupEntry:
    return GroupEntry(
        name=group.name,
        description=group.description,
        source=plugin.name,
        scope=plugin.scope,
        path=plugin.path,
        unit=plugin.unit,
        rank=plugin.rank,
        state=plugin.state,
        notes=group.notes,
        active=group.active,
    )


def _undeclared(tool: ToolEntry) -> GroupEntry:
    return GroupEntry(
        name=tool.group,
        description="",
        source=tool.source,
        scope=tool.scope,
        path=tool.path,
        unit=tool.unit,
        rank=tool.rank,
        state=tool.state,
        diagnostics=(
            report(
                "plugin-group-unknown",
                Where(tool.path),
                f"tool {tool.name!r} is in group {tool.group!r}, which nobody describes",
                "describe the group where the tool comes from",
            ),
        ),
    )


def _declared_twice(first: GroupEntry, second: PluginEntry) -> Diagnostic:
    return report(
        "group-declared-twice",
        Where(second.path),
        f"group {first.name!r} is described by {first.source!r} and by {second.name!r}; "
        f"the description of {first.source!r} counts, the tools of both belong to it",
        "let one of the two name another group",
    )
