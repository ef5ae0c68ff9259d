"""Sight: what a conversation was shown, remembered just well enough to tell what changed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from satchel.catalog import (
    Catalog,
    Change,
    Entry,
    Event,
    GroupEntry,
    SkillEntry,
    Status,
    ToolEntry,
)
from satchel.groups.group_activation import View
from satchel.names import BASIC_GROUP

Key = tuple[str, str]
"""The kind and name of a thing, as a `Change` has them."""

_OURS = "satchel"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDigest:
    """What tells a thing from a later version of itself."""

    source: str
    version: tuple[object, ...]
    groups: tuple[str, ...] = ()
    """It is seen while one of them is active; without any, always."""
    is_active: bool = True
    """Of a group: whether it is switched on."""
    is_for_model: bool = True
    """Of a skill: whether it is shown to a model at all; one that is not hides others."""

    def is_seen(self, active: frozenset[str]) -> bool:
        """Tell whether it is shown while these groups are active."""
        return not self.groups or not active.isdisjoint(self.groups)


@dataclass(frozen=True, slots=True)
class CatalogDigest:
    """The traits of all that a generation holds; of one name, those that are served come first.

    They are words only, so that remembering them keeps no generation alive.
    """

    generation: int
    by_key: Mapping[Key, tuple[EntryDigest, ...]]


@dataclass(frozen=True, slots=True)
class ViewDigest:
    """The tools, skills and groups that a model was shown; most of it is shared by all sessions."""

    traits: CatalogDigest
    active: frozenset[str]
    own_tools: tuple[str, ...] = ()

    @property
    def generation(self) -> int:
        """Return the generation that was shown."""
        return self.traits.generation

    @property
    def things(self) -> dict[Key, EntryDigest]:
        """Return what was shown."""
        found = {("tool", name): EntryDigest(source=_OURS, version=()) for name in self.own_tools}
        for key, traits in self.traits.by_key.items():
            if key[0] == "group":
                found[key] = replace(traits[0], is_active=key[1] in self.active)
                continue
            seen = next((trait for trait in traits if trait.is_seen(self.active)), None)
            if seen is not None and seen.is_for_model:
                found[key] = replace(seen, groups=())
        return found


def digest_catalog(catalog: Catalog, before: CatalogDigest | None = None) -> CatalogDigest:
    """Return the traits of a generation; what is as it was `before` is shared with that."""
    found: dict[Key, list[Entry]] = {}
    for key, entry in _things(catalog):
        found.setdefault(key, []).append(entry)
    old = before or CatalogDigest(-1, {})
    return CatalogDigest(
        catalog.generation, {key: _traits(key, of, old) for key, of in found.items()}
    )


def _traits(key: Key, entries: list[Entry], before: CatalogDigest) -> tuple[EntryDigest, ...]:
    known = before.by_key.get(key, ())
    is_old = all(entry.generation <= before.generation for entry in entries)
    return known if is_old and len(known) == len(entries) else tuple(map(_trait, entries))


def digest_view(
    catalog: Catalog, view: View, own_tools: Iterable[str] = (), traits: CatalogDigest | None = None
) -> ViewDigest:
    """Return what a view shows; `own_tools` are those of the session itself."""
    active = frozenset(group.name for group in view.groups)
    return ViewDigest(traits or digest_catalog(catalog), active, tuple(own_tools))


def changes_between(before: ViewDigest | None, after: ViewDigest) -> tuple[Change, ...]:
    """Return what came, went and changed, in the order of kinds and names.

    The message about a group says `active` or `inactive` if that is new. Before the first sight
    there was nothing to change.
    """
    if before is None or before == after:
        return ()
    old, new = before.things, after.things
    found = (
        _compared(key, old.get(key), new.get(key), after.generation)
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )
    return tuple(found)


def _compared(
    key: Key, old: EntryDigest | None, new: EntryDigest | None, generation: int
) -> Change:
    kind, name = key
    if old is None and new is not None:
        word = "active" if kind == "group" and new.is_active else ""
        return Change(
            event=Event.ADDED,
            kind=kind,
            name=name,
            source=new.source,
            generation=generation,
            message=word,
        )
    if new is None:
        return Change(
            event=Event.REMOVED,
            kind=kind,
            name=name,
            source=old.source if old else "",
            generation=generation,
        )
    word = ""
    if old is not None and old.is_active != new.is_active:
        word = "active" if new.is_active else "inactive"
    return Change(
        event=Event.CHANGED,
        kind=kind,
        name=name,
        source=new.source,
        generation=generation,
        message=word,
    )


def _things(catalog: Catalog) -> Iterator[tuple[Key, Entry]]:
    """Yield what may be seen; of one name, what is served comes first."""
    members: list[tuple[str, ToolEntry | SkillEntry]] = [
        *(("tool", entry) for entry in catalog.all_tools if entry.tool),
        *(("skill", entry) for entry in catalog.all_skills),
    ]
    for kind, entry in members:
        if entry.is_served:
            yield (kind, entry.name), entry
    for kind, entry in members:
        if entry.state is Status.SHADOWED:
            yield (kind, entry.name), entry
    for name, group in catalog.groups.items():
        if name != BASIC_GROUP:
            yield ("group", name), group


def _trait(entry: Entry) -> EntryDigest:
    match entry:
        case ToolEntry():
            return EntryDigest(
                source=entry.source, version=(entry.version, entry.description), groups=entry.groups
            )
        case SkillEntry():
            version = (entry.version, entry.description, entry.path)
            seen = entry.is_for_model
            return EntryDigest(
                source=entry.source, version=version, groups=entry.groups, is_for_model=seen
            )
        case GroupEntry():
            # Without a description, what it holds is what is said of it.
            members = () if entry.description else (entry.tools, entry.skills)
            return EntryDigest(
                source=entry.source,
                version=(entry.description, entry.notes, entry.missing, members),
            )
    raise AssertionError(f"{entry} is not seen")
