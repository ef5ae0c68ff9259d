"""Repair YAML with missing quotes, and report each repair.

Many real files have `description: Use when: ...`, which is not YAML. If a text cannot be parsed,
each top-level entry whose value begins on the line of its key, and which is not YAML even by
itself, is put in quotes; then the text is parsed once more.
"""

import re
from collections.abc import Collection, Iterator

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.yaml_reader import YamlMap, read_yaml
from satchel.settings import Limits
from satchel.text import one_line, shorten

_ENTRY = re.compile(r"([A-Za-z0-9_-]+)[ \t]*:[ \t]+(\S.*)")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#.*)?")
_INDENTED = re.compile(r"[ \t]+((name|description|license|compatibility)[ \t]*:(?:[ \t].*)?)")
_EXAMPLE_LENGTH = 100


def read_repairing(
    text: str, path: str, limits: Limits, structured: Collection[str], first_line: int = 1
) -> ReadResult[YamlMap]:
    """Parse YAML, with quotes added where a value needs them.

    The fields in `structured` may hold lists and mappings, so a value that begins with a bracket
    is not quoted: that would hide a mistake.
    """
    reading = read_yaml(text, path, limits, first_line)
    if reading.value:
        return reading
    lines = text.split("\n")
    # A text with more lines than allowed values would be refused anyway.
    if _codes(reading) != {"yaml-invalid"} or len(lines) > limits.yaml_nodes:
        return reading
    repairs = DiagnosticCollector(path)
    repaired: list[str] = []
    for entry in _entries(_without_indentation(lines, repairs, first_line)):
        quoted = _quoted(entry, limits, structured)
        if not quoted:
            repaired += entry
            continue
        key = quoted.partition(":")[0]
        message = f"the value of '{key}' is not YAML; it was read as if it were in quotes"
        fix = f"Write it in quotes: {shorten(one_line(quoted), _EXAMPLE_LENGTH)}"
        repairs.add("yaml-repaired", message, fix, first_line + len(repaired))
        # Blank lines replace the folded ones, so that the line numbers below stay the same.
        repaired += [quoted, *[""] * (len(entry) - 1)]
    second = read_yaml("\n".join(repaired), path, limits, first_line)
    if second.value is None:
        return reading
    return ReadResult(second.value, repairs.diagnostics + second.diagnostics)


def _codes(reading: ReadResult[YamlMap]) -> set[str]:
    return {item.code for item in reading.diagnostics}


def _without_indentation(
    lines: list[str], repairs: DiagnosticCollector, first_line: int
) -> list[str]:
    """Move indented fields of a skill to the margin where they would belong to a field's text."""
    repaired, above = list(lines), ""
    for at, line in enumerate(lines):
        if line[:1].strip():
            entry = _ENTRY.fullmatch(line)
            is_plain = (
                entry and entry[2][0] not in "'\"[{" and not _BLOCK_SCALAR.fullmatch(entry[2])
            )
            above = entry[1] if entry and is_plain else ""
        field = _INDENTED.fullmatch(line)
        if above and field and not any(it.startswith(f"{field[2]}:") for it in repaired):
            repaired[at] = field[1]
            message = f"'{field[2]}' is indented, so it would belong to '{above}' above"
            fix = f"Remove the spaces before '{field[2]}:'."
            repairs.add("yaml-repaired", message, fix, first_line + at)
    return repaired


def _entries(lines: list[str]) -> Iterator[list[str]]:
    """Group each unindented line with the blank and indented lines that follow it."""
    entry: list[str] = []
    for line in lines:
        if entry and line[:1].strip():
            yield entry
            entry = []
        entry.append(line)
    yield entry


def _quoted(entry: list[str], limits: Limits, structured: Collection[str]) -> str:
    """Return the entry on one line with its value in quotes, or `""` if it needs none."""
    parts = _ENTRY.fullmatch(entry[0])
    if not parts or _BLOCK_SCALAR.fullmatch(parts[2]):
        return ""
    key, value = parts[1], " ".join("\n".join([parts[2], *entry[1:]]).split())
    if key in structured and value[0] in "[{":
        return ""
    if _codes(read_yaml("\n".join(entry), "", limits)) != {"yaml-invalid"}:
        return ""
    if value[0] == '"' and "\\" in value:
        return ""  # the author meant escapes, and one of them is wrong
    if value[0] in "'\"" and value[-1] == value[0]:
        value = value[1:-1]  # quotes inside quotes: the outer ones belong to YAML
    elif value[0] in "'\"" and value.count(value[0]) == 1:
        value = value[1:].lstrip()  # a quote that nothing closes
    return "{}: '{}'".format(key, value.replace("'", "''"))
