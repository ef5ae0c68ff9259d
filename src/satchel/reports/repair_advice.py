"""What a person should do about a diagnostic: files of others are not theirs to rename."""

import os

from satchel.diagnostics import Diagnostic

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


def belongs_to_others(path: str) -> bool:
    """Return whether a file is in an installed plugin, or in a clone outside of which we work.

    An update would undo a change there, or fail because of it.
    """
    from satchel.sources.file_reader import is_inside
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
