"""What a person should do about a diagnostic: files of others are not theirs to rename."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.diagnostics import Diagnostic
from satchel.formats.skill_manifest import valid_name_like

_FIXED_BY_RENAMING = frozenset(
    {
        *("skill-name-folder", "skill-file-case", "skill-shadowed"),
        *("tool-shadowed", "plugin-shadowed", "plugin-manifest-missing"),
    }
)
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})


def advice(item: Diagnostic) -> str:
    """Return the fix of a diagnostic; it proposes no other name for what belongs to others."""
    if item.code not in _FIXED_BY_RENAMING or not belongs_to_others(item.where.path):
        return item.fix
    _, _, other_way = item.fix.partition(", or ")
    return other_way or "It belongs to another project: report it there."


def with_free_names(
    diagnostics: Iterable[Diagnostic], skills: Mapping[str, str]
) -> dict[Diagnostic, Diagnostic]:
    """Return the diagnostics whose fix is a name that another skill has or may get, corrected.

    `skills` are the names of all skills by their folders. Skills of one name would only hide each
    other.
    """
    users = defaultdict[str, set[str]](set)
    for folder, name in skills.items():
        for possible_name in (name, os.path.basename(folder), valid_name_like(name)):
            users[possible_name].add(name)
    corrected: dict[Diagnostic, Diagnostic] = {}
    for item in diagnostics:
        folder = os.path.dirname(item.where.path)
        if item.code != "skill-name-shape" or folder not in skills:
            continue
        advised, name = os.path.basename(folder), skills[folder]
        if users[advised] == {name}:
            continue
        other = valid_name_like(name)
        is_free = bool(other) and users[other] == {name}
        fix = f"Write 'name: {other}'" if is_free else "Choose a name that no other skill has"
        fix += f"; '{advised}' is the name or the folder of another skill."
        corrected[item] = replace(item, fix=fix)
    return corrected


def belongs_to_others(path: str) -> bool:
    """Return whether a file is in an installed plugin, or in a clone outside of which we work.

    An update would undo a change there, or fail because of it.
    """
    from satchel.files.file_reader import is_inside
    from satchel.sources.search_roots import own_plugins

    path = os.path.realpath(path)
    if is_inside(path, os.path.realpath(own_plugins())) or _PACKAGE_FOLDERS & {*path.split(os.sep)}:
        return True
    clone = _clone_of(path)
    try:
        return bool(clone) and not is_inside(os.getcwd(), clone)
    except OSError:  # the current folder was deleted
        return True


def _clone_of(path: str) -> str:
    """Return the folder of the Git repository that a path is in, or `""`."""
    folder = path
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return ""
