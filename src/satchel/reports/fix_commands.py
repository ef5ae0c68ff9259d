"""Shell commands that fix a diagnostic."""

import os
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from satchel.diagnostics import Diagnostic
from satchel.names import skill_name_fault
from satchel.reports.repair_advice import belongs_to_others
from satchel.reports.short_texts import relative
from satchel.sources.search_roots import Precedence
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import Entry


def command_for(item: Diagnostic, entry: "Entry | None" = None) -> str | None:
    """Return a shell command that fixes a diagnostic, or `None` if a person has to decide."""
    fix = _FIXES.get(item.code)
    if fix in _RENAMES and belongs_to_others(item.where.path):
        return None
    if item.code in _HAS_COMMAND_IN_FIX:
        return _command_in_fix(item)
    arguments = fix(item, entry) if fix else None
    # A path with invisible characters cannot be displayed faithfully, so it must not be pasted.
    if not arguments or any(one_line(argument) != argument for argument in arguments):
        return None
    return shlex.join(arguments)


def _command_in_fix(item: Diagnostic) -> str | None:
    """Return the `satchel` commands at the start of the diagnostic's fix."""
    command = re.split(r"[,;] ", item.fix)[0]
    if not command.startswith("satchel ") or one_line(command) != command:
        return None
    return command


def _rename_folder(_item: Diagnostic, entry: "Entry | None") -> list[str] | None:
    """Rename a skill's folder to the skill's name."""
    # Without a key the user named the folder itself; renaming it would break their command.
    if entry is None or skill_name_fault(entry.name) or not getattr(entry, "key", ""):
        return None
    if entry.scope is Precedence.PLUGIN or _is_in_plugin(entry.path):
        return None
    # If two skills have the name, only the served one may get the folder of that name.
    if not entry.is_served:
        return None
    # A folder that holds other skills is named for them.
    if any(item.code == "skill-inside-skill" for item in entry.diagnostics):
        return None
    return _move(entry.path, os.path.join(os.path.dirname(entry.path), entry.name))


def _is_in_plugin(path: str) -> bool:
    """Return whether a plugin or marketplace is around a skill: its files may name the folder."""
    from satchel.sources.marketplaces import is_marketplace
    from satchel.sources.plugin_formats import format_of

    while (parent := os.path.dirname(path)) != path:
        path = parent
        if is_marketplace(path) or format_of(path) is not None:
            return True
    return False


def _rename_skill_file(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    folder = os.path.dirname(item.where.path)
    matches = [name for name in os.listdir(folder) if name.casefold() == "skill.md"]
    # With two of them a person has to choose.
    return _move(item.where.path, os.path.join(folder, "SKILL.md")) if len(matches) == 1 else None


def _rename_manifest(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    folder, name = os.path.split(item.where.path)
    if name != "toolkit.yml":
        return None
    return _move(item.where.path, os.path.join(folder, "toolkit.yaml"))


def _move(old: str, new: str) -> list[str] | None:
    if os.path.lexists(new):
        return None
    return ["mv", "-n", _path_argument(old), _path_argument(new)]


def _path_argument(path: str) -> str:
    """Return a short path that cannot be mistaken for an option."""
    short = relative(path)
    return f"./{short}" if short.startswith("-") else short


def _allow_reading(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    path = item.where.path
    needed = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
    if not os.path.exists(path) or os.access(path, needed):
        return None
    return ["chmod", "u+rX", _path_argument(path)]


_RENAMES = (_rename_folder, _rename_skill_file, _rename_manifest)
_FIXES: dict[str, Callable[[Diagnostic, "Entry | None"], list[str] | None]] = {
    "source-unreadable": _allow_reading,
    "skill-unreadable": _allow_reading,
    "skill-file-case": _rename_skill_file,
    "skill-name-folder": _rename_folder,
    "plugin-unreadable": _allow_reading,
    "plugin-manifest-missing": _rename_manifest,
}
_HAS_COMMAND_IN_FIX = frozenset(
    {
        *("plugin-not-enabled", "disabled", "group-unavailable", "config-invalid"),
        *("project-untrusted", "code-untrusted", "code-held"),
        *("tool-state-missing", "plugin-startup-failed"),
    }
)
