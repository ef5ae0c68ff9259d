"""The next catalog after edits inside skills: no other entry is looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import with_last_generation
from satchel.catalog.catalog_entries import Status
from satchel.catalog.unit_entries import next_skill_entry

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.catalog.unit_entries import RankedSkill
    from satchel.diagnostics import Diagnostic


def edit_skills(
    edited: Iterable[RankedSkill], previous: Catalog, diagnostics: Iterable[Diagnostic]
) -> Catalog | None:
    """Return the catalog that `build` would, or `None` if an edit may affect other entries.

    An edit affects no other entry if the skill keeps its name, its place and its good state, and
    no other skill has that name. Nothing but these skills and `diagnostics` may have changed since
    `previous`.
    """
    number, skills = previous.generation + 1, list(previous.all_skills)
    served: dict[str, SkillEntry] = previous.skills.copy()  # type: ignore[attr-defined]
    names = set[str]()
    for ranked in edited:
        at = _position(ranked, skills)
        if at is None:
            return None
        old = skills[at]
        if old.finding is ranked.finding:
            continue
        entry = replace(next_skill_entry(ranked, None), groups=old.groups)
        if not (entry.state is old.state is Status.OK and _is_same_place(entry, old)):
            return None
        skills[at] = served[old.name] = with_last_generation(entry, old, number)
        names.add(old.name)
    parts = {
        **previous.parts,
        "all_skills": tuple(skills),
        "source_diagnostics": tuple(dict.fromkeys(diagnostics)),
    }
    if parts == previous.parts:
        return previous
    return Catalog(
        generation=number,
        served_skills=MappingProxyType(served),
        edited=frozenset(names),
        **parts,
    )


def _position(ranked: RankedSkill, skills: Sequence[SkillEntry]) -> int | None:
    """Find the entry of a skill, unless others have its name."""
    finding = ranked.finding
    name = finding.manifest.name if finding.manifest else finding.folder_name
    at = bisect_left(skills, name, key=lambda entry: entry.name)
    same = [entry for entry in skills[at : at + 2] if entry.name == name]
    is_found = len(same) == 1 and same[0].unit == finding.path
    return at if is_found and same[0].rank == ranked.rank else None


def _is_same_place(entry: SkillEntry, old: SkillEntry) -> bool:
    return (
        old.finding is not None
        and entry.finding is not None
        and (entry.finding.place == old.finding.place)
    )
