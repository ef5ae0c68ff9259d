"""Short texts about entries and diagnostics; text from outside is escaped."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Severity
from satchel.runtime.redaction import current_folder
from satchel.sources.search_roots import home_path
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import Entry

_LONGEST_NAMES = 400
"""Characters of names in one message."""


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 skill`, `2 skills`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def joined_names(names: Iterable[str]) -> str:
    """Join names on one line, cut at 400 characters."""
    return shorten(", ".join(map(one_line, names)), _LONGEST_NAMES)


def count_units(units: Iterable[Any], noun: str) -> str:
    """Return how many skills or plugins there are; a command is a skill.

    The units are entries or findings, so that `list` and `validate` count alike: what two sources
    bring counts once, and a plugin that is not enabled does not count.
    """
    counted = [unit for unit in units if not is_not_enabled(unit)]
    if noun == "plugin":
        return count(len({unit.unit for unit in counted}), noun)
    # The skills of one MCP server share its address.
    return count(len({(unit.path, getattr(unit, "name", "")) for unit in counted}), noun)


def is_not_enabled(unit: Any) -> bool:
    """Return whether it is an installed plugin that the user did not enable."""
    problems = getattr(unit, "diagnostics", ())
    return any(item.code == "plugin-not-enabled" for item in problems)


def relative(path: str) -> str:
    """Return a path relative to the current folder if it is inside it, else unchanged."""
    if not (here := current_folder()):
        return path
    if path == here:
        return "."
    # In the root folder, a path without its first sign would not look like one.
    return path if here == os.sep else path.removeprefix(here + os.sep)


def short_path(path: str) -> str:
    """Return a path relative to the current folder or to `~`, where possible."""
    return home_path(relative(path))


def with_short_paths(text: str) -> str:
    """Return a message with short paths.

    A path in quotes stays as it is: it may be part of a command, and a shell would not expand `~`.
    """
    for start, short in ((current_folder(), ""), (os.path.expanduser("~"), f"~{os.sep}")):
        if start.strip(os.sep):
            text = re.sub(rf"(?<![^\s(\[=,]){re.escape(start + os.sep)}(?=\S)", short, text)
    return text


def location_text(item: Diagnostic) -> str:
    """Return `path:line:column` as far as it is known, with a short path."""
    parts = (short_path(item.where.path), item.where.line, item.where.column)
    return one_line(":".join(str(part) for part in parts if part))


_LABELS = {
    "lock-new": "held by the lock",
    "lock-changed": "held by the lock",
    "code-held": "held",
    "choices-held": "held",
    "mcp-server-starting": "starting",
    "mcp-server-down": "cannot be reached",
    "mcp-login-needed": "needs a login",
}
"""States of what is not served, by the diagnostic that says why."""


def status_label(entry: "Entry") -> str:
    """Return an entry's state in words."""
    if is_not_enabled(entry):
        return "available, not enabled"
    if entry.state in {"failed", "revoked"}:
        codes = {item.code for item in entry.diagnostics}
        if "code-held" in codes and codes & {"lock-new", "lock-changed"}:
            return "held until it is trusted and locked"
        labels = (_LABELS.get(item.code) for item in entry.diagnostics)
        return next(filter(None, labels), str(entry.state))
    if entry.state == "ok" and any(item.code == "plugin-unused" for item in entry.diagnostics):
        return "ok, brings nothing"
    # Only a skill has the attribute.
    is_for_model = entry.state != "ok" or getattr(entry, "is_for_model", True)
    return state_of(entry) if is_for_model else "ok, only the user calls it"


def state_of(entry: "Entry") -> str:
    """Return an entry's state: `not run` in place of `ok` if its code was only read."""
    return "not run" if entry.state == "ok" and has_code_not_run(entry) else str(entry.state)


UNTRUSTED = "code-untrusted"
"""The code of the diagnostic of a plugin of which only the data is trusted."""


def has_code_not_run(entry: "Entry") -> bool:
    """Return whether it is a tool or plugin whose code was only read, and could be run."""
    # Only the contribution of a plugin has code, and only a tool has a tool.
    contribution: Any = getattr(entry, "contribution", None)
    if hasattr(contribution, "code"):
        if any(item.code in {UNTRUSTED, "code-held", "choices-held"} for item in entry.diagnostics):
            return False
        return bool(contribution.has_code) and contribution.code is None
    return getattr(entry, "tool", entry) is None


def worst_first(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics by severity, errors first; the sort is stable."""
    order: dict[Any, int] = {severity: at for at, severity in enumerate(Severity)}
    return sorted(diagnostics, key=lambda item: order[item.severity])
