"""The page of plugins: import time, configuration, process, and upgrades."""

from typing import Any

from starlette.requests import Request

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import PluginEntry, Status
from satchel.configuration.configuration import read_configuration
from satchel.configuration.selection import project_selection_path, selection_path
from satchel.configuration.selection_reader import read_selection
from satchel.reports.config_rows import config_rows
from satchel.reports.serializer import plugin_in_full
from satchel.reports.short_texts import status_label
from satchel.web.page_rendering import Page
from satchel.web.workbench import Workbench
from satchel.workers.worker_tools import WorkerTool


def plugins(workbench: Workbench, _request: Request) -> Page:
    """Return every plugin, also those that failed, and last those that are not enabled."""
    catalog = workbench.catalog
    listed = [entry for entry in catalog.all_plugins if not entry.is_server]
    listed.sort(key=lambda entry: entry.state is Status.DISABLED)
    record = {"plugins": [_plugin(workbench, entry, catalog) for entry in listed]}
    return Page(template="plugins.html", title="Plugins", record=record, extra={})


def _plugin(workbench: Workbench, entry: PluginEntry, catalog: Catalog) -> dict[str, Any]:
    contribution = entry.contribution
    project = project_selection_path(".") if workbench.options.sources.get("project") else ""
    layer = read_selection(selection_path(), project).layer(entry.name)
    is_isolated = any(isinstance(item.tool, WorkerTool) for item in contribution.tools)
    return {
        **plugin_in_full(entry, catalog),
        "status": status_label(entry),
        "process": "its own" if is_isolated else "shared" if contribution.code else "",
        # With where the values come from; secrets are masked.
        "config": config_rows(read_configuration(entry.name, {}, "", contribution.config, layer)),
        "middleware": len(contribution.middleware),
        "history": [
            item.as_dict()
            for item in workbench.timeline
            if (item.kind, item.what, item.name) == ("change", "plugin", entry.name)
        ],
    }
