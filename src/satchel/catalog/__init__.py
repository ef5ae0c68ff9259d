"""The catalog: build it, resolve conflicts, compute changes, publish it."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_builder import build
    from satchel.catalog.catalog_changes import Change, Event, diff, entry_kind, loaded_events
    from satchel.catalog.catalog_entries import (
        HOST,
        Entry,
        Group,
        GroupEntry,
        PluginContribution,
        PluginEntry,
        SkillEntry,
        Status,
        ToolContribution,
        ToolEntry,
    )
    from satchel.catalog.disable_rules import nothing_disabled
    from satchel.catalog.entry_filter import EntryFilter, unmatched_patterns
    from satchel.catalog.skill_edits import edit_skills
    from satchel.catalog.unit_entries import RankedSkill, build_plugins
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "catalog": "Catalog",
            "catalog_builder": "build",
            "catalog_changes": "Change Event diff entry_kind loaded_events",
            "catalog_entries": (
                "HOST Entry Group GroupEntry PluginContribution PluginEntry SkillEntry Status "
                "ToolContribution ToolEntry"
            ),
            "disable_rules": "nothing_disabled",
            "entry_filter": "EntryFilter unmatched_patterns",
            "skill_edits": "edit_skills",
            "unit_entries": "RankedSkill build_plugins",
        },
    )
