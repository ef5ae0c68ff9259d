"""The entries of plugins and skills: the newest version, or the last good one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import PluginEntry, SkillEntry, Status
from satchel.catalog.name_conflicts import SAY_LAST_GOOD, resolve_plugins, unshadowed
from satchel.diagnostics import Where, has_error, make_diagnostic
from satchel.lazy_dataclass import dataclass, fast_constructor

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.catalog.name_holds import NameRules
    from satchel.diagnostics import Diagnostic
    from satchel.sources.search_roots import Precedence
    from satchel.sources.skill_findings import SkillFinding

SkillUnit = tuple["Precedence", str, str]
"""The identity of a skill in every catalog: scope, source, unit."""
_UNIT = attrgetter("unit")


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """A found skill with its rank in the order of precedence."""

    finding: SkillFinding
    rank: tuple[object, ...]
    is_settling: bool
    """Whether it is broken or much shorter, but perhaps half written: the previous entry stays."""


@dataclass(frozen=True, slots=True)
class SkillChanges:
    """A few changed skills: the next catalog keeps all others of the previous one."""

    names: Mapping[SkillUnit, str]
    """The former names of the skills that changed or are gone."""
    keeps_plugins: bool
    """Whether all plugins are the same as well."""

    def before(self, previous: Catalog) -> list[SkillEntry]:
        """Return the former entries of the skills that changed or are gone."""
        same_name = previous.skills_named(frozenset(self.names.values()))
        entries = [it for it in same_name if (it.scope, it.source, it.unit) in self.names]
        if len(entries) < len(self.names):
            # The last good version of a broken skill has a name of its own.
            paths = {path for _, _, path in self.names}
            # No loop in Python over all: there may be very many skills.
            is_same_path = map(paths.__contains__, map(_UNIT, previous.all_skills))
            same_path = compress(previous.all_skills, is_same_path)
            entries = [it for it in same_path if (it.scope, it.source, it.unit) in self.names]
        return entries


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
            entries.append(replace(unshadowed(old), rank=contribution.rank))
    return tuple(resolve_plugins(entries))


def skill_entries(
    skills: Iterable[RankedSkill], previous: Iterable[SkillEntry], names: NameRules, number: int
) -> Iterable[tuple[RankedSkill, SkillEntry]]:
    """Yield the entry of each found skill, before it is decided which are disabled.

    `previous` are the entries that they had before.
    """
    before = {(entry.scope, entry.source, entry.unit): entry for entry in previous}
    for ranked in skills:
        old = before.get(skill_unit(ranked.finding)) if before else None
        is_disabled = old is not None and old.state is Status.DISABLED
        if ranked.is_settling and not is_disabled:
            if old is not None:
                yield ranked, replace(unshadowed(old), rank=ranked.rank)
        else:
            # Disabling forgets the last good version, as a restart does.
            yield ranked, next_skill_entry(ranked, None if is_disabled else old, names, number)


def skill_unit(finding: SkillFinding) -> SkillUnit:
    """Return the identity of a found skill."""
    return finding.root.scope, finding.root.source, finding.path


def next_skill_entry(
    ranked: RankedSkill, old: SkillEntry | None, names: NameRules, number: int = 0
) -> SkillEntry:
    """Return the entry of a found skill, without the groups that list it; `old` if unchanged.

    A new entry gets the generation `number` here; setting it later would copy the entry.
    """
    finding = ranked.finding
    if old is not None and old.finding is finding and old.rank == ranked.rank:
        return unshadowed(old)
    problems, path = finding.problems, finding.path
    manifest, digest = finding.manifest, finding.digest
    if manifest is None and old is not None and old.manifest is not None:
        return replace(
            old,
            rank=ranked.rank,
            state=Status.STALE,
            digest=digest,
            finding=finding,
            diagnostics=_with_last_good(problems, "skill", old),
        )
    return fast_constructor(SkillEntry)(
        name=manifest.name if manifest else _name_of_broken(finding, names),
        description=manifest.description if manifest else "",
        source=finding.root.source,
        scope=finding.root.scope,
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


def _name_of_broken(finding: SkillFinding, names: NameRules) -> str:
    """Return the only name that a skill had while it could be read, so that no other takes it."""
    owned = names.owned(finding.path)
    return owned[0] if len(owned) == 1 else finding.folder_name


def _plugin_entry(contribution: PluginContribution, old: PluginEntry | None) -> PluginEntry:
    served, state, problems = contribution, contribution.state, contribution.diagnostics
    if state.falls_back and old is not None and old.contribution.state is Status.OK:
        served, state = _last_good_contribution(contribution, old.contribution), Status.STALE
        is_held = contribution.is_untrusted
        problems = _with_last_good(problems, "plugin", old, is_held=is_held)
    elif state is Status.HELD and not _has_held_name(contribution):
        # Only its tools are held; its skills and notes are served.
        state = Status.DEGRADED
    elif state is Status.OK and has_error(problems):
        state = Status.DEGRADED
    elif state is Status.OK and contribution.brings_nothing:
        problems = _with_unused(contribution)
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


def _with_unused(contribution: PluginContribution) -> tuple[Diagnostic, ...]:
    """Report a plugin that brings nothing, unless the reader of its format did."""
    problems = contribution.diagnostics
    if any(item.code == "plugin-unused" for item in problems):
        return problems
    unused = make_diagnostic(
        "plugin-unused",
        Where(contribution.path),
        "brings nothing: it has no tools, skills, notes or MCP servers",
        "mark functions in tools.py with @tool, add a folder skills, load a SKILL.md of its own "
        "with --skills, or remove the plugin",
    )
    return (*problems, unused)


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


def _with_last_good(
    problems: tuple[Diagnostic, ...],
    kind: str,
    old: SkillEntry | PluginEntry,
    *,
    is_held: bool = False,
) -> tuple[Diagnostic, ...]:
    """Add that the last good version is served, unless the problems say it."""
    if any(item.code in SAY_LAST_GOOD for item in problems):
        return problems
    reason, fix = "broken; the last good one", ""
    if is_held:
        reason = "not trusted yet; the last trusted one"
    else:
        fix = "fix the errors above; the files are read again automatically"
    message = f"the newest version of this {kind} is {reason} is served"
    return (*problems, make_diagnostic("last-good", Where(old.path), message, fix))
