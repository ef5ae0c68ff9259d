"""The catalog: building it, settling its conflicts, telling what changed, publishing it."""

from satchel.catalog.build import RankedSkill, build, build_plugins
from satchel.catalog.catalog import Catalog
from satchel.catalog.changes import Change, Event, diff, kind_of, loaded
from satchel.catalog.entries import (
    HOST,
    Entry,
    Group,
    GroupEntry,
    PluginEntry,
    SkillEntry,
    State,
    Supply,
    ToolEntry,
    ToolSupply,
)
from satchel.catalog.store import CatalogStore
from satchel.catalog.switching import nothing_off

__all__ = [
    "HOST",
    "Catalog",
    "CatalogStore",
    "Change",
    "Entry",
    "Event",
    "Group",
    "GroupEntry",
    "PluginEntry",
    "RankedSkill",
    "SkillEntry",
    "State",
    "Supply",
    "ToolEntry",
    "ToolSupply",
    "build",
    "build_plugins",
    "diff",
    "kind_of",
    "loaded",
    "nothing_off",
]
