"""Call the hook of plugins that receive each new catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginEntry


def notify_catalog_built(catalog: Catalog) -> None:
    """Call `satchel_catalog_built` of the served plugins.

    They receive a copy without handles: a plugin that keeps it must not keep old versions alive.
    """
    lives = [
        entry.contribution.lifecycle
        for entry in catalog.plugins.values()
        if entry.contribution.lifecycle
    ]
    listeners = [lifecycle for lifecycle in lives if lifecycle.wants_catalogs]
    if listeners:
        plugins = tuple(_without_handles(entry) for entry in catalog.all_plugins)
        copied = replace(catalog, all_plugins=plugins)
        for lifecycle in listeners:
            lifecycle.notify(copied)


def _without_handles(entry: PluginEntry) -> PluginEntry:
    contribution = replace(
        entry.contribution, code=None, lifecycle=None, middleware=(), providers=(), commands=()
    )
    return replace(entry, contribution=contribution)
