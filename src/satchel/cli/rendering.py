"""Entries and diagnostics as lines for a person; whatever comes from outside is made harmless."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from satchel.cli.console import Console
from satchel.diagnostics import Diagnostic, Severity
from satchel.text import one_line, shorten, visible

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Catalog, Entry

COLOURS = {
    "ok": "green",
    "stale": "yellow",
    "degraded": "yellow",
    "revoked": "red",
    "failed": "red",
    "held": "yellow",
    "shadowed": "cyan",
    "disabled": "bright_black",
    "error": "red",
    "warning": "yellow",
    "info": "bright_black",
}
"""The colour of each state and each severity."""

_GAP = "  "
_NARROWEST = 16


def count(number: int, thing: str) -> str:
    """Say how many there are: `1 skill`, `2 skills`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def relative(path: str) -> str:
    """Return a path as seen from the current folder if it is below it, else as it is."""
    try:
        here = os.getcwd()
    except OSError:  # the current folder is gone
        return path
    if path == here:
        return "."
    return path.removeprefix(here.rstrip(os.sep) + os.sep)


def location_text(item: Diagnostic) -> str:
    """Return `path:line:column` as far as it is known, the path as short as it can be."""
    parts = (relative(item.where.path), item.where.line, item.where.column)
    return one_line(":".join(str(part) for part in parts if part))


def diagnostic_line(item: Diagnostic) -> str:
    """Return a diagnostic as one line without colour."""
    fix = f" -> {item.fix}" if item.fix else ""
    return one_line(f"{location_text(item)}: {item.severity}[{item.code}]: {item.message}{fix}")


def table(rows: Sequence[Sequence[str]], console: Console) -> None:
    """Write rows in aligned columns; the last takes what is left of the screen's width."""
    if not rows:
        return
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = _fitting([max(map(len, column)) for column in zip(*cells, strict=True)], console)
    for row in cells:
        line = [
            console.paint(shorten(cell, width), **style) + " " * (width - len(cell))
            for cell, width, style in zip(row, widths, _styles(row), strict=True)
            if width
        ]
        console.out(_GAP.join(line).rstrip())


def _styles(row: Sequence[str]) -> Iterable[dict[str, Any]]:
    """Return how each cell is painted: the first is a name, the second may be a state."""
    yield {"bold": True}
    yield {"fg": COLOURS.get(row[1])}
    yield from ({} for _ in row[2:])


def _fitting(widths: list[int], console: Console) -> list[int]:
    """Shrink the widest column until all fit, but none below what can still be read."""
    if console.columns is None:
        return widths
    room = console.columns - len(_GAP) * (len(widths) - widths.count(0) - 1)
    fitting = list(widths)
    while sum(fitting) > room and max(fitting) > _NARROWEST:
        widest = fitting.index(max(fitting))
        others = max((width for at, width in enumerate(fitting) if at != widest), default=0)
        excess = sum(fitting) - room
        fitting[widest] = max(
            fitting[widest] - excess, min(others, fitting[widest] - 1), _NARROWEST
        )
    return fitting


def status_label(entry: "Entry") -> str:
    """Return an entry's state where it is worth a word."""
    if any(item.code == "plugin-not-enabled" for item in entry.diagnostics):
        return "available, not enabled"
    return "" if entry.state == "ok" else str(entry.state)


_ONLY_HERE = frozenset({"tool-state-missing", "tool-unfit", "contract-unfit"})
"""What is told at once, since it is why a tool that somebody wants is not there."""

_ONCE_RUN = _ONLY_HERE | {
    *("plugin-import-failed", "plugin-import-timeout", "plugin-hook-failed", "plugin-meddled"),
    *("plugin-startup-failed", "plugin-tool-invalid"),
}
"""What is known once code was run, so that the doctor has to run it."""


def summary(catalog: "Catalog", console: Console) -> None:
    """Say on stderr how much is not as it should be, and where to learn more."""
    counts = Counter(item.severity for item in catalog.diagnostics)
    parts = [
        count(counts[severity], str(severity))
        for severity in (Severity.ERROR, Severity.WARNING)
        if counts[severity]
    ]
    for item in catalog.diagnostics:
        if item.code in _ONLY_HERE:
            console.say(visible(str(item)))
    if parts:
        known_once_run = any(item.code in _ONCE_RUN for item in catalog.diagnostics)
        doctor = "satchel doctor --run" if known_once_run else "satchel doctor"
        console.say(f"{' and '.join(parts)}; '{doctor}' with the same options tells more")


def worst_first(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics: errors first, otherwise as they come."""
    order: dict[Any, int] = {severity: at for at, severity in enumerate(Severity)}
    return sorted(found, key=lambda item: order[item.severity])
