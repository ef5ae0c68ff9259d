"""Building the next generation: findings and the last generation in, a catalog out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import (
    HOST,
    Entry,
    Group,
    GroupEntry,
    PluginContribution,
    PluginEntry,
    SkillEntry,
    Status,
    ToolContribution,
    ToolEntry,
)
from satchel.catalog.disable_rules import DisableRules, Off, disable_rules, nothing_disabled
from satchel.catalog.name_conflicts import resolve_plugins, resolve_skills, resolve_tools
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.names import BASIC_GROUP, SESSION_TOOLS
from satchel.sources.search_roots import Precedence
from satchel.sources.skill_scan import SkillFinding

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """A skill that was found, and where its place stands in the order of precedence."""

    finding: SkillFinding
    rank: tuple[object, ...]
    unsettled: bool = False
    """Whether it is broken but may be half written: what was served before stays as it was."""


def build_plugins(
    supplies: Iterable[PluginContribution], previous: Catalog
) -> tuple[PluginEntry, ...]:
    """Decide which version of each plugin is served, and which of two of one name."""
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_plugins}
    entries = []
    for supply in supplies:
        old = before.get((supply.scope, supply.source, supply.unit))
        if supply.state is not Status.SETTLING:
            entries.append(_plugin(supply, old))
        elif old is not None:
            entries.append(replace(_unshadowed(old), rank=supply.rank))
    return tuple(resolve_plugins(entries))


def build(
    skills: Iterable[RankedSkill],
    plugins: Sequence[PluginEntry],
    previous: Catalog,
    diagnostics: Iterable[Diagnostic] = (),
    off: Off = nothing_disabled,
) -> Catalog:
    """Build the generation after `previous`, or return `previous` itself if nothing changed.

    `plugins` come from `build_plugins`. A unit that is broken now and was good in `previous`
    keeps its good version, marked stale. What is `off` is disabled, and shadows nothing.
    """
    number = previous.generation + 1
    listed = tuple(entry for entry in plugins if entry.source != HOST)
    listed_in = _membership(plugins)
    found = [(ranked, _in_groups(entry, listed_in)) for ranked, entry in _skills(skills, previous)]
    offered = tuple(_tools(plugins, previous))
    switch = disable_rules(_described(plugins), (*offered, *(entry for _, entry in found)), off)
    tools = resolve_tools(map(switch.apply, offered))
    settled = resolve_skills(_switched(found, listed_in, switch))
    parts = (
        _dated(settled, previous.all_skills, number),
        _dated(tools, previous.all_tools, number),
        _dated(_groups(plugins, tools, settled, switch), previous.all_groups, number),
        _dated(listed, previous.all_plugins, number),
        tuple(dict.fromkeys(diagnostics)),
    )
    return previous if parts == previous.parts else Catalog(number, *parts)


def _dated(entries: Iterable[E], before: Sequence[E], number: int) -> tuple[E, ...]:
    """Give each entry the generation in which it became what it is, in the order of names."""
    known = {entry.identity: entry for entry in before}
    dated = (_dated_by(entry, known.get(entry.identity), number) for entry in entries)
    return tuple(sorted(dated, key=lambda entry: (entry.name, entry.scope, entry.rank)))


def _dated_by(entry: E, old: E | None, number: int) -> E:
    if old is entry:
        return entry
    dated = replace(entry, generation=old.generation if old else number)
    return dated if old is None or dated == old else replace(entry, generation=number)


def _skills(
    found: Iterable[RankedSkill], previous: Catalog
) -> Iterable[tuple[RankedSkill, SkillEntry]]:
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_skills}
    for ranked in found:
        place = ranked.finding.place
        old = before.get((place.scope, place.source, ranked.finding.path))
        if old is not None and old.state is Status.DISABLED:
            # What was switched off begins anew, without a last good version, as in a cold load.
            yield ranked, _skill(ranked, None)
        elif not ranked.unsettled:
            yield ranked, _skill(ranked, old)
        elif old is not None:
            yield ranked, replace(_unshadowed(old), rank=ranked.rank)


def _unshadowed(entry: E) -> E:
    """Return an entry of the last generation as it was before its conflicts were settled."""
    if entry.state is not Status.SHADOWED:
        return entry
    kept = entry.diagnostics[:-1]
    stale = any(item.code == "last-good" for item in kept)
    return replace(entry, state=Status.STALE if stale else Status.OK, diagnostics=kept)


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
            state=Status.STALE,
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
        state=Status.OK if manifest else Status.FAILED,
        diagnostics=problems,
        manifest=manifest,
        key=finding.key,
        digest=finding.digest,
        version=finding.digest,
        files=finding.files,
        finding=finding,
    )


def _plugin(supply: PluginContribution, old: PluginEntry | None) -> PluginEntry:
    served, state, problems = supply, supply.state, supply.diagnostics
    if state.falls_back and old is not None and old.supply.state is Status.OK:
        served, state = _last_good_of(supply, old.supply), Status.STALE
        problems = (*problems, _last_good("plugin", old))
    elif state is Status.HELD:
        # Only its tools wait; its skills and notes are served.
        state = Status.DEGRADED
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


def _last_good_of(supply: PluginContribution, old: PluginContribution) -> PluginContribution:
    """Return what goes on of an older version.

    Of an open plugin only the part that is written for us may be broken; the rest is that of now.
    """
    if supply.state is Status.FAILED or not supply.policy.has_extension:
        return old
    return replace(
        old,
        name=supply.name,
        version=supply.version,
        description=supply.description,
        servers=supply.servers,
        skills=supply.skills,
    )


def _last_good(kind: str, old: SkillEntry | PluginEntry) -> Diagnostic:
    return make_diagnostic(
        "last-good",
        Where(old.path),
        f"the newest version of this {kind} is broken; the last good one is served",
        "mend what the errors above say; it is read again by itself",
    )


def _tools(plugins: Iterable[PluginEntry], previous: Catalog) -> Iterable[ToolEntry]:
    before = {id(entry.supply): entry for entry in previous.all_tools}
    for plugin in plugins:
        if plugin.is_served:
            listed = _listed_tools(plugin.supply)
            for position, tool in enumerate(plugin.supply.tools):
                groups = _groups_of(tool, plugin.supply, listed.get(tool.name, ()))
                yield _tool(plugin, tool, position, groups, before.get(id(tool)))


def _state_of_part(plugin: PluginEntry) -> Status:
    """Return the state of what a served plugin brings: what is left of a degraded one is good."""
    return Status.OK if plugin.state is Status.DEGRADED else plugin.state


def _tool(
    plugin: PluginEntry,
    tool: ToolContribution,
    position: int,
    groups: tuple[str, ...],
    old: ToolEntry | None,
) -> ToolEntry:
    rank = (*plugin.rank, position)
    state = tool.state if tool.state is Status.HELD else _state_of_part(plugin)
    whence = (plugin.name, plugin.unit, rank, state, groups)
    if old is not None and whence == (old.source, old.unit, old.rank, old.state, old.groups):
        return old
    return ToolEntry(
        name=tool.name,
        description=tool.description,
        source=plugin.name,
        scope=plugin.scope,
        path=tool.path,
        unit=plugin.unit,
        rank=rank,
        state=state,
        groups=groups,
        supply=tool,
        version=tool.version,
        tool=tool.tool,
        contract=tool.contract,
        diagnostics=(
            *tool.diagnostics,
            *(_replacing(plugin, tool) if tool.name in SESSION_TOOLS else ()),
        ),
    )


def _replacing(plugin: PluginEntry, tool: ToolContribution) -> tuple[Diagnostic, ...]:
    return (
        make_diagnostic(
            "tool-replaces-own",
            Where(tool.path),
            f"tool {tool.name!r} of {plugin.name!r} takes the place of the session's own",
            "rename it unless that is what you want",
        ),
    )


def _listed_tools(owner: PluginContribution) -> Mapping[str, list[str]]:
    """Return the groups that list a tool, by its name."""
    found: dict[str, list[str]] = {}
    for group in owner.groups:
        for name in group.tools:
            found.setdefault(name, []).append(group.name)
    return found


def _groups_of(
    tool: ToolContribution, owner: PluginContribution, listing: Iterable[str]
) -> tuple[str, ...]:
    """Return the groups that a tool belongs to: those it names, then those that list it.

    Without any, it is in the first group of its owner; what the host adds is then basic.
    """
    if found := tuple(dict.fromkeys((*tool.groups, *listing))):
        return found
    return (owner.groups[0].name if owner.groups and owner.source != HOST else BASIC_GROUP,)


Membership = Mapping[tuple[str, str], tuple[str, ...]]
"""The groups that list a skill, by the skill's source and name; the host's by name alone."""


def _membership(plugins: Iterable[PluginEntry]) -> Membership:
    found: dict[tuple[str, str], list[str]] = {}
    for plugin in plugins:
        for group in plugin.supply.groups if plugin.is_served else ():
            owner = "" if plugin.source == HOST else plugin.name
            for skill in group.skills:
                found.setdefault((owner, skill), []).append(group.name)
    return {key: tuple(names) for key, names in found.items()}


def _in_groups(entry: SkillEntry, listed: Membership) -> SkillEntry:
    place = entry.finding.place.groups if entry.finding else ()
    by_owner = listed.get((entry.source, entry.name), ())
    groups = dict.fromkeys((*place, *by_owner, *listed.get(("", entry.name), ())))
    return entry if entry.groups == tuple(groups) else replace(entry, groups=tuple(groups))


def _switched(
    found: Iterable[tuple[RankedSkill, SkillEntry]], listed: Membership, switch: DisableRules
) -> Iterable[SkillEntry]:
    """Disable what is off; its last good version goes, since a cold load would have none."""
    for ranked, entry in found:
        if switch.problem(entry) is None:
            yield entry
        else:
            yield switch.apply(_in_groups(_skill(ranked, None), listed))


def _described(plugins: Iterable[PluginEntry]) -> Iterable[tuple[str, str]]:
    """Return the name of each group that is described, with that of its owner."""
    for plugin in plugins:
        for group in plugin.supply.groups if plugin.is_served else ():
            yield group.name, plugin.name


def _groups(
    plugins: Sequence[PluginEntry],
    tools: Sequence[ToolEntry],
    skills: Sequence[SkillEntry],
    switch: DisableRules,
) -> list[GroupEntry]:
    """Gather the groups; of two descriptions of one group the one by the nearer owner counts."""
    found: dict[str, GroupEntry] = {BASIC_GROUP: _basic()}
    off: list[GroupEntry] = []
    for plugin in plugins:
        for group in plugin.supply.groups if plugin.is_served else ():
            entry = switch.apply(_group(plugin, group, skills))
            if not entry.is_served:
                off.append(entry)
            elif (first := found.setdefault(group.name, entry)) is not entry:
                found[group.name] = replace(
                    first, diagnostics=(*first.diagnostics, _declared_twice(first, plugin))
                )
    members: list[ToolEntry | SkillEntry] = [*tools, *skills]
    for member in members:
        for name in member.groups if member.is_served else ():
            if name not in found and name not in switch.closed:
                found[name] = _undeclared(member, name)
    tools_in, skills_in = _members(tools), _members(skills)
    return [
        *(
            replace(entry, tools=tools_in.get(name, ()), skills=skills_in.get(name, ()))
            for name, entry in found.items()
        ),
        *off,
    ]


def _members(entries: Iterable[ToolEntry | SkillEntry]) -> dict[str, tuple[str, ...]]:
    """Return the names of what is served in each group."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        for group in entry.groups if entry.is_served else ():
            found.setdefault(group, set()).add(entry.name)
    return {group: tuple(sorted(names)) for group, names in found.items()}


