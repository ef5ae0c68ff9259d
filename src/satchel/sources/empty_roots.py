"""Why a search root that exists brings nothing."""

import os
from collections.abc import Iterable

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.sources.folder_reader import is_folder, is_skipped, list_folder
from satchel.sources.plugin_formats import format_of
from satchel.sources.search_roots import RootKind, SearchRoot
from satchel.sources.skill_findings import SKILL_FILE

_MOST_LOOKED_AT = 100
"""How many folders are searched for the other kind."""


def empty_root(root: SearchRoot, too_deep: Iterable[Diagnostic] = ()) -> Diagnostic | None:
    """Return a diagnostic with the likely cause for a root in which nothing was found.

    `None` if it cannot be listed. Folders that are `too_deep` were not searched.
    """
    unreadable: list[Diagnostic] = []
    present = list_folder(root.path, unreadable)
    entries = [entry for entry in present if not is_skipped(entry.name)]
    if unreadable:
        return None
    for item in too_deep:
        name = os.path.relpath(item.where.path, root.path)
        message = f"brings no {root.holds}: {name!r} {item.message}"
        return make_diagnostic("source-empty", Where(root.path), message, item.fix)
    if present and not entries:
        message = f"brings no {root.holds}: {present[0].name!r} in it is never searched"
        fix = f"name the folder that has the {root.holds}"
        return make_diagnostic("source-empty", Where(root.path), message, fix)
    folders = [entry.path for entry in entries if is_folder(entry)][:_MOST_LOOKED_AT]
    message, fix = _cause(root, folders, is_empty=not entries)
    return make_diagnostic("source-empty", Where(root.path), message, fix)


def _cause(root: SearchRoot, folders: list[str], *, is_empty: bool) -> tuple[str, str]:
    """Return what is there instead, and what to do."""
    holds_skills = root.holds is RootKind.SKILLS
    if is_empty:
        return f"brings no {root.holds}: it is empty", f"name the folder that has the {root.holds}"
    if holds_skills and any(format_of(path) for path in (root.path, *folders)):
        return "brings no skills: it has plugins", "name it as a folder of plugins"
    if not holds_skills and any(map(_has_skill, (root.path, *folders))):
        return "brings no plugins: it has skills", "name it as a folder of skills"
    if holds_skills:
        message = f"brings no skills: no folder in it has a {SKILL_FILE}"
        return message, "name the folder that has the folders of skills, or one skill's folder"
    for path in folders:
        unreadable: list[Diagnostic] = []
        below = list_folder(path, unreadable)
        if any(is_folder(entry) and format_of(entry.path) for entry in below):
            name = os.path.basename(path)
            return f"brings no plugins: they are one level deeper, in {name!r}", f"name {path}"
    return (
        "brings no plugins: no folder in it has a toolkit.yaml or plugin.json",
        "name the folder that has the folders of plugins, or one plugin's folder",
    )


def _has_skill(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, SKILL_FILE))
