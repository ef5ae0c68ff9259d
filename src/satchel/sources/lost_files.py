"""Notice plugins that lost files while their folder stays: their tools are not meant to go."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from satchel.diagnostics import Where, make_diagnostic
from satchel.sources.plugin_findings import files_of

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.sources.plugin_findings import PluginFinding


def lost_files(finding: PluginFinding, had_tools: Collection[str]) -> Iterable[Diagnostic]:
    """Report each module that is empty or gone now, of the files that had tools.

    A plugin without its whole code folder, and a manifest that names other modules, are meant so.
    """
    if not (finding.is_edited and had_tools and os.path.isdir(finding.code_path)):
        return
    for module in finding.modules:
        names = [
            name
            for name in files_of(module)
            if os.path.join(finding.code_path, *name.split("/")) in had_tools
        ]
        now = finding.file_of(module)
        if not names or finding.sources.get(now, b"").strip():
            continue
        path = os.path.join(finding.code_path, *(now or names[0]).split("/"))
        is_gone = not os.path.lexists(path)
        state = "is empty" if now else "does not exist" if is_gone else "is no regular file"
        yield make_diagnostic(
            "plugin-file-lost",
            Where(path),
            f"{state}, but had tools of this plugin",
            "restore it; to remove its tools, write a comment into it, disable the plugin, or "
            "delete the plugin's folder",
        )


def lost_manifest(before: PluginFinding) -> Iterable[Diagnostic]:
    """Report a folder that is no longer a plugin, but still has its code, notes or skills."""
    rest = before.parts.required | before.parts.exclude
    if any(os.path.lexists(os.path.join(before.path, *name.split("/"))) for name in rest):
        message = f"does not exist, but other files of plugin {before.folder_name!r} do"
        fix = "restore it; to remove the plugin, delete its folder"
        path = os.path.join(before.path, *before.format.split("/"))
        yield make_diagnostic("plugin-file-lost", Where(path), message, fix)


def has_lost_manifest(finding: PluginFinding) -> bool:
    """Return whether a plugin is kept though its manifest is gone."""
    return any(item.code == "plugin-file-lost" for item in finding.diagnostics)
