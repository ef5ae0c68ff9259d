"""Switching off: what the user wants no part of stays in the catalog, and is not served."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import Entry, SkillEntry, Status, ToolEntry
from satchel.diagnostics import Diagnostic, make_diagnostic

E = TypeVar("E", bound=Entry)

Off = Callable[[str, str, Iterable[str]], Diagnostic | None]
"""Says why something is off, `None` if it is on: of its kind, its name, and its other names."""


def nothing_disabled(_kind: str, _name: str, _others: Iterable[str]) -> None:
    """Leave everything on."""


@dataclass(frozen=True, slots=True)
class DisableRules:
    """What is off, by itself or with all of its groups."""

    off: Off
    closed: Mapping[str, Diagnostic]
    """The groups that nobody describes who is not off, by name."""

    def problem(self, entry: Entry) -> Diagnostic | None:
        """Say why an entry is off, `None` if it is on."""
        if self.off is nothing_disabled:
            return None
        own = self.off(entry_kind(entry), entry.name, (*entry.addresses, entry.source))
        if own is not None or not isinstance(entry, ToolEntry | SkillEntry) or not entry.groups:
            return own
        closed = [self.closed[name] for name in entry.groups if name in self.closed]
        return _with_groups(entry, closed[0]) if len(closed) == len(entry.groups) else None

    def apply(self, entry: E) -> E:
        """Return an entry, disabled if it is off."""
        return disable_entry(entry, self.problem(entry))


def disable_entry(entry: E, problem: Diagnostic | None) -> E:
    """Disable an entry if there is a reason; nothing else is then said of it."""
    if problem is None:
        return entry
    return replace(entry, state=Status.DISABLED, diagnostics=(problem,))


def disable_rules(
    described: Iterable[tuple[str, str]], members: Iterable[ToolEntry | SkillEntry], off: Off
) -> DisableRules:
    """Find the groups that are off: for all who describe them, or else for all who are in them.

    `described` are the names of groups, each with that of its owner.
    """
    owners = dict.fromkeys(described)
    known = {name for name, _ in owners}
    for entry in members:
        owners |= {(name, entry.source): None for name in entry.groups if name not in known}
    found: dict[str, list[Diagnostic | None]] = {}
    for name, owner in owners:
        found.setdefault(name, []).append(off("group", name, (f"{owner}:{name}", owner)))
    closed = {name: problems[0] for name, problems in found.items() if all(problems)}
    return DisableRules(off, {name: problem for name, problem in closed.items() if problem})


def _with_groups(entry: ToolEntry | SkillEntry, group: Diagnostic) -> Diagnostic:
    kind, groups = entry_kind(entry), ", ".join(map(repr, entry.groups))
    message = f"{kind} {entry.name!r} is switched off with the group {groups}"
    return make_diagnostic("disabled", group.where, message, group.fix)
