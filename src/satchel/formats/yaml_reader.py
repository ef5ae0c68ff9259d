"""Parse strict YAML into plain values.

Anchors, aliases, tags, merge keys, duplicate keys and second documents are refused, because
loaders disagree about them or can be attacked with them. Scalars stay text: `3000`, `no` and
`2024-01-01` are not converted to a number, a boolean and a date.
"""

import re
from collections.abc import Mapping
from typing import Any

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.simple_yaml import SIMPLE_DEPTH, read_simple_yaml
from satchel.formats.yaml_builder import KeyPath, YamlAbortError, YamlBuilder, YamlValue
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

# YAML refuses these; checked first, so that the position is exact with either parser.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Line ends in YAML 1.1, ordinary characters in 1.2. Replaced by blanks, so that no key is visible
# to one loader and hidden from another, and lines are counted as in editors.
_DOUBTFUL_LINE_ENDS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")
# Parsing time grows with the square of the bracket depth, and 30,000 brackets have crashed a
# recursive parser. Counting all brackets over-estimates the depth but cannot be fooled by quotes;
# real files have a few dozen. The builder checks the exact depth.
MAX_BRACKETS = 10_000


@dataclass(frozen=True, slots=True)
class YamlMap:
    """A YAML mapping as plain values, with the line of each key."""

    values: Mapping[str, YamlValue]
    lines: Mapping[KeyPath, int]
    """Lines by key path, counted from 1; items of lists have their index, as text, as key."""


def read_yaml(text: str, path: str, limits: Limits, first_line: int = 1) -> ReadResult[YamlMap]:
    """Parse one YAML mapping that begins on line `first_line` of the file at `path`."""
    collector = DiagnosticCollector(path)
    if not _fits(text, limits, collector, first_line):
        return ReadResult(None, collector.diagnostics)
    is_deep_enough = limits.yaml_depth >= SIMPLE_DEPTH
    if is_deep_enough and (simple := read_simple_yaml(text, first_line, limits.yaml_nodes)):
        return ReadResult(YamlMap(*simple), ())
    builder = YamlBuilder(collector, limits, first_line)
    _feed(builder, text.translate(_DOUBTFUL_LINE_ENDS))
    if not collector.fatal and not isinstance(builder.root, dict):
        collector.add(
            "yaml-not-a-mapping",
            f"the top level is {yaml_type_name(builder.root)}, not a mapping",
            "Write one 'key: value' to a line.",
            line=first_line,
        )
    if collector.fatal or not isinstance(builder.root, dict):
        return ReadResult(None, collector.diagnostics)
    return ReadResult(YamlMap(builder.root, builder.lines), collector.diagnostics)


def yaml_type_name(value: YamlValue) -> str:
    """Return the type of a value, for a message."""
    match value:
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "empty"


def _fits(text: str, limits: Limits, collector: DiagnosticCollector, first_line: int) -> bool:
    """Check a text before the parser sees it."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    brackets = text.count("[") + text.count("{")
    if size > limits.frontmatter:
        message = f"{size:,} bytes of YAML, more than {limits.frontmatter:,} (limit frontmatter)"
        collector.add("yaml-too-large", message, "Shorten it.", line=first_line)
    elif brackets > MAX_BRACKETS:
        message = f"{brackets:,} opening brackets, more than {MAX_BRACKETS:,} (limit yaml_depth)"
        collector.add("yaml-too-large", message, "Remove most of them.", line=first_line)
    elif match := UNPRINTABLE.search(text):
        line = text.count("\n", 0, match.start()) + first_line
        column = match.start() - text.rfind("\n", 0, match.start())
        message = f"the character U+{ord(match[0]):04X} is not allowed in YAML"
        collector.add("yaml-invalid", message, "Remove it.", line, column)
    return not collector.fatal


def _feed(builder: YamlBuilder, text: str) -> None:
    import yaml  # lazy: heavy third-party

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is optional
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except YamlAbortError:
        pass  # the builder has reported why
    except yaml.MarkedYAMLError as error:
        builder.report_syntax_error(error.problem or str(error.context), error.problem_mark)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # In the pure Python parser, int() and chr() raise on absurd versions and escapes.
        builder.report_syntax_error(str(error), None)
