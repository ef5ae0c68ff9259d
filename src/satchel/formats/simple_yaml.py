"""Read YAML that is only `key: value` lines, many times faster than a YAML parser.

Most front matter is that simple. Everything else is left to `yaml_reader`; whatever this module
reads, that module reads in the same way.
"""

import re

from satchel.formats.yaml_builder import NULLS, KeyPath, YamlValue

# Tabs, carriage returns, and characters that some YAML versions take as line ends.
_UNUSUAL = re.compile("[\t\r\x85\u2028\u2029\ufeff]")
_ENTRY = re.compile(
    r"""
    ([A-Za-z0-9_][A-Za-z0-9_-]{0,99}) :           # the key
    (?: [ ]+ (?:
        "([^"\\]*)"                               # in double quotes, without escapes
      | '([^']*)'                                 # in single quotes, without quotes inside
      | ([^\s\-?:,\[\]{}#&*!|>'"%@`] .*)          # plain: it begins with no indicator of YAML
    ) )? [ ]*
    """,
    re.VERBOSE,
)
_NOT_PLAIN = re.compile(r":(?:[ ]|$)|[ ]\#")


def read_simple_yaml(
    text: str, first_line: int, most_nodes: int
) -> tuple[dict[str, YamlValue], dict[KeyPath, int]] | None:
    """Return the values of a mapping and the line of each key, or `None` if it is not simple.

    `first_line` is the line of the file on which `text` begins; `most_nodes` is the limit on keys
    and values.
    """
    if _UNUSUAL.search(text):
        return None
    values: dict[str, YamlValue] = {}
    lines: dict[KeyPath, int] = {}
    for number, line in enumerate(text.split("\n"), first_line):
        if line[:1] == "#" or not line.strip(" "):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            return None
        key, double, single, plain = entry.groups()
        value = double if double is not None else single
        if plain is not None:
            value = plain.rstrip(" ")
            if _NOT_PLAIN.search(value):
                return None
            if value in NULLS:
                value = None
        if key in values:
            return None
        values[key] = value
        lines[key,] = number
    if not values or 2 * len(values) + 1 > most_nodes:
        return None
    return values, lines
