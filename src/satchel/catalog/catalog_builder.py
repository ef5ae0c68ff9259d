"""Build the next catalog from the findings and the previous catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import (
    HOST,
    Entry,
    GroupEntry,
    PluginEntry,
    SkillEntry,
    Status,
    ToolEntry,
)
from satchel.catalog.disable_rules import (
    disable_rules,
    nothing_disabled,
)
from satchel.catalog.name_conflicts import resolve_plugins, resolve_skills, resolve_tools
from satchel.catalog.name_holds import NameRules, hold_newcomers
from satchel.diagnostics import Where, has_error, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP, SESSION_TOOLS, sentence_of
from satchel.sources.search_roots import Precedence

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import (
        Group,
        PluginContribution,
        ToolContribution,
    )
    from satchel.catalog.disable_rules import (
        DisableReason,
        DisableRules,
    )
    from satchel.diagnostics import Diagnostic
    from satchel.sources.skill_scan import SkillFinding

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """A found skill with its rank in the order of precedence."""

    finding: SkillFinding
    rank: tuple[object, ...]
    is_settling: bool = False
    """Whether it is broken, but perhaps only half written; if so, the previous entry stays."""


def build_plugins(
    contributions: Iterable[PluginContribution],
    previous: Catalog,
    served_instead: Mapping[tuple[Precedence, str, str], PluginContribution] | None = None,
) -> tuple[PluginEntry, ...]:
    """Choose the served version of each plugin, and resolve name conflicts.

    `served_instead` has last good versions by scope, source and unit, as they are configured now.
    """
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_plugins}
    entries = []
    for contribution in contributions:
        unit = contribution.scope, contribution.source, contribution.unit
        old = before.get(unit)
        instead = (served_instead or {}).get(unit)
        if old is not None and old.contribution.state is Status.OK and instead is not None:
            old = replace(old, contribution=instead)
        if contribution.state is not Status.SETTLING:
            entries.append(_plugin_entry(contribution, old))
        elif old is not None:
            entries.append(replace(_unshadowed(old), rank=contribution.rank))
    return tuple(resolve_plugins(entries))


def build(
    skills: Iterable[RankedSkill],
    plugins: Sequence[PluginEntry],
    previous: Catalog,
    diagnostics: Iterable[Diagnostic] = (),
    disable_reason: DisableReason = nothing_disabled,
    *,
    first_skills: tuple[str, ...] = (),
    names: NameRules | None = None,
) -> Catalog:
    """Build the catalog after `previous`, or return `previous` itself if nothing changed.

    `plugins` come from `build_plugins`. A broken unit that was good in `previous` keeps its good
    version, marked stale. An entry for which `disable_reason` returns a reason is disabled and
    shadows nothing. `names` say who owns a contested name.
    """
    number = previous.generation + 1
    listed = tuple(entry for entry in plugins if entry.source != HOST)
    membership = _skill_membership(plugins)
    skill_entries = [
        (ranked, _with_groups(entry, membership))
        for ranked, entry in _skill_entries(skills, previous, number)
    ]
    tool_entries = tuple(_tool_entries(plugins, previous))
    members: tuple[ToolEntry | SkillEntry, ...] = (
        *tool_entries,
        *(entry for _, entry in skill_entries),
    )
    rules = disable_rules(_described_groups(plugins), members, disable_reason)
    usable = hold_newcomers(map(rules.apply, tool_entries), plugins, names or NameRules())
    all_tools = resolve_tools(usable)
    all_skills = resolve_skills(_apply_to_skills(rules, skill_entries, membership))
    groups = _group_entries(plugins, all_tools, all_skills, rules)
    parts: dict[str, Any] = {
        "all_skills": _with_generation(all_skills, previous.all_skills, number),
        "all_tools": _with_generation(all_tools, previous.all_tools, number),
        "all_groups": _with_generation(groups, previous.all_groups, number),
        "all_plugins": _with_generation(listed, previous.all_plugins, number),
        "source_diagnostics": tuple(dict.fromkeys(diagnostics)),
        "first_skills": first_skills,
    }
    return previous if parts == previous.parts else Catalog(generation=number, **parts)


def _with_generation(entries: Iterable[E], before: Sequence[E], number: int) -> tuple[E, ...]:
    """Sort the entries by name, and give each the generation in which it last changed."""
    previous = {entry.identity: entry for entry in before}
    numbered = (
        with_last_generation(entry, previous.get(entry.identity), number) for entry in entries
    )
    return tuple(sorted(numbered, key=lambda entry: (entry.name, entry.scope, entry.rank)))


def with_last_generation(entry: E, old: E | None, number: int) -> E:
    """Give an entry the generation in which it last changed: `number`, or that of `old`."""
    if old is entry:
        return entry
    if old is not None and (unchanged := replace(entry, generation=old.generation)) == old:
        return unchanged
    return entry if entry.generation == number else replace(entry, generation=number)


def _skill_entries(
    skills: Iterable[RankedSkill], previous: Catalog, number: int
) -> Iterable[tuple[RankedSkill, SkillEntry]]:
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous.all_skills}
    for ranked in skills:
        root = ranked.finding.place
        old = before.get((root.scope, root.source, ranked.finding.path))
        if old is not None and old.state is Status.DISABLED:
            # Disabling forgets the last good version, as a restart does.
            yield ranked, next_skill_entry(ranked, None, number)
        elif not ranked.is_settling:
            yield ranked, next_skill_entry(ranked, old, number)
        elif old is not None:
            yield ranked, replace(_unshadowed(old), rank=ranked.rank)


def _unshadowed(entry: E) -> E:
    """Return an entry of the previous catalog as it was before name conflicts were resolved."""
    if entry.state is not Status.SHADOWED:
        return entry
    kept = entry.diagnostics[:-1]
    stale = any(item.code == "last-good" for item in kept)
    return replace(entry, state=Status.STALE if stale else Status.OK, diagnostics=kept)


def next_skill_entry(ranked: RankedSkill, old: SkillEntry | None, number: int = 0) -> SkillEntry:
    """Return the entry of a found skill, without the groups that list it; `old` if unchanged.

    A new entry gets the generation `number`, which needs no second copy if it stays.
    """
    finding = ranked.finding
    if old is not None and old.finding is finding and old.rank == ranked.rank:
        return _unshadowed(old)
    problems, path = finding.problems, finding.path
    manifest, digest = finding.manifest, finding.digest
    if manifest is None and old is not None and old.manifest is not None:
        return replace(
            old,
            rank=ranked.rank,
            state=Status.STALE,
            digest=digest,
            finding=finding,
            diagnostics=(*problems, _last_good_diagnostic("skill", old)),
        )
    return SkillEntry(
        name=manifest.name if manifest else finding.folder_name,
        description=manifest.description if manifest else "",
        source=finding.place.source,
        scope=finding.place.scope,
        path=path,
        unit=path,
        rank=ranked.rank,
        state=Status.OK if manifest else Status.FAILED,
        generation=number,
        diagnostics=problems,
        manifest=manifest,
        key=finding.key,
        digest=digest,
        version=digest,
        files=finding.files,
        finding=finding,
    )


def _plugin_entry(contribution: PluginContribution, old: PluginEntry | None) -> PluginEntry:
    served, state, problems = contribution, contribution.state, contribution.diagnostics
    if state.falls_back and old is not None and old.contribution.state is Status.OK:
        served, state = _last_good_contribution(contribution, old.contribution), Status.STALE
        is_held = contribution.is_untrusted
        problems = (*problems, _last_good_diagnostic("plugin", old, is_held=is_held))
    elif state is Status.HELD and not _has_held_name(contribution):
        # Only its tools are held; its skills and notes are served.
        state = Status.DEGRADED
    elif state is Status.OK and has_error(problems):
        state = Status.DEGRADED
    return PluginEntry(
        name=served.name,
        description=served.description,
        source=contribution.source,
        scope=contribution.scope,
        path=contribution.path,
        unit=contribution.unit,
        rank=contribution.rank,
        state=state,
        diagnostics=problems,
        version=served.version,
        digest=contribution.digest,
        contribution=served,
    )


def _has_held_name(contribution: PluginContribution) -> bool:
    return any(item.code == "plugin-name-held" for item in contribution.diagnostics)


def _last_good_contribution(
    contribution: PluginContribution, old: PluginContribution
) -> PluginContribution:
    """Return the last good version that serves in place of a broken one.

    For open plugins, only the `dev.satchel` extension falls back; servers, skills and metadata
    are those of the newest version.
    """
    if contribution.is_untrusted:
        # Its servers are those of the last good version, if these can still be started.
        old = replace(old, servers=contribution.servers)
    if contribution.state is Status.FAILED or not contribution.policy.has_extension:
        return old
    return replace(
        old,
        name=contribution.name,
        version=contribution.version,
        description=contribution.description,
        servers=contribution.servers,
        skills=contribution.skills,
    )


def _last_good_diagnostic(
    kind: str, old: SkillEntry | PluginEntry, *, is_held: bool = False
) -> Diagnostic:
    if is_held:
        return make_diagnostic(
            "last-good",
            Where(old.path),
            f"the newest version of this {kind} is not trusted yet; the last trusted one is served",
        )
    return make_diagnostic(
        "last-good",
        Where(old.path),
        f"the newest version of this {kind} is broken; the last good one is served",
        "fix the errors above; the files are read again automatically",
    )


def _tool_entries(plugins: Iterable[PluginEntry], previous: Catalog) -> Iterable[ToolEntry]:
    before = {id(entry.contribution): entry for entry in previous.all_tools}
    for plugin in plugins:
        if plugin.is_served:
            group_lists = _groups_by_tool(plugin.contribution)
            for position, tool in enumerate(plugin.contribution.tools):
                groups = _groups_of(tool, plugin.contribution, group_lists.get(tool.name, ()))
                yield _tool_entry(plugin, tool, position, groups, before.get(id(tool)))
        unusable = plugin.contribution.unusable if plugin.state is not Status.SHADOWED else ()
        for position, tool in enumerate(unusable, len(plugin.contribution.tools)):
            groups = _groups_of(tool, plugin.contribution, ())
            yield _tool_entry(plugin, tool, position, groups, before.get(id(tool)))


def _state_of_part(plugin: PluginEntry) -> Status:
    """Return the status of the tools and groups of a served plugin.

    A degraded plugin serves only its valid parts, so these are `ok`.
    """
    return Status.OK if plugin.state is Status.DEGRADED else plugin.state


def _tool_entry(
    plugin: PluginEntry,
    tool: ToolContribution,
    position: int,
    groups: tuple[str, ...],
    old: ToolEntry | None,
) -> ToolEntry:
    rank = (*plugin.rank, position)
    state = _state_of_part(plugin) if tool.state is Status.OK else tool.state
    origin = (plugin.name, plugin.unit, rank, state, groups)
    if old is not None and origin == (old.source, old.unit, old.rank, old.state, old.groups):
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
        contribution=tool,
        version=tool.version,
        tool=tool.tool,
        contract=tool.contract,
        diagnostics=(
            *((_undescribed(tool),) if tool.description == sentence_of(tool.name) else ()),
            *tool.diagnostics,
            *((_replaces_builtin(plugin, tool),) if tool.name in SESSION_TOOLS else ()),
        ),
    )


def _undescribed(tool: ToolContribution) -> Diagnostic:
    return make_diagnostic(
        "tool-undescribed",
        Where(tool.path),
        f"the description of tool {tool.name!r} says no more than its name",
        "Write a docstring that says what the tool does and when to use it.",
    )


def _replaces_builtin(plugin: PluginEntry, tool: ToolContribution) -> Diagnostic:
    return make_diagnostic(
        "tool-replaces-own",
        Where(tool.path),
        f"tool {tool.name!r} of {plugin.name!r} replaces the session's built-in tool",
        "rename it unless that is intended",
    )


def _groups_by_tool(owner: PluginContribution) -> Mapping[str, list[str]]:
    """Map each tool to the groups that list it."""
    groups: dict[str, list[str]] = {}
    for group in owner.groups:
        for name in group.tools:
            groups.setdefault(name, []).append(group.name)
    return groups


def _groups_of(
    tool: ToolContribution, owner: PluginContribution, listing: Iterable[str]
) -> tuple[str, ...]:
    """Return the groups that a tool names, then those that list it.

    A tool without either is in its owner's first group; a tool of the host is in `basic`.
    """
    if groups := tuple(dict.fromkeys((*tool.groups, *listing))):
        return groups
    return (owner.groups[0].name if owner.groups and owner.source != HOST else BASIC_GROUP,)


Membership = Mapping[tuple[str, str], tuple[str, ...]]
"""The groups that list a skill, by source and name; for groups of the host the source is `""`."""


def _skill_membership(plugins: Iterable[PluginEntry]) -> Membership:
    groups: dict[tuple[str, str], list[str]] = {}
    for plugin in plugins:
        for group in plugin.groups:
            owner = "" if plugin.source == HOST else plugin.name
            for skill in group.skills:
                groups.setdefault((owner, skill), []).append(group.name)
    return {key: tuple(names) for key, names in groups.items()}


def _with_groups(entry: SkillEntry, membership: Membership) -> SkillEntry:
    of_root = entry.finding.place.groups if entry.finding else ()
    of_owner = membership.get((entry.source, entry.name), ())
    of_host = membership.get(("", entry.name), ())
    groups = tuple(dict.fromkeys((*of_root, *of_owner, *of_host)))
    return entry if entry.groups == groups else replace(entry, groups=groups)


def _apply_to_skills(
    rules: DisableRules,
    skills: Iterable[tuple[RankedSkill, SkillEntry]],
    membership: Membership,
) -> Iterable[SkillEntry]:
    """Disable skills by rule. Disabling forgets the last good version, as a restart does."""
    for ranked, entry in skills:
        if rules.reason(entry) is None:
            yield entry
        else:
            yield rules.apply(_with_groups(next_skill_entry(ranked, None), membership))


def _described_groups(plugins: Iterable[PluginEntry]) -> Iterable[tuple[str, str]]:
    """Yield each described group with its owner."""
    for plugin in plugins:
        for group in plugin.groups:
            yield group.name, plugin.name


def _group_entries(
    plugins: Sequence[PluginEntry],
    tools: Sequence[ToolEntry],
    skills: Sequence[SkillEntry],
    rules: DisableRules,
) -> list[GroupEntry]:
    """Return the groups. If several plugins describe one, the first description is used."""
    groups: dict[str, GroupEntry] = {BASIC_GROUP: _basic_group()}
    disabled: list[GroupEntry] = []
    for plugin in plugins:
        for group in plugin.groups:
            entry = rules.apply(_group_entry(plugin, group, skills))
            if not entry.is_served:
                disabled.append(entry)
            elif (first := groups.setdefault(group.name, entry)) is not entry:
                groups[group.name] = replace(
                    first, diagnostics=(*first.diagnostics, _described_twice(first, plugin))
                )
    members: list[ToolEntry | SkillEntry] = [*tools, *skills]
    for member in members:
        for name in member.groups if member.is_served else ():
            if name not in groups and name not in rules.disabled_groups:
                groups[name] = _undescribed_group(member, name)
    _add_notes(groups, plugins)
    tools_in, skills_in = _members(tools), _members(skills)
    return [
        *(
            replace(entry, tools=tools_in.get(name, ()), skills=skills_in.get(name, ()))
            for name, entry in groups.items()
        ),
        *disabled,
    ]


def _add_notes(groups: dict[str, GroupEntry], plugins: Iterable[PluginEntry]) -> None:
    """Add the notes that plugins have for groups of others."""
    for plugin in plugins:
        for name, notes in plugin.contribution.notes.items() if plugin.is_served else ():
            if (group := groups.get(name)) is not None:
                text = "\n\n".join(filter(None, (group.notes, notes)))
                groups[name] = replace(group, notes=text)


def _members(entries: Iterable[ToolEntry | SkillEntry]) -> dict[str, tuple[str, ...]]:
    """Map each group to the sorted names of its served entries."""
    members: dict[str, set[str]] = {}
    for entry in entries:
        for group in entry.groups if entry.is_served else ():
            members.setdefault(group, set()).add(entry.name)
    return {group: tuple(sorted(names)) for group, names in members.items()}


def _basic_group() -> GroupEntry:
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


def _group_entry(plugin: PluginEntry, group: Group, skills: Sequence[SkillEntry]) -> GroupEntry:
    return GroupEntry(
        name=group.name,
        description=group.description,
        source=plugin.name,
        scope=plugin.scope,
        path=plugin.path,
        unit=plugin.unit,
        rank=plugin.rank,
        state=_state_of_part(plugin) if plugin.is_served else Status.OK,
        notes=group.notes,
        active=group.active,
        is_off=group.is_off,
        missing=group.missing,
        runner=group.runner,
        diagnostics=_unknown_skills(plugin, group, skills),
    )


def _undescribed_group(member: ToolEntry | SkillEntry, name: str) -> GroupEntry:
    kind = entry_kind(member)
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
                f"{kind} {member.name!r} is in group {name!r}, which has no description",
                f"describe the group where the {kind} is defined",
            ),
        ),
    )


def _unknown_skills(
    plugin: PluginEntry, group: Group, skills: Sequence[SkillEntry]
) -> tuple[Diagnostic, ...]:
    """Report listed skills that the owner does not have; the host owns all skills."""
    if not group.skills:
        return ()
    own = {skill.name for skill in skills if plugin.source == HOST or skill.source == plugin.name}
    return tuple(
        make_diagnostic(
            "plugin-group-unknown",
            Where(plugin.path),
            f"group {group.name!r} lists the skill {name!r}, which does not exist",
            "correct the name, or add the skill",
        )
        for name in group.skills
        if name not in own
    )


def _described_twice(first: GroupEntry, second: PluginEntry) -> Diagnostic:
    return make_diagnostic(
        "group-declared-twice",
        Where(second.path),
        f"group {first.name!r} is described by {first.source!r} and by {second.name!r}; "
        f"the description of {first.source!r} counts, the tools of both belong to it",
        "use another group name in one of the two",
    )
