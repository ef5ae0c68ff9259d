"""The lines that differ between two texts, for a page."""

from collections.abc import Iterable
from typing import Any

from satchel.unified_diff import unified_lines

_KINDS = {"+": "added", "-": "removed", "@": "place"}
_HEADER_LINES = 2


def diff_lines(before: str, now: str) -> list[dict[str, Any]]:
    """Return each line of a unified diff with its kind; nothing for equal texts."""
    return _with_kinds([*unified_lines(before, now, ("before", "now"))][_HEADER_LINES:])


def lines_of_diff(diff: str) -> list[dict[str, Any]]:
    """Return the lines of a unified diff, each with its kind, without the header."""
    return _with_kinds(diff.splitlines()[_HEADER_LINES:])


def _with_kinds(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [{"kind": _KINDS.get(line[:1], "same"), "text": line} for line in lines]
