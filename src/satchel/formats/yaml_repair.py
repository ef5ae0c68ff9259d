"""Reads a text that is YAML but for a value that wants quotes, and says what it repaired.

Much of the world's frontmatter holds `description: Use when: ...`, which is not YAML. If a
text cannot be read, each top-level entry that begins as text on the line of its key, and is
not YAML even by itself, is quoted for its author; then it is read once more.
"""

import re
from collections.abc import Collection, Iterator

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.yaml_reader import YamlMap, read_yaml
from satchel.settings import Limits
from satchel.text import one_line, shorten

_ENTRY = re.compile(r"([A-Za-z0-9_-]+)[ \t]*:[ \t]+(\S.*)")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#.*)?")
_EXAMPLE_LENGTH = 100


def read_repairing(
    text: str, path: str, limits: Limits, structured: Collection[str], first_line: int = 1
) -> ReadResult[YamlMap]:
    """Read YAML, quoting values for their author where it is not YAML without.

    In the fields named `structured` brackets mean something: text in their place would hide the
    mistake.
    """
    reading = read_yaml(text, path, limits, first_line)
    lines = text.split("\n")
    # A text of more lines than values are allowed is not worth the search.
    if reading.value or _codes(reading) != {"yaml-invalid"} or len(lines) > limits.yaml_nodes:
        return reading
    repairs = DiagnosticCollector(path)
    mended: list[str] = []
    for entry in _entries(lines):
        quoted = _quoted(entry, limits, structured)
        if not quoted:
            mended += entry
            continue
        key = quoted.partition(":")[0]
        message = f"the value of '{key}' is not YAML; it was read as if it were in quotes"
        fix = f"Write it in quotes: {shorten(one_line(quoted), _EXAMPLE_LENGTH)}"
        repairs.add("yaml-repaired", message, fix, first_line + len(mended))
        # Blank lines in place of what was folded in keep the lines below in their places.
        mended += [quoted, *[""] * (len(entry) - 1)]
    again = read_yaml("\n".join(mended), path, limits, first_line)
    if again.value is None:
        return reading
    return ReadResult(again.value, repairs.found + again.diagnostics)


def _codes(reading: ReadResult[YamlMap]) -> set[str]:
    return {item.code for item in reading.diagnostics}


def _entries(lines: list[str]) -> Iterator[list[str]]:
    """Group each line at the left edge with the blank and indented lines that follow it."""
    entry: list[str] = []
    for line in lines:
        if entry and line[:1].strip():
            yield entry
            entry = []
        entry.append(line)
    yield entry


def _quoted(entry: list[str], limits: Limits, structured: Collection[str]) -> str:
    """Return the entry on one line with its value in quotes, or `""` if that is not called for."""
    found = _ENTRY.fullmatch(entry[0])
    if not found or _BLOCK_SCALAR.fullmatch(found[2]):
        return ""
    key, value = found[1], " ".join("\n".join([found[2], *entry[1:]]).split())
    if key in structured and value[0] in "[{":
        return ""
    if _codes(read_yaml("\n".join(entry), "", limits)) != {"yaml-invalid"}:
        return ""
    if value[0] == '"' and "\\" in value:
        return ""  # its author meant escapes, and one of them is wrong
    if value[0] in "'\"" and value[-1] == value[0]:
        value = value[1:-1]  # quotes inside quotes: the outer ones are YAML's
    return "{}: '{}'".format(key, value.replace("'", "''"))
