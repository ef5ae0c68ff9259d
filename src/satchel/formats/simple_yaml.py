"""Read the YAML of usual front matter, many times faster than a YAML parser.

It is `key: value` lines, with block scalars, and with lists and mappings of one level. Everything
else is left to `yaml_reader`; whatever this module reads, that module reads in the same way.
"""

import re

from satchel.formats.yaml_builder import NULLS, KeyPath, YamlValue
from satchel.text import rare_characters

SIMPLE_DEPTH = 2
"""The levels of the deepest value that is read here."""

_SCALAR = re.compile(
    r"""
    "([^"\\]*)"                                   # in double quotes, without escapes
  | '([^']*(?:''[^']*)*)'
  | ([^\s\-?:,\[\]{}#&*!|>'"%@`] .*)              # plain: it begins with no indicator of YAML
""",
    re.VERBOSE,
).pattern
_ENTRY = re.compile(
    rf"""
    ([A-Za-z0-9_][A-Za-z0-9_-]{{0,99}}) :         # the key
    (?: [ ]+ (?: {_SCALAR} | ([|>]-?) ) )? [ ]*    # the last one is the head of a block
    """,
    re.VERBOSE,
)
_ITEM = re.compile(rf"- [ ]+ (?: {_SCALAR} ) [ ]*", re.VERBOSE)
_FOLD = re.compile(r"\n(\n*)")


def read_simple_yaml(
    text: str, first_line: int, most_nodes: int
) -> tuple[dict[str, YamlValue], dict[KeyPath, int]] | None:
    """Return the values of a mapping and the line of each key, or `None` if it is not simple.

    `first_line` is the line of the file on which `text` begins; `most_nodes` is the limit on keys
    and values.
    """
    # Tabs, and characters that some YAML versions take as line ends, are not printable.
    if not rare_characters(text).isprintable():
        return None
    reader = _SimpleReader(text.split("\n"), first_line)
    try:
        values = reader.entries()
    except _NotSimpleError:
        return None
    # Each entry has a key and a value, each item a value, and the whole is a value, too.
    return (values, reader.found) if values and 2 * len(reader.found) + 1 <= most_nodes else None


class _NotSimpleError(Exception):
    """The text is left to the parser."""


class _SimpleReader:
    """Reads line by line; `found` has the line of each key and item."""

    def __init__(self, lines: list[str], first_line: int) -> None:
        self.lines, self.first_line = lines, first_line
        self.at = 0
        self.found: dict[KeyPath, int] = {}

    def entries(self) -> dict[str, YamlValue]:
        values: dict[str, YamlValue] = {}
        lines, first_line, found = self.lines, self.first_line, self.found
        count, match, at = len(lines), _ENTRY.fullmatch, 0
        while at < count:
            line = lines[at]
            entry = match(line) if line else None
            at += 1
            if entry is None:
                if _is_content(line):
                    raise _NotSimpleError
                continue
            key, double, single, plain, block = entry.groups()
            if key in values:
                raise _NotSimpleError
            found[key,] = first_line + at - 1
            if block is not None or double is plain is single:  # all are `None`
                self.at = at
                values[key] = self._inner(key) if block is None else self._block(block)
                at = self.at
            else:
                values[key] = _scalar(double, single, plain)
        return values

    def _next(self) -> str | None:
        """Go to the next line that is not blank and no comment, and return it."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if _is_content(line):
                return line
        return None

    def _note(self, path: KeyPath) -> None:
        if path in self.found:
            raise _NotSimpleError
        self.found[path] = self.first_line + self.at - 1

    def _inner(self, key: str) -> YamlValue:
        """Read the list or mapping below a key without a value."""
        items: list[YamlValue] = []
        values: dict[str, YamlValue] = {}
        indent = None
        while True:
            start, line = self.at, self._next()
            if line is None:
                break
            text = line.lstrip(" ")
            is_item = text.startswith("- ")
            if line is text and not is_item:
                self.at = start
                break
            if indent is None:
                indent = len(line) - len(text)
            part = (_ITEM if is_item else _ENTRY).fullmatch(text)
            if part is None or line[:indent].strip(" ") or len(line) - len(text) != indent:
                raise _NotSimpleError
            if is_item:
                self._note((key, str(len(items))))
                items.append(_scalar(*part.groups()))
            else:
                name, *scalar, block = part.groups()
                self._note((key, name))
                if block is not None:
                    raise _NotSimpleError
                values[name] = _scalar(*scalar)
        if items and values:
            raise _NotSimpleError
        return items or values or None

    def _block(self, style: str) -> str:
        """Read a block scalar; its lines begin in one column, those of a literal one or later."""
        first = self.lines[self.at] if self.at < len(self.lines) else ""
        margin = first[: len(first) - len(first.lstrip(" "))]
        content = []
        for line in self.lines[self.at :]:
            if line and not line.startswith(" "):
                break
            if not margin or (line and not line.startswith(margin)):
                raise _NotSimpleError
            content.append(line[len(margin) :])
        self.at += len(content)
        if not content or not content[0] or (self.at == len(self.lines) and content[-1]):
            raise _NotSimpleError
        while not content[-1]:
            content.pop()
        if style[0] == ">":
            if any(line[:1] == " " for line in content):
                raise _NotSimpleError
            text = _FOLD.sub(lambda ends: ends[1] or " ", "\n".join(content))
        else:
            text = "\n".join(content)
        return text if style[1:] else text + "\n"


def _is_content(line: str) -> bool:
    """Return whether a line is not blank and no comment."""
    return line.lstrip(" ")[:1] not in {"", "#"}


def _scalar(double: str | None, single: str | None, plain: str | None) -> str | None:
    """Return the value of an entry or item on its own line."""
    if single is not None:
        return single.replace("''", "'")
    if plain is not None:
        text = plain.rstrip(" ")
        if ": " in text or " #" in text or text[-1] == ":":
            raise _NotSimpleError
        return None if text in NULLS else text
    return double
