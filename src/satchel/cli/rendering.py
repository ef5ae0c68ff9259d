"""Render entries and diagnostics as lines of text; text from outside is escaped."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from satchel.cli.console import HANG, Console
from satchel.diagnostics import Diagnostic, Severity
from satchel.reports.short_texts import UNTRUSTED, count, location_text, worst_first
from satchel.text import one_line, shorten, visible

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog

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
_MIN_TEXT = 20
"""The least width of the last column beside the others."""
_UNCUT = 3
"""How many columns of a table are not cut if the screen has room for them."""


def diagnostic_line(item: Diagnostic) -> str:
    """Return a diagnostic as one line without colour."""
    fix = f" -> {item.fix}" if item.fix else ""
    return one_line(f"{location_text(item)}: {item.severity}[{item.code}]: {item.message}{fix}")


def problem_lines(
    problems: Iterable[Diagnostic], one_by_one: Collection[str] = ()
) -> Iterator[str]:
    """Yield a line for each error, and at most two for the other problems of each code.

    The problems of some codes are written one by one, like errors.
    """
    alike: dict[tuple[str, ...], list[Diagnostic]] = {}
    for item in worst_first(problems):
        is_alone = item.severity is Severity.ERROR or item.code in one_by_one
        key = (item.code, item.where.path, item.message) if is_alone else (item.code,)
        alike.setdefault(key, []).append(item)
    for first, *others in alike.values():
        yield diagnostic_line(first)
        if others:
            places = {item.where.path for item in others} - {first.where.path}
            at = f" at {count(len(places), 'other place')}" if places else " of this place"
            yield f"  and {count(len(others), f'more {first.severity}')} [{first.code}]{at}"


def workflow_command(level: str, place: Mapping[str, object], message: str) -> str:
    """Return a command of GitHub Actions, which marks a line in a change.

    Format: docs.github.com, workflow commands; escapes as in `@actions/core`.
    """
    escapes = "%\r\n"
    properties = ",".join(
        f"{key}={_escaped(str(value), escapes + ':,')}" for key, value in place.items() if value
    )
    return f"::{level} {properties}::{_escaped(message, escapes)}"


def _escaped(text: str, characters: str) -> str:
    """Percent-encode some characters; '%' must be the first of them."""
    for character in characters:
        text = text.replace(character, f"%{ord(character):02X}")
    return visible(text)


def table(rows: Sequence[Sequence[str]], console: Console, header: Sequence[str] = ()) -> None:
    """Write rows in aligned columns, cut to the width of the terminal.

    The first column is a name and the second a short word such as a state, which is coloured:
    neither is cut, nor is the third if there is room without the others. The last is a text, which
    gets a line of its own if it has no room.
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
        if not widths[-1] and row[-1]:
            console.out(HANG + shorten(row[-1], (console.columns or sys.maxsize) - len(HANG)))


def _fit(widths: list[int], console: Console) -> list[int]:
    """Shrink the widest column but the first ones until all fit.

    If that is not enough, the last one and then those before it get no width.
    """
    if console.columns is None:
        return widths
    uncut = min(_UNCUT, len(widths) - 1)
    if sum(widths[:uncut]) + len(_GAP) * (uncut - 1) > console.columns:
        uncut = 2
    whole, others = widths[:uncut], widths[uncut:]
    for shown in range(len(others), 0, -1):
        available = console.columns - sum(whole) - len(_GAP) * (uncut + shown - 1)
        least = [min(width, _MIN_WIDTH) for width in others[:shown]]
        if shown == len(others):
            least[-1] = min(others[-1], _MIN_TEXT)
        if sum(least) <= available:
            fitting = _shrunk(others[:shown], least, available)
            return [*whole, *fitting, *([0] * (len(others) - shown))]
    return [*whole, *([0] * len(others))]


def _shrunk(widths: list[int], least: list[int], available: int) -> list[int]:
    fitting = [min(width, available) for width in widths]
    while sum(fitting) > available:
        # One by one, so that columns of one width shrink together.
        widest = max(range(len(widths)), key=lambda at: (fitting[at] > least[at], fitting[at]))
        fitting[widest] -= 1
    return fitting


def say_untrusted(catalog: "Catalog", console: Console) -> bool:
    """Write to stderr of what only the data is trusted; return whether that is a plugin."""
    plugins = catalog.plugins.values()
    number = sum(any(it.code == UNTRUSTED for it in plugin.diagnostics) for plugin in plugins)
    parts = [f"the code of {count(number, 'plugin')}"] if number else []
    paths = {it.where.path for it in catalog.diagnostics if it.code == UNTRUSTED}
    files = map(os.path.basename, sorted(paths - {it.path for it in catalog.all_plugins}))
    if names := " and ".join(files):
        parts.append(f"the servers and settings of {names}")
    if parts:
        console.say(
            f"not used: {' and '.join(parts)}, because only the data of the "
            "project is trusted; 'satchel trust' asks about its code"
        )
    return bool(number)


_NAMED_CODES = frozenset(
    {"tool-state-missing", "tool-unfit", "contract-unfit", "plugin-not-installed"}
)
"""Why a tool or plugin is missing: shown at once, because the user may look for it."""


def summary(
    catalog: "Catalog", console: Console, *, ran_code: bool = True, names_missing: bool = True
) -> None:
    """Write to stderr how many errors and warnings there are, and the command for details.

    If code was run, that runs it, too. What the user named and is missing is written in full,
    unless the caller has done that.
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
        doctor = "satchel doctor --run" if ran_code else "satchel doctor"
        console.say(f"{' and '.join(parts)}; run '{doctor}' for details")
