"""Name conflicts: choose the entry that is served for each name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from satchel.catalog.catalog_entries import Entry, SkillEntry, Status
from satchel.catalog.name_holds import NameRules
from satchel.diagnostics import Where, make_diagnostic
from satchel.mixed_scripts import skeleton
from satchel.sources.search_roots import RootKind
from satchel.text import escaped

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginEntry, ToolEntry
    from satchel.diagnostics import Diagnostic
    from satchel.sources.search_roots import Precedence

E = TypeVar("E", bound=Entry)

SAY_LAST_GOOD = frozenset({"last-good", "provider-failed"})
"""The diagnostics of an entry which say that its last good version is served."""


def resolve_skills(
    entries: Iterable[SkillEntry], rules: NameRules | None = None
) -> list[SkillEntry]:
    """Serve the entry with the highest precedence, then the owner of the name or the first by rank.

    A copy is not a conflict: the same SKILL.md, and other files of the same names and sizes.
    A broken copy in a hidden folder does not matter while the visible skill is served.
    A name of another alphabet that reads like one that is served yields, whatever its precedence.
    """
    entries = _without_newcomers(entries, rules or NameRules())
    return _without_look_alikes(_without_mirrors(_resolve(entries, _skill_diagnostic)))


def resolve_tools(entries: Iterable[ToolEntry]) -> list[ToolEntry]:
    """Serve the entry with the highest precedence, then the first by rank."""
    return _resolve(entries, lambda winner, loser: _shadowed_diagnostic("tool", winner, loser))


def resolve_plugins(entries: Iterable[PluginEntry]) -> list[PluginEntry]:
    """Serve the entry with the highest precedence, then the first by rank.

    The other plugins contribute nothing.
    """
    return _resolve(entries, lambda winner, loser: _shadowed_diagnostic("plugin", winner, loser))


def _resolve(entries: Iterable[E], diagnose: Callable[[E, E], Diagnostic]) -> list[E]:
    """Mark all but the first served entry of each name as shadowed.

    Broken, disabled and held entries do not compete. A last good version competes only if there
    is no good entry, so a broken copy never shadows a good one.
    """
    ordered = sorted(entries, key=lambda e: (e.state is Status.STALE, e.scope, e.rank))
    winners: dict[str, E] = {}
    resolved = []
    for entry in ordered:
        if entry.is_served and winners.setdefault(entry.name, entry) is not entry:
            problem = diagnose(winners[entry.name], entry)
            entry = replace(  # noqa: PLW2901 - the resolved entry
                entry, state=Status.SHADOWED, diagnostics=(*entry.diagnostics, problem)
            )
        resolved.append(entry)
    return resolved


def _without_newcomers(entries: Iterable[SkillEntry], rules: NameRules) -> list[SkillEntry]:
    """Hold the skills that would take a name from its owner; a copy of the owner is shadowed."""
    skills = list(entries)
    if len({skill.name for skill in skills}) == len(skills):
        return skills
    by_name: dict[str, list[SkillEntry]] = {}
    for skill in skills:
        by_name.setdefault(skill.name, []).append(skill)
    newcomers = {
        id(skill): _newcomer(skill, owner, rules)
        for name, rivals in by_name.items()
        if len(rivals) > 1
        for skill, owner in _with_owners(rivals, rules.owners("skill", name))
    }
    return [newcomers.get(id(skill), skill) for skill in skills]


def _with_owners(
    rivals: Iterable[SkillEntry], units: Iterable[str]
) -> Iterable[tuple[SkillEntry, SkillEntry]]:
    """Yield each skill that comes before the owner of its name and precedence, with that."""
    ordered = sorted(rivals, key=lambda skill: skill.rank)
    owners: dict[Precedence, SkillEntry] = {}
    for unit in units:
        for skill in ordered:
            if skill.unit == unit and skill.state is not Status.DISABLED:
                owners.setdefault(skill.scope, skill)
    for skill in ordered if owners else ():
        owner = owners.get(skill.scope, skill)
        is_new = skill.unit != owner.unit and skill.rank < owner.rank
        if is_new and skill.is_served and not _is_meant_first(skill, owner):
            yield skill, owner


def _is_meant_first(skill: SkillEntry, owner: SkillEntry) -> bool:
    """Return whether its folder was named first, as with `--skills`, or the owner is a command."""
    if skill.finding is None or owner.finding is None:
        return False
    root, owners_root = skill.finding.root, owner.finding.root
    is_before_commands = owners_root.holds is RootKind.COMMANDS and root.holds is RootKind.SKILLS
    return is_before_commands or (not root.optional and root != owners_root)


def _newcomer(skill: SkillEntry, owner: SkillEntry, rules: NameRules) -> SkillEntry:
    state, problem = Status.SHADOWED, _skill_diagnostic(owner, skill)
    if problem.code != "skill-duplicate":
        own = [address for address in skill.addresses if address not in owner.addresses]
        if any(rules.is_chosen("skill", address) for address in own):
            return skill
        choice = f"satchel enable {quote(own[-1])}, to serve the new one; or " if own else ""
        state, problem = (
            Status.HELD,
            make_diagnostic(
                "skill-name-held",
                Where(skill.path),
                f"skill {skill.name!r} is new, and {owner.path} served this name before",
                f"{choice}rename one of the two",
            ),
        )
    return replace(skill, state=state, diagnostics=(*skill.diagnostics, problem))


def _without_mirrors(skills: list[SkillEntry]) -> list[SkillEntry]:
    """Mark broken skills of hidden folders as shadowed if the visible one is served."""
    if not any(skill.state is Status.FAILED and _is_hidden(skill) for skill in skills):
        return skills
    served = {(it.source, it.name): it for it in skills if it.is_served and not _is_hidden(it)}
    return [
        _mirror(served[skill.source, skill.name], skill)
        if skill.state is Status.FAILED
        and _is_hidden(skill)
        and (skill.source, skill.name) in served
        else skill
        for skill in skills
    ]


def _mirror(winner: SkillEntry, broken: SkillEntry) -> SkillEntry:
    reason = broken.diagnostics[0].message if broken.diagnostics else "cannot be read"
    problem = make_diagnostic(
        "skill-mirrored",
        Where(broken.path),
        f"is a broken copy of {winner.path}, in a hidden folder; the visible one is served: "
        f"{reason}",
        "remove the copy, or write it again",
    )
    return replace(broken, state=Status.SHADOWED, diagnostics=(problem,))


def _without_look_alikes(skills: list[SkillEntry]) -> list[SkillEntry]:
    if "".join([skill.name for skill in skills]).isascii():
        return skills
    served = {skill.name.casefold(): skill for skill in skills if skill.is_served}
    for at, skill in enumerate(skills):
        if skill.name.isascii() or not skill.is_served:
            continue
        other = served.get(skeleton(skill.name), skill)
        if other.name.isascii():
            problem = make_diagnostic(
                "skill-shadowed",
                Where(skill.path),
                f"the name {escaped(skill.name)} reads like that of the skill {other.name!r} "
                f"({other.path})",
                "rename one of the two",
            )
            skills[at] = replace(
                skill, state=Status.SHADOWED, diagnostics=(*skill.diagnostics, problem)
            )
    return skills


def unshadowed(entry: E) -> E:
    """Return an entry of the previous catalog as it was before name conflicts were resolved."""
    is_held_skill = entry.state is Status.HELD and isinstance(entry, SkillEntry)
    if entry.state is not Status.SHADOWED and not is_held_skill:
        return entry
    if isinstance(entry, SkillEntry) and entry.manifest is None:
        problems = entry.finding.problems if entry.finding else ()
        return replace(entry, state=Status.FAILED, diagnostics=problems)
    kept = entry.diagnostics[:-1]
    stale = any(item.code in SAY_LAST_GOOD for item in kept)
    return replace(entry, state=Status.STALE if stale else Status.OK, diagnostics=kept)


def _skill_diagnostic(winner: SkillEntry, loser: SkillEntry) -> Diagnostic:
    # The files of a stale entry are those of the broken content, not of what is served.
    if winner.state is loser.state is Status.OK and _outline(winner) == _outline(loser):
        return make_diagnostic(
            "skill-duplicate",
            Where(loser.path),
            f"is a copy of {winner.path}; it is served once",
        )
    if winner.source == loser.source and _is_hidden(loser) and not _is_hidden(winner):
        return make_diagnostic(
            "skill-mirrored",
            Where(loser.path),
            f"is another version of {winner.path}, in a hidden folder; the visible one is served",
            "name the hidden folder as the only source if you want its version",
        )
    return _shadowed_diagnostic("skill", winner, loser)


def _outline(skill: SkillEntry) -> object:
    """Return the names and sizes of all files, and the digests of those that were read."""
    return [(file.name, file.size, file.digest) for file in skill.files] or skill.digest


def _is_hidden(skill: SkillEntry) -> bool:
    return skill.finding is not None and skill.finding.is_hidden


def _shadowed_diagnostic(kind: str, winner: Entry, loser: Entry) -> Diagnostic:
    own_address = next((name for name in loser.addresses if name not in winner.addresses), None)
    rename = "rename one of the two" + (" in its manifest" if kind == "plugin" else "")
    one, other = (
        (f"{kind} {loser.name!r}", "another of this name")
        if loser.source == winner.source
        else (f"{kind} {loser.name!r} of {loser.source!r}", f"that of {winner.source!r}")
    )
    return make_diagnostic(
        f"{kind}-shadowed",
        Where(loser.path),
        f"{one} is shadowed by {other} ({winner.path})",
        rename + (f", or ask for {own_address!r}" if own_address else ""),
    )
