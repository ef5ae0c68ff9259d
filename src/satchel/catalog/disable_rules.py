"""Disable entries that the user turned off: they stay in the catalog and are not served."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import Entry, SkillEntry, Status, ToolEntry
from satchel.diagnostics import Diagnostic, make_diagnostic
from satchel.lazy_dataclass import dataclass

E = TypeVar("E", bound=Entry)

DisableReason = Callable[[str, str, Iterable[str]], Diagnostic | None]
"""Takes a kind, a name and its aliases; returns why it is disabled, or `None`."""


def nothing_disabled(_kind: str, _name: str, _others: Iterable[str]) -> None:
    """Disable nothing."""


@dataclass(frozen=True, slots=True)
class DisableRules:
    """Which entries are disabled, by themselves or with all of their groups."""

    is_disabled: DisableReason
    disabled_groups: Mapping[str, Diagnostic]
    """The groups whose owners are all disabled, with the reason."""

    def reason(self, entry: Entry) -> Diagnostic | None:
        """Return why an entry is disabled, or `None`."""
        if self.is_disabled is nothing_disabled:
            return None
        aliases = (*entry.addresses, entry.source)
        reason = self.is_disabled(entry_kind(entry), entry.name, aliases)
        if reason is not None or not isinstance(entry, ToolEntry | SkillEntry) or not entry.groups:
            return reason
        reasons = [self.disabled_groups.get(name) for name in entry.groups]
        return _disabled_with(entry, reasons[0]) if reasons[0] and all(reasons) else None

    def apply(self, entry: E) -> E:
        """Return the entry, disabled if there is a reason; the reason replaces its diagnostics."""
        reason = self.reason(entry)
        if reason is None:
            return entry
        return replace(entry, state=Status.DISABLED, diagnostics=(reason,))


def disable_rules(
    described: Iterable[tuple[str, str]],
    members: Iterable[ToolEntry | SkillEntry],
    is_disabled: DisableReason,
) -> DisableRules:
    """Find the groups that are disabled for all their owners.

    `described` are pairs of a group and its owner. The owners of a group without a description
    are the sources of its members.
    """
    owners = dict.fromkeys(described)
    names = {name for name, _ in owners}
    for entry in members:
        if entry.groups:  # Most are in no group.
            owners |= {(name, entry.source): None for name in entry.groups if name not in names}
    reasons: dict[str, list[Diagnostic | None]] = {}
    for name, owner in owners:
        reason = is_disabled("group", name, (f"{owner}:{name}", owner))
        reasons.setdefault(name, []).append(reason)
    groups = {name: first for name, (first, *rest) in reasons.items() if first and all(rest)}
    return DisableRules(is_disabled, groups)


def _disabled_with(entry: ToolEntry | SkillEntry, group: Diagnostic) -> Diagnostic:
    kind, groups = entry_kind(entry), ", ".join(map(repr, entry.groups))
    message = f"{kind} {entry.name!r} is disabled with the group {groups}"
    return make_diagnostic("disabled", group.where, message, group.fix)
