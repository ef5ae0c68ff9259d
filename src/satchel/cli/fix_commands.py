"""For a finding the one command that mends it, where there is one."""

import os
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from satchel.cli.rendering import relative
from satchel.diagnostics import Diagnostic
from satchel.names import skill_name_fault
from satchel.text import one_line

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Entry


def command_for(item: Diagnostic, entry: "Entry | None" = None) -> str | None:
    """Return a shell command that mends a finding, or `None` where a person has to think."""
    remedy = _REMEDIES.get(item.code)
    words = remedy(item, entry) if remedy else None
    # A command that cannot be shown as it is must not be pasted either.
    if not words or any(one_line(word) != word for word in words):
        return None
    return shlex.join(words)


def _make_folder(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    path = item.where.path
    return None if os.path.lexists(path) else ["mkdir", "-p", _word(path)]


def _as_told(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    """Return the command with which the fix begins, if it does."""
    command = re.split(r"[,;] ", item.fix)[0]
    return shlex.split(command) if command.startswith("satchel ") else None


def _enable(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    return ["satchel", "enable", item.fix.removeprefix("--entry-points ")]


def _rename_folder(_item: Diagnostic, entry: "Entry | None") -> list[str] | None:
    """Name a skill's folder as the skill is named."""
    # A folder that the user named by itself would be lost to its own command.
    if entry is None or skill_name_fault(entry.name) or not getattr(entry, "key", ""):
        return None
    # Of two of one name only the served one may have the folder of that name.
    if not entry.is_served:
        return None
    return _move(entry.path, os.path.join(os.path.dirname(entry.path), entry.name))


def _rename_skill_file(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    folder = os.path.dirname(item.where.path)
    near = [name for name in os.listdir(folder) if name.casefold() == "skill.md"]
    # Which of two is meant is for a person to say.
    return _move(item.where.path, os.path.join(folder, "SKILL.md")) if len(near) == 1 else None


def _rename_manifest(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    folder, name = os.path.split(item.where.path)
    return (
        _move(item.where.path, os.path.join(folder, "toolkit.yaml"))
        if name == "toolkit.yml"
        else None
    )


def _move(old: str, new: str) -> list[str] | None:
    return None if os.path.lexists(new) else ["mv", "-n", _word(old), _word(new)]


def _word(path: str) -> str:
    """Return a path as a word of a command, which must not look like an option."""
    shown = relative(path)
    return f"./{shown}" if shown.startswith("-") else shown


def _allow_reading(item: Diagnostic, _entry: "Entry | None") -> list[str] | None:
    path = item.where.path
    if not os.path.exists(path) or os.access(path, os.R_OK):
        return None
    return ["chmod", "u+rX", _word(path)]


_REMEDIES: dict[str, Callable[[Diagnostic, "Entry | None"], list[str] | None]] = {
    "source-missing": _make_folder,
    "source-unreadable": _allow_reading,
    "skill-unreadable": _allow_reading,
    "skill-file-case": _rename_skill_file,
    "skill-name-folder": _rename_folder,
    "plugin-unreadable": _allow_reading,
    "plugin-manifest-missing": _rename_manifest,
    "plugin-not-enabled": _enable,
    **dict.fromkeys(("disabled", "group-unavailable", "config-invalid"), _as_told),
    **dict.fromkeys(("tool-state-missing", "plugin-startup-failed"), _as_told),
}