def _basic() -> GroupEntry:
    return GroupEntry(
        name=BASIC_GROUP,
        description="Always active.",
        source="satchel",
        scope=Precedence.EXPLICIT,
        path="",
        unit="",
        rank=(),
        active=True,
    )


def _group(plugin: PluginEntry, group: Group, skills: Sequence[SkillEntry]) -> GroupEntry:
    return GroupEntry(
        name=group.name,
        description=group.description,
        source=plugin.name,
        scope=plugin.scope,
        path=plugin.path,
        unit=plugin.unit,
        rank=plugin.rank,
        state=_state_of_part(plugin),
        notes=group.notes,
        active=group.active,
        missing=group.missing,
        diagnostics=_unknown_skills(plugin, group, skills),
    )


def _undeclared(member: ToolEntry | SkillEntry, name: str) -> GroupEntry:
    what = "tool" if isinstance(member, ToolEntry) else "skill"
    return GroupEntry(
        name=name,
        description="",
        source=member.source,
        scope=member.scope,
        path=member.path,
        unit=member.unit,
        rank=member.rank,
        state=member.state,
        diagnostics=(
            make_diagnostic(
                "plugin-group-unknown",
                Where(member.path),
                f"{what} {member.name!r} is in group {name!r}, which nobody describes",
                f"describe the group where the {what} comes from",
            ),
        ),
    )


def _unknown_skills(
    plugin: PluginEntry, group: Group, skills: Sequence[SkillEntry]
) -> tuple[Diagnostic, ...]:
    """Report the skills that a group lists and its owner does not bring; the host owns all."""
    if not group.skills:
        return ()
    own = {s.name for s in skills if plugin.source == HOST or s.source == plugin.name}
    return tuple(
        make_diagnostic(
            "plugin-group-unknown",
            Where(plugin.path),
            f"group {group.name!r} lists the skill {name!r}, which there is not",
            "correct the name, or add the skill",
        )
        for name in group.skills
        if name not in own
    )


def _declared_twice(first: GroupEntry, second: PluginEntry) -> Diagnostic:
    return make_diagnostic(
        "group-declared-twice",
        Where(second.path),
        f"group {first.name!r} is described by {first.source!r} and by {second.name!r}; "
        f"the description of {first.source!r} counts, the tools of both belong to it",
        "let one of the two name another group",
    )
