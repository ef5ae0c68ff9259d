"""Words in pieces: what variables that are set in a text stand for, written beside each other."""

import re
from collections.abc import Iterator

JOINT = "\ue000"
"""Stands where two pieces meet. A word such as `curl` that has one inside is hidden on purpose."""
_QUOTED = r"\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|`[^`\n]{0,80}`"
_ASSIGNED = re.compile(
    rf"(?:^|[\s;&])\$?([A-Za-z_]\w{{0,30}})(?:\s?:?=\s?({_QUOTED})|=([^\s\"'`;&|()<>]{{1,60}}))"
    r"(?=[\s;&,)]|$)"
)
_STATEMENT = re.compile(r"[^;&\n]+|[;&\n]")
_REFERENCE = re.compile(r"(?:\$\{?|\{)([A-Za-z_]\w{0,30})\}?")
_PART = re.compile(rf"{_QUOTED}|\b[A-Za-z_]\w{{0,30}}\b")
_SUM = re.compile(rf"(?:{_PART.pattern})(?:\s?\+\s?(?:{_PART.pattern})){{1,20}}")
_BETWEEN = re.compile(rf"{JOINT}[\"'\s]*[.+]?[\"'\s]*{JOINT}")
_OUTSIDE = re.compile(rf"(?<![\w/.-]){JOINT}|{JOINT}(?![\w/.-])")
_IN_PIECES = re.compile(rf"[\w/.-]+(?:{JOINT}[\w/.-]+)+")
_LONGEST = 400
"""Characters of a value, so that values of values do not grow without a limit."""


def words_in_pieces(text: str) -> str:
    """Return the words of a text that have joints inside."""
    return " ".join(_IN_PIECES.findall(text))


def expanded_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the place and the text of each line in which values of names meet to make a word.

    Names of shells, PHP, PowerShell and templates have a sign; others count only in a sum.
    """
    values: dict[str, str] = {}
    start = 0
    for line in text.split("\n"):
        if values or "=" in line:
            parts = [_expanded(part, values) for part in _STATEMENT.findall(line[:2000])]
            expanded = _OUTSIDE.sub("", "".join(parts))
            if JOINT in expanded:
                yield start, expanded[: 4 * len(line) + _LONGEST]
        start += len(line) + 1


def _expanded(statement: str, values: dict[str, str]) -> str:
    """Return a statement with the values of its names, and remember what it sets."""
    filled = _REFERENCE.sub(lambda it: _marked(it[0], values.get(it[1])), statement)
    summed = _SUM.sub(lambda it: _summed(it[0], values), _BETWEEN.sub(JOINT, filled))
    for name, quoted, word in _ASSIGNED.findall(summed):
        values[name] = (word or quoted[1:-1]).strip(JOINT)[:_LONGEST]
    return summed


def _marked(name: str, value: str | None) -> str:
    return name if value is None else f"{JOINT}{value}{JOINT}"


def _summed(text: str, values: dict[str, str]) -> str:
    """Return the sum of names and texts as one text, if all names are known."""
    parts = [it[1:-1] if it[0] in "\"'`" else values.get(it) for it in _PART.findall(text)]
    return text if None in parts else f'"{JOINT.join(map(str, parts))}"'
