"""Build the next catalog from the findings and the previous catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from satchel.catalog.catalog import Catalog, places_of
from satchel.catalog.catalog_entries import HOST, Entry, PluginEntry, SkillEntry
from satchel.catalog.disable_rules import disable_rules, nothing_disabled
from satchel.catalog.group_entries import described_groups, group_entries
from satchel.catalog.name_conflicts import resolve_skills, resolve_tools, unshadowed
from satchel.catalog.name_holds import NameRules, hold_newcomers
from satchel.catalog.tool_entries import tool_entries
from satchel.catalog.unit_entries import next_skill_entry, skill_entries

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import ToolEntry
    from satchel.catalog.disable_rules import DisableReason, DisableRules
    from satchel.catalog.unit_entries import RankedSkill, SkillChanges
    from satchel.diagnostics import Diagnostic

E = TypeVar("E", bound=Entry)
_ORDER = attrgetter("name", "scope", "rank")


def build(
    skills: Iterable[RankedSkill],
    plugins: Sequence[PluginEntry],
    previous: Catalog,
    diagnostics: Iterable[Diagnostic] = (),
    disable_reason: DisableReason = nothing_disabled,
    *,
    first_skills: tuple[str, ...] = (),
    names: NameRules | None = None,
    changes: SkillChanges | None = None,
) -> Catalog:
    """Build the catalog after `previous`, or return `previous` itself if nothing changed.

    With `changes`, `skills` are only those that are new or changed.

    `plugins` come from `build_plugins`. A broken unit that was good in `previous` keeps its good
    version, marked stale. An entry for which `disable_reason` returns a reason is disabled and
    shadows nothing. `names` say who owns a contested name.
    """
    number = previous.generation + 1
    names = names or NameRules()
    skills = tuple(skills)
    before = changes.before(previous) if changes else previous.all_skills
    keeps_plugins = changes is not None and changes.keeps_plugins
    listed = tuple(entry for entry in plugins if entry.source != HOST)
    membership = skill_membership(plugins)
    found_skills = [
        (ranked, _with_groups(entry, membership))
        for ranked, entry in skill_entries(skills, before, names, number)
    ]
    found_tools = () if keeps_plugins else tuple(tool_entries(plugins, previous))
    members: list[ToolEntry | SkillEntry] = [*found_tools, *(entry for _, entry in found_skills)]
    rules = disable_rules(described_groups(plugins), members, disable_reason)
    parts = {**previous.parts}
    next_skills = list(_apply_to_skills(rules, found_skills, membership, names))
    if changes is None:
        parts["all_skills"] = _with_generation(resolve_skills(next_skills, names), before, number)
    else:
        parts["all_skills"] = _with_changes(previous, before, next_skills, names)
    if not keeps_plugins:
        usable = hold_newcomers(map(rules.apply, found_tools), plugins, names)
        parts["all_tools"] = _with_generation(resolve_tools(usable), previous.all_tools, number)
        parts["all_plugins"] = _with_generation(listed, previous.all_plugins, number)
    changed = frozenset(entry.name for entry in (*before, *next_skills)) if changes else None
    # Group entries stay the same if no plugin changed and no skill of a changed name is in a group.
    same_name = chain(previous.skills_named(changed), next_skills)
    if not keeps_plugins or membership or any(entry.groups for entry in same_name):
        groups = group_entries(plugins, parts["all_tools"], parts["all_skills"], rules)
        parts["all_groups"] = _with_generation(groups, previous.all_groups, number)
    parts |= {
        "source_diagnostics": tuple(dict.fromkeys(diagnostics)),
        "first_skills": first_skills,
    }
    if parts == previous.parts and _has_same_access(parts["all_skills"], previous.all_skills):
        return previous
    return Catalog(generation=number, changed_skills=changed, **parts)


def _has_same_access(now: Sequence[SkillEntry], before: Sequence[SkillEntry]) -> bool:
    """Return whether equal skills may be used as before: new trust may let their scripts run."""
    return all(new is old or new.access == old.access for new, old in zip(now, before, strict=True))


def _with_changes(
    previous: Catalog,
    before: Sequence[SkillEntry],
    now: Sequence[SkillEntry],
    names: NameRules,
) -> tuple[SkillEntry, ...]:
    """Return all skills after those in `before` became those in `now`.

    Only skills of the same names affect each other.
    """
    number, skills = previous.generation + 1, list(previous.all_skills)
    changed = {entry.identity for entry in before}
    for name in {entry.name for entry in (*before, *now)}:
        at = places_of(name, skills)
        same_name = skills[at]
        others = [unshadowed(entry) for entry in same_name if entry.identity not in changed]
        rivals = [*others, *(entry for entry in now if entry.name == name)]
        resolved = resolve_skills(rivals, names)
        skills[at] = _with_generation(resolved, same_name, number)
    return tuple(skills)


def _with_generation(entries: Iterable[E], before: Sequence[E], number: int) -> tuple[E, ...]:
    """Sort the entries by name, and give each the generation in which it last changed."""
    previous = {entry.identity: entry for entry in before}
    numbered = (
        _with_last_generation(entry, previous.get(entry.identity), number) for entry in entries
    )
    return tuple(sorted(numbered, key=_ORDER))


def _with_last_generation(entry: E, old: E | None, number: int) -> E:
    """Give an entry the generation in which it last changed: `number`, or that of `old`."""
    if old is entry:
        return entry
    if old is not None and (unchanged := replace(entry, generation=old.generation)) == old:
        return unchanged
    return entry if entry.generation == number else replace(entry, generation=number)


Membership = Mapping[tuple[str, str], tuple[str, ...]]
"""The groups that list a skill, by source and name; for groups of the host the source is `""`."""


def skill_membership(plugins: Iterable[PluginEntry]) -> Membership:
    """Return which groups list which skills."""
    groups: dict[tuple[str, str], list[str]] = {}
    for plugin in plugins:
        for group in plugin.groups:
            owner = "" if plugin.source == HOST else plugin.name
            for skill in group.skills:
                groups.setdefault((owner, skill), []).append(group.name)
    return {key: tuple(names) for key, names in groups.items()}


def _with_groups(entry: SkillEntry, membership: Membership) -> SkillEntry:
    root_groups = entry.finding.root.groups if entry.finding else ()
    if not (root_groups or membership or entry.groups):
        return entry  # Most are in no group.
    owner_groups = membership.get((entry.source, entry.name), ())
    host_groups = membership.get(("", entry.name), ())
    groups = tuple(dict.fromkeys((*root_groups, *owner_groups, *host_groups)))
    return entry if entry.groups == groups else replace(entry, groups=groups)


def _apply_to_skills(
    rules: DisableRules,
    skills: Iterable[tuple[RankedSkill, SkillEntry]],
    membership: Membership,
    names: NameRules,
) -> Iterable[SkillEntry]:
    """Disable skills by rule. Disabling forgets the last good version, as a restart does."""
    for ranked, entry in skills:
        if rules.reason(entry) is None:
            yield entry
        else:
            yield rules.apply(_with_groups(next_skill_entry(ranked, None, names), membership))
