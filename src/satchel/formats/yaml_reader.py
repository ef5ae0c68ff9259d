"""YAML without its traps: plain values, read event by event.

Anchors, aliases, tags, merge keys, duplicate keys and second documents are refused, because
loaders disagree about them or can be harmed by them. Scalars stay text: `3000`, `no` and
`2024-01-01` are what the author wrote, not a number, a boolean and a date.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.simple_yaml import read_simple_yaml
from satchel.formats.yaml_builder import KeyPath, YamlAbortError, YamlBuilder, YamlValue
from satchel.settings import Limits

# What YAML's own reader refuses; found first, so that the place is exact with either parser.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Line ends in YAML 1.1 and ordinary characters in 1.2. As blanks they cannot smuggle in a key
# that one loader sees and another does not, and lines are counted as editors count them.
_DOUBTFUL_LINE_ENDS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")
# A parser's time grows with the square of the depth of brackets, and 30,000 have killed the
# process of a recursive one. Counting all of them over-estimates the depth but cannot be fooled
# by quotes; real files have a few dozen. The exact depth is judged event by event.
_MOST_BRACKETS = 10_000


@dataclass(frozen=True, slots=True)
class YamlMap:
    """A YAML mapping as plain values, and the line of the file on which each key stands."""

    values: Mapping[str, YamlValue]
    lines: Mapping[KeyPath, int]
    """Key path to line, counted from 1; an item of a list has its index as key, as text."""


def read_yaml(text: str, path: str, limits: Limits, first_line: int = 1) -> ReadResult[YamlMap]:
    """Read one YAML mapping whose first line is line `first_line` of the file at `path`."""
    problems = DiagnosticCollector(path)
    if not _fits(text, limits, problems, first_line):
        return ReadResult(None, problems.found)
    if limits.yaml_depth > 0 and (simple := read_simple_yaml(text, first_line, limits.yaml_nodes)):
        return ReadResult(YamlMap(*simple), ())
    builder = YamlBuilder(problems, limits, first_line)
    _feed(builder, text.translate(_DOUBTFUL_LINE_ENDS))
    if not problems.fatal and not isinstance(builder.root, dict):
        problems.add(
            "yaml-not-a-mapping",
            f"the top level is {yaml_type_name(builder.root)}, not a mapping",
            "Write one 'key: value' to a line.",
            line=first_line,
        )
    if problems.fatal or not isinstance(builder.root, dict):
        return ReadResult(None, problems.found)
    return ReadResult(YamlMap(builder.root, builder.lines), problems.found)


def yaml_type_name(value: YamlValue) -> str:
    """Name the kind of a value for a message."""
    match value:
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "empty"


def _fits(text: str, limits: Limits, problems: DiagnosticCollector, first_line: int) -> bool:
    """Judge a text before a parser sees it."""
    size = len(text.encode("utf-8", "surrogatepass"))
    brackets = text.count("[") + text.count("{")
    if size > limits.frontmatter:
        message = f"{size:,} bytes of YAML, more than {limits.frontmatter:,} (limit frontmatter)"
        problems.add("yaml-too-large", message, "Shorten it.", line=first_line)
    elif brackets > _MOST_BRACKETS:
        message = f"{brackets:,} opening brackets, more than {_MOST_BRACKETS:,} (limit yaml_depth)"
        problems.add("yaml-too-large", message, "Remove most of them.", line=first_line)
    elif found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + first_line
        column = found.start() - text.rfind("\n", 0, found.start())
        message = f"the character U+{ord(found[0]):04X} is not allowed in YAML"
        problems.add("yaml-invalid", message, "Remove it.", line, column)
    return not problems.fatal


def _feed(builder: YamlBuilder, text: str) -> None:
    import yaml  # lazy: heavy third-party

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is optional
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except YamlAbortError:
        pass  # the builder has said why
    except yaml.MarkedYAMLError as error:
        builder.broken(error.problem or str(error.context), error.problem_mark)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The pure parser lets int() and chr() raise on absurd versions and escapes.
        builder.broken(str(error), None)
