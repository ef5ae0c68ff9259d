"""The diagnostics of a catalog, grouped by the entry that they are about."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.diagnostics import Diagnostic, Severity
from satchel.lazy_dataclass import dataclass
from satchel.reports.fix_commands import command_for
from satchel.reports.repair_advice import with_free_names
from satchel.reports.serializer import KINDS, entries_of
from satchel.reports.short_texts import worst_first
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry

_OF_VALUES = frozenset(
    {"config-invalid", "group-unavailable", "plugin-startup-failed", "tool-state-missing"}
)
"""Diagnostics of configured values, which are unknown while their plugin is broken."""


@dataclass(frozen=True, slots=True)
class DoctorCase:
    """The diagnostics of one entry, or of the sources, worst first."""

    kind: str
    entry: "Entry | None"
    diagnostics: tuple[Diagnostic, ...]

    @property
    def title(self) -> str:
        """Return the heading for the user."""
        if self.entry is None:
            return "sources"
        return one_line(f"{self.kind} {self.entry.name} ({self.entry.source})")

    def command_for(self, item: Diagnostic) -> str | None:
        """Return the shell command that fixes a diagnostic, if there is one."""
        return command_for(item, self.entry)


def doctor_cases(catalog: "Catalog") -> list[DoctorCase]:
    """Return the diagnostics by entry, worst case first; each is listed under one entry only."""
    reported = dict.fromkeys(catalog.source_diagnostics)
    cases = [DoctorCase("source", None, tuple(worst_first(reported)))]
    # Plugins first: their problems explain those of their tools and skills.
    for kind in reversed(KINDS):
        for entry in entries_of(catalog, kind):
            new = dict.fromkeys(item for item in entry.diagnostics if item not in reported)
            cases.append(DoctorCase(kind, entry, tuple(worst_first(new))))
            reported |= new
    skills = {skill.path: skill.name for skill in catalog.all_skills}
    corrected = with_free_names(reported, skills)
    cases = [
        replace(case, diagnostics=tuple(corrected.get(item, item) for item in case.diagnostics))
        for case in cases
        if case.diagnostics
    ]
    return sorted(cases, key=lambda case: list(Severity).index(case.diagnostics[0].severity))


def known_problems(before: Mapping[Diagnostic, str], catalog: "Catalog") -> dict[Diagnostic, str]:
    """Return the problems that need not be reported again, each with its plugin.

    Warnings and missing values of a plugin that is broken meanwhile are only hidden.
    """
    owners = {item: plugin.name for plugin in catalog.all_plugins for item in plugin.diagnostics}
    broken = {item.name for item in catalog.all_plugins if item.state in {"failed", "stale"}}
    hidden = {
        item: owner
        for item, owner in before.items()
        if owner in broken and (item.code in _OF_VALUES or item.severity is Severity.WARNING)
    }
    return hidden | {item: owners.get(item, "") for item in catalog.diagnostics}
