"""A digest of what the model last saw, used to compute changes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from itertools import compress
from operator import attrgetter, not_

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import Change, Event
from satchel.catalog.catalog_entries import SERVED, Entry, GroupEntry, SkillEntry, Status, ToolEntry
from satchel.groups.group_activation import View
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP

Key = tuple[str, str]
"""The kind and the name of an entry, as in a `Change`."""

_OWN_SOURCE = "satchel"
_NAME, _STATE = attrgetter("name"), attrgetter("state")
_GENERATION = attrgetter("generation")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDigest:
    """What distinguishes two versions of an entry."""

    source: str
    version: tuple[object, ...]
    groups: tuple[str, ...] = ()
    """The entry is visible while one of these is active; without groups, always."""
    is_active: bool = True
    """For a group: whether it is active."""
    is_for_model: bool = True
    """For a skill: whether the model may see it; if not, it still shadows others."""

    def is_visible(self, active: frozenset[str]) -> bool:
        """Return whether the entry is visible while these groups are active."""
        return not self.groups or not active.isdisjoint(self.groups)


@dataclass(frozen=True, slots=True)
class CatalogDigest:
    """The digests of all entries of a catalog. It holds no reference to the catalog."""

    generation: int
    by_kind: Mapping[str, Mapping[str, tuple[EntryDigest, ...]]] = field(default_factory=dict)
    """By kind and name. Several entries may have one name; those that are served come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDigest:
    """The tools, skills and groups that a model saw. All sessions share the catalog's digest."""

    catalog: CatalogDigest
    active: frozenset[str]
    own_tools: tuple[str, ...] = ()
    alone: frozenset[str] = frozenset()
    """The names of the tools that were visible without their groups."""

    @property
    def generation(self) -> int:
        """Return the generation of the catalog."""
        return self.catalog.generation

    @property
    def entries(self) -> dict[Key, EntryDigest]:
        """Return the digests of what the model saw."""
        shown = {
            ("tool", name): EntryDigest(source=_OWN_SOURCE, version=()) for name in self.own_tools
        }
        by_kind = self.catalog.by_kind.items()
        by_key = (((kind, name), same) for kind, names in by_kind for name, same in names.items())
        for key, digests in by_key:
            if key[0] == "group":
                shown[key] = replace(digests[0], is_active=key[1] in self.active)
                continue
            is_alone = key[0] == "tool" and key[1] in self.alone
            visible = next((it for it in digests if is_alone or it.is_visible(self.active)), None)
            if visible is not None and visible.is_for_model:
                shown[key] = replace(visible, groups=())
        return shown


def digest_catalog(catalog: Catalog, before: CatalogDigest | None = None) -> CatalogDigest:
    """Return the digest of a catalog; it shares unchanged entries with the digest `before`."""
    old = before or CatalogDigest(-1)
    changed_skills = catalog.changed_skills if old.generation == catalog.generation - 1 else None
    by_kind: dict[str, Mapping[str, tuple[EntryDigest, ...]]] = {}
    for kind, entries in _shown(catalog, changed_skills).items():
        digests = dict(old.by_kind.get(kind, {}))
        changed: AbstractSet[str]
        if kind == "skill" and changed_skills is not None:
            changed = changed_skills
        else:
            changed = _changed(entries, digests, old.generation)
        by_name = {name: list[Entry]() for name in changed}
        for entry in compress(entries, map(by_name.__contains__, map(_NAME, entries))):
            by_name[entry.name].append(entry)
        for name, same_name in by_name.items():
            if same_name:
                digests[name] = _digests(same_name, digests.get(name, ()), old.generation)
            else:
                digests.pop(name, None)
        by_kind[kind] = digests
    return CatalogDigest(catalog.generation, by_kind)


def _changed(
    entries: Sequence[Entry], before: Mapping[str, tuple[EntryDigest, ...]], generation: int
) -> AbstractSet[str]:
    """Return the names of which entries changed after a generation, or are gone."""
    # Few loops in Python: there may be very many skills.
    changed = set(compress(map(_NAME, entries), map(generation.__lt__, map(_GENERATION, entries))))
    counts = Counter(map(_NAME, entries))
    return changed.union(name for name, digests in before.items() if counts[name] < len(digests))


def _digests(
    entries: list[Entry], old: tuple[EntryDigest, ...], generation: int
) -> tuple[EntryDigest, ...]:
    is_old = all(entry.generation <= generation for entry in entries)
    return old if is_old and len(old) == len(entries) else tuple(map(_digest_entry, entries))


def digest_view(
    catalog: Catalog,
    view: View,
    own_tools: Iterable[str] = (),
    catalog_digest: CatalogDigest | None = None,
) -> ViewDigest:
    """Return the digest of a view; `own_tools` are the names of the session's own tools."""
    active = frozenset(group.name for group in view.groups)
    alone = frozenset(tool.name for tool in view.tools if active.isdisjoint(tool.groups))
    return ViewDigest(
        catalog=catalog_digest or digest_catalog(catalog),
        active=active,
        own_tools=tuple(own_tools),
        alone=alone - view.deferred,
    )


def changes_between(before: ViewDigest | None, after: ViewDigest) -> tuple[Change, ...]:
    """Return what was added, removed and changed, ordered by kind and name.

    The message of a group's change is `active` or `inactive` if that changed. Without a `before`
    there are no changes.
    """
    if before is None or before == after:
        return ()
    old, new = before.entries, after.entries
    return tuple(
        _change(key, old.get(key), new.get(key), after.generation)
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


def _change(key: Key, old: EntryDigest | None, new: EntryDigest | None, generation: int) -> Change:
    kind, name = key
    event, message = Event.CHANGED, ""
    if new is None:
        event = Event.REMOVED
    elif old is None:
        event = Event.ADDED
        message = "active" if kind == "group" and new.is_active else ""
    elif old.is_active != new.is_active:
        message = "active" if new.is_active else "inactive"
    digest = new or old
    return Change(
        event=event,
        kind=kind,
        name=name,
        source=digest.source if digest else "",
        generation=generation,
        message=message,
    )


def _shown(catalog: Catalog, skills: Iterable[str] | None) -> dict[str, list[Entry]]:
    """Return the entries of each kind that a view may show, the served ones first.

    Of the skills, those of some names, or all.
    """
    groups = catalog.groups.values()
    return {
        "tool": _served_first(entry for entry in catalog.all_tools if entry.tool),
        "skill": _served_first(catalog.skills_named(skills)),
        "group": [entry for entry in groups if entry.name != BASIC_GROUP],
    }


def _served_first(entries: Iterable[Entry]) -> list[Entry]:
    entries = list(entries)
    # No loops in Python, as above.
    are_served = [*map(SERVED.__contains__, map(_STATE, entries))]
    others = compress(entries, map(not_, are_served))
    shadowed = [entry for entry in others if entry.state is Status.SHADOWED]
    return [*compress(entries, are_served), *shadowed]


def _digest_entry(entry: Entry) -> EntryDigest:
    match entry:
        case ToolEntry():
            return EntryDigest(
                source=entry.source, version=(entry.version, entry.description), groups=entry.groups
            )
        case SkillEntry():
            return EntryDigest(
                source=entry.source,
                version=(entry.version, entry.description, entry.path),
                groups=entry.groups,
                is_for_model=entry.is_for_model,
            )
        case GroupEntry():
            # The model sees the members of a group that has no description.
            members = () if entry.description else (entry.tools, entry.skills)
            return EntryDigest(
                source=entry.source,
                version=(entry.description, entry.notes, entry.missing, members),
            )
    raise AssertionError(f"{entry} is never shown")
