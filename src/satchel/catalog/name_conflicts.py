"""Conflicts: of two entries of one name, which is served."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from satchel.catalog.catalog_entries import Entry, PluginEntry, SkillEntry, Status, ToolEntry
from satchel.diagnostics import Diagnostic, Where, make_diagnostic

E = TypeVar("E", bound=Entry)


def resolve_skills(entries: Iterable[SkillEntry]) -> list[SkillEntry]:
    """Let the nearer scope win, in one scope the first; equal bytes count once, without a fuss."""
    return _settle(entries, _skill_lost)


def resolve_tools(entries: Iterable[ToolEntry]) -> list[ToolEntry]:
    """Let the nearer owner win, in one scope the first."""
    return _settle(entries, lambda winner, loser: _lost("tool", winner, loser))


def resolve_plugins(entries: Iterable[PluginEntry]) -> list[PluginEntry]:
    """Let the nearer plugin win, in one scope the first; the other brings nothing."""
    return _settle(entries, lambda winner, loser: _lost("plugin", winner, loser))


def _settle(entries: Iterable[E], lost: Callable[[E, E], Diagnostic]) -> list[E]:
    """Mark all but the first served entry of each name as shadowed.

    What is broken, disabled or held does not compete, and a last good version only where there is
    no good one: so a broken copy never shadows a good one.
    """
    ordered = sorted(entries, key=lambda e: (e.state is Status.STALE, e.scope, e.rank))
    winners: dict[str, E] = {}
    settled = []
    for entry in ordered:
        if entry.is_served and winners.setdefault(entry.name, entry) is not entry:
            problem = lost(winners[entry.name], entry)
            entry = replace(  # noqa: PLW2901 - the entry as it leaves the contest
                entry, state=Status.SHADOWED, diagnostics=(*entry.diagnostics, problem)
            )
        settled.append(entry)
    return settled


def _skill_lost(winner: SkillEntry, loser: SkillEntry) -> Diagnostic:
    # The digest of a stale one names the broken bytes, not those that would be served.
    if winner.digest == loser.digest and winner.state is loser.state is Status.OK:
        return make_diagnostic(
            "skill-duplicate",
            Where(loser.path),
            f"is the same skill as {winner.path}, byte for byte; it counts once",
        )
    return _lost("skill", winner, loser)


def _lost(kind: str, winner: Entry, loser: Entry) -> Diagnostic:
    other = next((name for name in loser.addresses if name not in winner.addresses), None)
    return make_diagnostic(
        f"{kind}-shadowed",
        Where(loser.path),
        f"{kind} {loser.name!r} of {loser.source!r} is shadowed by that of {winner.source!r} "
        f"({winner.path})",
        "rename one of the two" + (f", or ask for {other!r}" if other else ""),
    )
