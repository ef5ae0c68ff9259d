"""Render entries and diagnostics as lines of text; text from outside is escaped."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from satchel.cli.console import Console
from satchel.diagnostics import Diagnostic, Severity
from satchel.reports.short_texts import count, location_text
from satchel.text import one_line, shorten, visible

if TYPE_CHECKING:
    from satchel.catalog import Catalog

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
_MIN_WIDTH = 16
_UNCUT = 2
"""How many columns of a table are never cut."""


def diagnostic_line(item: Diagnostic) -> str:
    """Return a diagnostic as one line without colour."""
    fix = f" -> {item.fix}" if item.fix else ""
    return one_line(f"{location_text(item)}: {item.severity}[{item.code}]: {item.message}{fix}")


def table(rows: Sequence[Sequence[str]], console: Console, header: Sequence[str] = ()) -> None:
    """Write rows in aligned columns, cut to the width of the terminal.

    The first column is a name and the second a short word such as a state, which is coloured:
    neither is cut.
    """
    if not rows:
        return
    cells = [[one_line(cell) for cell in row] for row in rows]
    if header:
        cells.insert(0, [*header])
    widths = _fit([max(map(len, column)) for column in zip(*cells, strict=True)], console)
    for row in cells:
        styles: list[dict[str, Any]] = [{} for _ in row]
        styles[0], styles[1] = {"bold": True}, {"fg": COLOURS.get(row[1])}
        line = [
            console.paint(shorten(cell, width), **style) + " " * (width - len(cell))
            for cell, width, style in zip(row, widths, styles, strict=True)
            if width
        ]
        console.out(_GAP.join(line).rstrip())


def _fit(widths: list[int], console: Console) -> list[int]:
    """Shrink the widest column but the first two until all fit, then leave out the last ones.

    None is shrunk below 16 characters.
    """
    if console.columns is None:
        return widths
    whole, others = widths[:_UNCUT], widths[_UNCUT:]
    shown = len(others)
    while True:
        columns = [*whole, *others[:shown]]
        available = console.columns - sum(whole)
        available -= len(_GAP) * (sum(width > 0 for width in columns) - 1)
        fitting = _shrunk(others[:shown], available)
        if sum(fitting) <= available or not shown:
            return [*whole, *fitting, *([0] * (len(others) - shown))]
        shown -= 1


def _shrunk(widths: list[int], available: int) -> list[int]:
    fitting = list(widths)
    while sum(fitting) > available and max(fitting, default=0) > _MIN_WIDTH:
        widest = fitting.index(max(fitting))
        others = max((width for at, width in enumerate(fitting) if at != widest), default=0)
        excess = sum(fitting) - available
        # Not below the next column, which then shrinks, too; by one at least, so that this ends.
        next_widest = min(others, fitting[widest] - 1)
        fitting[widest] = max(fitting[widest] - excess, next_widest, _MIN_WIDTH)
    return fitting


_MISSING_TOOL_CODES = frozenset({"tool-state-missing", "tool-unfit", "contract-unfit"})
"""Why a tool is missing: shown at once, because the user may look for that tool."""

_NAMED_CODES = _MISSING_TOOL_CODES | {"plugin-not-installed"}

_RUN_CODES = _MISSING_TOOL_CODES | {
    *("plugin-import-failed", "plugin-import-timeout", "plugin-hook-failed", "plugin-meddled"),
    *("plugin-startup-failed", "plugin-tool-invalid"),
}
"""Diagnostics that only exist after plugin code ran, so the doctor needs `--run`."""


def summary(catalog: "Catalog", console: Console, *, names_missing: bool = True) -> None:
    """Write to stderr how many errors and warnings there are, and the command for details.

    What the user named and is missing is written in full, unless the caller has done that.
    """
    counts = Counter(item.severity for item in catalog.diagnostics)
    parts = [
        count(counts[severity], str(severity))
        for severity in (Severity.ERROR, Severity.WARNING)
        if counts[severity]
    ]
    for item in catalog.diagnostics:
        if names_missing and item.code in _NAMED_CODES:
            console.say(visible(str(item)))
    if parts:
        needs_run = any(item.code in _RUN_CODES for item in catalog.diagnostics)
        doctor = "satchel doctor --run" if needs_run else "satchel doctor"
        console.say(f"{' and '.join(parts)}; run '{doctor}' with the same options for details")
