"""The changes between two catalogs, as events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import (
    Entry,
    GroupEntry,
    PluginEntry,
    SkillEntry,
    Status,
    ToolEntry,
)
from satchel.diagnostics import Severity
from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog


class Event(StrEnum):
    """What happened to an entry."""

    LOADED = "loaded"
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    STALE = "stale"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event: an entry was added, removed or changed."""

    event: Event
    kind: str
    """`skill`, `tool`, `group` or `plugin`."""
    name: str
    source: str
    generation: int
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON-compatible data."""
        return {
            "event": str(self.event),
            "kind": self.kind,
            "name": self.name,
            "source": self.source,
            "generation": self.generation,
            "message": self.message,
        }


_KINDS: dict[type[Entry], str] = {
    PluginEntry: "plugin",
    GroupEntry: "group",
    SkillEntry: "skill",
    ToolEntry: "tool",
}
_BROKEN = {Status.STALE, Status.FAILED, Status.REVOKED}


_PART = 256
"""Entries that are compared at once."""


def entry_kind(entry: Entry) -> str:
    """Return `skill`, `tool`, `group` or `plugin`."""
    return _KINDS[type(entry)]


def loaded_events(catalog: Catalog) -> tuple[Change, ...]:
    """Return a `loaded` event for each entry."""
    return tuple(
        _change(Event.LOADED, entry, catalog, _reason(entry))
        for entry in chain(*_reported(catalog))
    )


def _reported(catalog: Catalog, skills: Iterable[str] | None = None) -> Iterable[Sequence[Entry]]:
    """Yield the entries that events are about: a revoked tool is only known, as if removed.

    Of the skills, those of some names, or all.
    """
    yield from (catalog.all_plugins, catalog.all_groups, catalog.skills_named(skills))
    tools = catalog.all_tools
    has_revoked = any(tool.state is Status.REVOKED for tool in tools)
    yield [tool for tool in tools if tool.state is not Status.REVOKED] if has_revoked else tools


def _different(
    one: Sequence[Entry], other: Sequence[Entry]
) -> Iterable[tuple[Entry | None, Entry | None]]:
    """Yield the entries that are not the same at a place."""
    # All are compared after each edit, so parts are compared first, which Python does quickly.
    for at in range(0, max(len(one), len(other)), _PART):
        parts = one[at : at + _PART], other[at : at + _PART]
        if parts[0] != parts[1]:
            yield from (pair for pair in zip_longest(*parts) if pair[0] is not pair[1])


def diff(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """Return the events from one catalog to another; removals come first."""
    skills = new.changed_skills if old.generation == new.generation - 1 else None
    before_all, after_all = [*_reported(old, skills)], [*_reported(new, skills)]
    # An unchanged entry is the same object in both, and mostly at the same place.
    moved = [
        pair
        for one, other in zip(before_all, after_all, strict=True)
        if one is not other
        for pair in _different(one, other)
    ]
    left = {id(entry): entry for entry, _ in moved if entry is not None}
    right = {id(entry): entry for _, entry in moved if entry is not None}
    before = {_name(entry): entry for entry in left.values()}
    after = {_name(entry): entry for entry in right.values()}
    both = left | right
    if before.keys() != after.keys() or not all(entry.is_served for entry in both.values()):
        # Other entries of these names may count instead.
        names = {_name(both[key]) for key in left.keys() ^ right.keys()}
        before, after = _by_name(before_all, names), _by_name(after_all, names)
    removed = [
        _change(Event.REMOVED, entry, new, "while it was not served" if not entry.is_served else "")
        for key, entry in before.items()
        if key not in after
    ]
    others = [
        change
        for key, entry in after.items()
        if (change := _compare(before.get(key), entry, new)) is not None
    ]
    return (*removed, *others)


Name = tuple[type[Entry], str, str]
"""What identifies an entry in an event."""


def _name(entry: Entry) -> Name:
    return type(entry), entry.source, entry.name


def _by_name(reported: Iterable[Sequence[Entry]], names: AbstractSet[Name]) -> dict[Name, Entry]:
    """Choose one entry for each name: the served one, or else the first."""
    chosen: dict[Name, Entry] = {}
    short = {name for _, _, name in names}
    for entry in [entry for entry in chain(*reported) if entry.name in short]:
        if (name := _name(entry)) in names:
            first = chosen.setdefault(name, entry)
            if entry.is_served and not first.is_served:
                chosen[name] = entry
    return chosen


def _compare(old: Entry | None, new: Entry, catalog: Catalog) -> Change | None:
    if old is None:
        return _change(Event.ADDED, new, catalog, _reason(new))
    if old is new or (old.unit, old.generation) == (new.unit, new.generation):
        return None
    if new.state is Status.STALE and old.state is not Status.STALE:
        return _change(Event.STALE, new, catalog, _reason(new))
    if old.state in _BROKEN and new.state in {Status.OK, Status.DEGRADED}:
        return _change(Event.RECOVERED, new, catalog, _reason(new))
    moved = f"now {new.path}" if old.unit != new.unit else ""
    return _change(Event.CHANGED, new, catalog, _reason(new) or moved or _changed_part(old, new))


def _change(event: Event, entry: Entry, catalog: Catalog, message: str = "") -> Change:
    kind = entry_kind(entry)
    return Change(
        event=event,
        kind=kind,
        name=entry.name,
        source=entry.source,
        generation=catalog.generation,
        message=message,
    )


def _reason(entry: Entry) -> str:
    """Describe a state other than `ok` with the worst diagnostic."""
    if entry.state is Status.OK:
        return ""
    order = list(Severity)
    worst = min(entry.diagnostics, key=lambda item: order.index(item.severity), default=None)
    return f"{entry.state}: {worst.where}: {worst.message}" if worst else str(entry.state)


def _changed_part(old: Entry, new: Entry) -> str:
    """Describe the part that changed, or return `""`."""
    if isinstance(old, SkillEntry) and isinstance(new, SkillEntry):
        before = {file.name: file.version for file in old.files}
        after = {file.name: file.version for file in new.files}
        changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        return ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if changed[3:] else "")
    if isinstance(old, PluginEntry) and isinstance(new, PluginEntry):
        return f"version {old.version} -> {new.version}" if old.version != new.version else ""
    return ""
