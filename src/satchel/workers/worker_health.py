"""Report that the process of a plugin is down."""

from dataclasses import replace

from satchel.catalog.catalog_entries import PluginContribution
from satchel.workers.worker_processes import WorkerHandle

DOWN = "plugin-worker-down"

WHEN_CHANGED = "fix its code; it is started again when the code changes"
"""The fix for a process that never started. One that exits later is restarted automatically."""


def with_health(
    contribution: PluginContribution, last_good: PluginContribution | None
) -> PluginContribution:
    """Add a diagnostic if the process that serves a plugin is down, or remove an outdated one."""
    served = last_good if contribution.state.falls_back and last_good else contribution
    if not isinstance(served.code, WorkerHandle):
        return contribution
    outage = served.code.outage
    diagnostics = tuple(
        item for item in contribution.diagnostics if item.code != DOWN or item.fix == WHEN_CHANGED
    )
    diagnostics = (*diagnostics, outage) if outage else diagnostics
    if diagnostics == contribution.diagnostics:
        return contribution
    return replace(contribution, diagnostics=diagnostics)
