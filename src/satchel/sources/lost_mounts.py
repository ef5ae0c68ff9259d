"""Notice that the file system with a folder is gone: what it had is not meant to go."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from satchel.diagnostics import Where, make_diagnostic
from satchel.files.file_reader import Stamp, is_inside, real_path

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.plugin_scan import PluginScan
    from satchel.sources.skill_findings import SkillFinding, SkillScan


def device_of(path: str) -> int:
    """Return the device of a folder, or of the nearest one above that exists; 0 if unknown."""
    return Stamp.at(_nearest(path)).device


def lost_mount(path: str, device: int, above: str = "") -> Diagnostic | None:
    """Report a folder that was on `device`, if it is empty or missing now, on another one.

    One that is deleted leaves a folder above on its device, unless it was a mount itself. Of the
    folders below `above`, the first that is left must be empty; `""` is the one it is in.
    """
    if not device or device_of(path) == device:
        return None
    nearest = _nearest(path)
    try:
        if len(nearest) > len(above or os.path.dirname(path)) and os.listdir(nearest):
            return None  # Something else is there now, so it is meant.
    except FileNotFoundError:
        pass
    except OSError:
        return None  # The scan reports it, and keeps what was there.
    return make_diagnostic(
        "source-unmounted",
        Where(path),
        "is no longer mounted; what it had is still served",
        "mount it again; to remove what it had, put a file in its place, or start again",
    )


def lost_below(
    before: PluginScan | SkillScan, finding: PluginFinding | SkillFinding
) -> Diagnostic | None:
    """Report a skill or plugin on a mount below its root, or behind a link, that is gone.

    One whose link was removed or replaced is meant to go.
    """
    root, folders = before.root.path, finding.folder.folders
    if not folders or device_of(root) != before.device:
        return None
    device = folders[0][1].device
    for link, target in before.links:
        if is_inside(finding.path, link):
            path = target + finding.path[len(link) :]
            return lost_mount(path, device) if real_path(link) == target else None
    return lost_mount(finding.path, device, root)


def _nearest(path: str) -> str:
    while not Stamp.at(path).device and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path
