"""Sight: what a conversation was shown, remembered just well enough to tell what changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from satchel.catalog import Catalog, Change, Event, GroupEntry, SkillEntry, ToolEntry
from satchel.groups.activation import View
from satchel.names import BASIC_GROUP

Key = tuple[str, str]
"""The kind and name of a thing, as a `Change` has them."""

_OURS = "satchel"


@dataclass(frozen=True, slots=True)
class Trait:
    """What tells a thing from a later version of itself."""

    source: str
    version: tuple[object, ...]
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class Sight:
    """The tools, skills and groups that a model was shown in one generation.

    It holds words only, so that remembering it keeps no generation alive.
    """

    generation: int
    things: Mapping[Key, Trait]


def sight_of(catalog: Catalog, view: View, own_tools: Iterable[str] = ()) -> Sight:
    """Return what a view shows; `own_tools` are those of the session itself."""
    active = {group.name for group in view.groups}
    things = {("tool", name): Trait(_OURS, ()) for name in own_tools}
    things |= {("tool", entry.name): _tool(entry) for entry in view.tools if entry.tool}
    things |= {("skill", entry.name): _skill(entry) for entry in view.model_skills}
    things |= {
        ("group", name): _group(entry, is_active=name in active)
        for name, entry in catalog.groups.items()
        if name != BASIC_GROUP
    }
    return Sight(catalog.generation, things)


def changes_between(before: Sight | None, after: Sight) -> tuple[Change, ...]:
    """Return what came, went and changed, in the order of kinds and names.

    The message about a group says `active` or `inactive` if that is new. Before the first sight
    there was nothing to change.
    """
    if before is None or before is after or before.things == after.things:
        return ()
    keys = sorted({*before.things, *after.things})
    found = (_compared(key, before.things.get(key), after) for key in keys)
    return tuple(change for change in found if change is not None)


def _compared(key: Key, old: Trait | None, after: Sight) -> Change | None:
    new = after.things.get(key)
    kind, name = key
    if old == new:
        return None
    if old is None and new is not None:
        word = "active" if kind == "group" and new.is_active else ""
        return Change(Event.ADDED, kind, name, new.source, after.generation, word)
    if new is None:
        source = old.source if old else ""
        return Change(Event.REMOVED, kind, name, source, after.generation)
    word = ""
    if old is not None and old.is_active != new.is_active:
        word = "active" if new.is_active else "inactive"
    return Change(Event.CHANGED, kind, name, new.source, after.generation, word)


def _tool(entry: ToolEntry) -> Trait:
    return Trait(entry.source, (entry.version, entry.description))


def _skill(entry: SkillEntry) -> Trait:
    return Trait(entry.source, (entry.digest, entry.description, entry.path))


def _group(entry: GroupEntry, *, is_active: bool) -> Trait:
    version = (entry.description, entry.notes, entry.missing)
    return Trait(entry.source, version, is_active)
