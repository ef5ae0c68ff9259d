"""The entries of groups: their descriptions, members and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import (
    HOST,
    GroupEntry,
    PluginEntry,
    SkillEntry,
    Status,
    ToolEntry,
)
from satchel.catalog.tool_entries import state_of_part
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import BASIC_GROUP
from satchel.sources.search_roots import Precedence

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import Group
    from satchel.catalog.disable_rules import DisableRules
    from satchel.diagnostics import Diagnostic


def described_groups(plugins: Iterable[PluginEntry]) -> Iterable[tuple[str, str]]:
    """Yield each described group with its owner."""
    for plugin in plugins:
        for group in plugin.groups:
            yield group.name, plugin.name


def group_entries(
    plugins: Sequence[PluginEntry],
    tools: Sequence[ToolEntry],
    skills: Sequence[SkillEntry],
    rules: DisableRules,
) -> list[GroupEntry]:
    """Return the groups. If several plugins describe one, the first description is used.

    Groups of plugins that failed are listed as failed.
    """
    groups: dict[str, GroupEntry] = {BASIC_GROUP: _basic_group()}
    not_served = [
        replace(_group_entry(plugin, group, ()), state=plugin.state)
        for plugin in plugins
        if plugin.state is Status.FAILED
        for group in plugin.contribution.groups
    ]
    for plugin in plugins:
        for group in plugin.groups:
            entry = rules.apply(_group_entry(plugin, group, skills))
            if not entry.is_served:
                not_served.append(entry)
            elif (first := groups.setdefault(group.name, entry)) is not entry:
                groups[group.name] = replace(
                    first, diagnostics=(*first.diagnostics, _described_twice(first, plugin))
                )
    members: list[ToolEntry | SkillEntry] = [*tools, *skills]
    for member in members:
        for name in member.groups:
            is_new = name not in groups and name not in rules.disabled_groups
            if is_new and member.is_served:
                groups[name] = _undescribed_group(member, name)
    _add_notes(groups, plugins)
    tools_in, skills_in = _members(tools), _members(skills)
    return [
        *(
            replace(entry, tools=tools_in.get(name, ()), skills=skills_in.get(name, ()))
            for name, entry in groups.items()
        ),
        *not_served,
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
        for group in entry.groups:  # Most are in no group.
            if entry.is_served:
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
        state=state_of_part(plugin) if plugin.is_served else Status.OK,
        notes=group.notes,
        active=group.active,
        is_off=group.is_off,
        missing=group.missing,
        runner=group.runner,
        diagnostics=_unknown_skills(plugin, group, skills) if plugin.is_served else (),
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
