"""Read the YAML of usual front matter, many times faster than a YAML parser.

It is `key: value` lines, with block scalars, and with lists and mappings of a few levels.
Everything else is left to `yaml_reader`; whatever this module reads, that module reads in the same
way.
"""

import re

from satchel.formats.yaml_builder import NULLS, KeyPath, YamlValue
from satchel.text import rare_characters

SIMPLE_DEPTH = 6
"""The levels of the deepest value that is read here."""

_SCALAR = re.compile(
    r"""
    "([^"\\]*)"                                   # in double quotes, without escapes
  | '([^']*(?:''[^']*)*)'
  | ([^\s\-?:,\[\]{}#&*!|>'"%@`] .*)              # plain: it begins with no indicator of YAML
""",
    re.VERBOSE,
).pattern
_MEMBER = r"""(?: "[^"\\]*" | '[^']*' | [A-Za-z0-9_] (?: [\w./()*\ -]* [\w./()*-] )? )"""
_ENTRY = re.compile(
    rf"""
    ([A-Za-z0-9_][A-Za-z0-9_-]{{0,99}}) :          # the key
    (?: [ ]+ (?: {_SCALAR}
               | ([|>]-?)                          # the head of a block
               | \[ [ ]* ({_MEMBER} (?: [ ]*,[ ]* {_MEMBER} )*) [ ]* \]
    )   )?  [ ]*
    """,
    re.VERBOSE,
)
_ITEM = re.compile(rf"(?: {_SCALAR} ) [ ]*", re.VERBOSE)
_MEMBERS = re.compile(_MEMBER, re.VERBOSE)
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
    return (
        (values, reader.line_numbers)
        if values and 2 * len(reader.line_numbers) + 1 <= most_nodes
        else None
    )


class _NotSimpleError(Exception):
    """The text is left to the parser."""


class _SimpleReader:
    """Reads line by line; `line_numbers` has the line of each key and item."""

    def __init__(self, lines: list[str], first_line: int) -> None:
        self.lines, self.first_line = lines, first_line
        self.at = 0
        self.line_numbers: dict[KeyPath, int] = {}

    def entries(self, path: KeyPath = (), indent: int = 0) -> dict[str, YamlValue]:
        """Read a mapping whose keys all begin in one column."""
        if len(path) > SIMPLE_DEPTH - 2:  # A list in it is one level deeper.
            raise _NotSimpleError
        values: dict[str, YamlValue] = {}
        lines, numbers, margin = self.lines, self.line_numbers, " " * indent
        while self.at < len(lines):
            line = lines[self.at]
            is_inside = line.startswith(margin)
            entry = _ENTRY.fullmatch(line, indent) if is_inside else None
            if entry is None:
                if not _is_content(line):
                    self.at += 1
                    continue
                if is_inside:
                    raise _NotSimpleError
                break
            key, double, single, plain, block, members = entry.groups()
            place = (*path, key)
            if place in numbers:
                raise _NotSimpleError
            numbers[place] = self.first_line + self.at
            self.at += 1
            if plain is not None:
                values[key] = _plain(plain)
            elif double is single:  # both are `None`
                values[key] = self._other(block, members, place, indent)
            else:
                values[key] = _quoted(double, single)
        return values

    def _other(
        self, block: str | None, members: str | None, path: KeyPath, indent: int
    ) -> YamlValue:
        """Return the value of a key that has no text on its line."""
        if block is not None:
            return self._block(block, indent)
        return self._inner(path, indent) if members is None else self._members(members, path)

    def _inner(self, path: KeyPath, indent: int) -> YamlValue:
        """Read the list or mapping below a key without a value."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if _is_content(line):
                column = len(line) - len(line.lstrip(" "))
                if column >= indent and line.startswith("- ", column):
                    return self._items(path, column)
                return self.entries(path, column) if column > indent else None
            self.at += 1
        return None

    def _items(self, path: KeyPath, indent: int) -> list[YamlValue]:
        """Read a list whose items all begin in one column."""
        items: list[YamlValue] = []
        lines, mark = self.lines, " " * indent + "- "
        while self.at < len(lines):
            line = lines[self.at]
            if line.startswith(mark):
                place = (*path, str(len(items)))
                self.line_numbers[place] = self.first_line + self.at
                content = line[len(mark) :].lstrip(" ")
                if _ENTRY.fullmatch(content):  # a mapping that begins on this line
                    column = len(line) - len(content)
                    lines[self.at] = " " * column + content
                    items.append(self.entries(place, column))
                    continue
                item = _ITEM.fullmatch(content)
                if item is None:
                    raise _NotSimpleError
                double, single, plain = item.groups()
                items.append(_quoted(double, single) if plain is None else _plain(plain))
            elif _is_content(line):
                break
            self.at += 1
        return items

    def _members(self, members: str, path: KeyPath) -> list[YamlValue]:
        """Read a list on one line."""
        texts = _MEMBERS.findall(members)
        for number in range(len(texts)):
            self.line_numbers[*path, str(number)] = self.line_numbers[path]
        return [
            text[1:-1] if text[0] in "\"'" else None if text in NULLS else text for text in texts
        ]

    def _block(self, style: str, above: int) -> str:
        """Read a block scalar; its lines begin in one column, those of a literal one or later."""
        if above:
            raise _NotSimpleError
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


def _quoted(double: str | None, single: str | None) -> str | None:
    return double if single is None else single.replace("''", "'")


def _plain(text: str) -> str | None:
    """Return the value of a plain scalar on its own line."""
    text = text.rstrip(" ")
    # Two steps, because finding one character is many times faster.
    if ":" in text and (": " in text or text[-1] == ":"):
        raise _NotSimpleError
    if "#" in text and " #" in text:
        raise _NotSimpleError
    return None if text in NULLS else text
