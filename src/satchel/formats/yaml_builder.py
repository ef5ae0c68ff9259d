"""Build a plain value from the events of a YAML parser."""

import re
from typing import Any, TypeAlias

from satchel.formats.read_result import DiagnosticCollector, quoted
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue] | None"
"""Text, a list, a mapping, or None for a plain empty value, `~` or `null`."""

KeyPath: TypeAlias = tuple[str, ...]

_BROKEN = re.compile("[\0\ud800-\udfff]")
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# A hostile file can have thousands of errors.
_MAX_DIAGNOSTICS = 20
_QUOTE = "Quote the text, or write the value out."


class YamlAbortError(Exception):
    """Stop reading; the reason is reported already."""


@dataclass(slots=True)
class _Level:
    """An open mapping or list, and the key of the next value."""

    value: "dict[str, YamlValue] | list[YamlValue]"
    path: KeyPath
    key: str | None = None

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class YamlBuilder:
    """Builds a value event by event; continues after an error to find the next one."""

    def __init__(self, collector: DiagnosticCollector, limits: Limits, first_line: int) -> None:
        self.root: YamlValue = None
        self.lines: dict[KeyPath, int] = {}
        self._collector, self._limits, self._first_line = collector, limits, first_line
        self._levels: list[_Level] = []
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        """Process the next event of the parser."""
        # By name, so that this module need not import the heavy package.
        match type(event).__name__:
            case "ScalarEvent":
                self._check_node(event)
                self._take_scalar(event)
            case "MappingStartEvent":
                self._check_node(event)
                self._open(event, {})
            case "SequenceStartEvent":
                self._check_node(event)
                self._open(event, [])
            case "MappingEndEvent" | "SequenceEndEvent":
                self._levels.pop()
            case "AliasEvent":
                self._refuse(event, f"the alias {quoted('*' + event.anchor)}", _QUOTE)
                raise YamlAbortError  # there is no value to use instead
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    self._refuse(event, "a second document", "Keep one document.")
                    raise YamlAbortError
                if event.tags:
                    self._refuse(event, "a %TAG directive", "Remove the directive.")

    def report_syntax_error(self, reason: str, mark: Any) -> None:
        """Report an error of the parser, with its message and position."""
        line, column = (self._line(mark), mark.column + 1) if mark else (self._first_line, None)
        if "maximum nesting depth" in reason:  # libyaml's own limit, met while it reads ahead
            self._report_too_large(
                f"more than {self._limits.yaml_depth} levels", "yaml_depth", line
            )
            return
        self._collector.add("yaml-invalid", f"not YAML: {reason}", _fix(reason), line, column)

    def _check_node(self, event: Any) -> None:
        """Refuse anchors, tags, and more nodes than the limit."""
        self._nodes += 1
        if self._nodes > self._limits.yaml_nodes:
            self._too_large(event, f"more than {self._limits.yaml_nodes:,} values", "yaml_nodes")
        if event.anchor:
            self._refuse(event, f"the anchor {quoted('&' + event.anchor)}", _QUOTE)
        if event.tag:
            self._refuse(event, f"the tag {quoted(event.tag)}", "Quote the text, or drop the tag.")
        if len(self._collector) >= _MAX_DIAGNOSTICS:
            raise YamlAbortError

    def _take_scalar(self, event: Any) -> None:
        text = event.value
        if _BROKEN.search(text):
            message = "an escape stands for NUL or half a character"
            self._collector.add("yaml-invalid", message, "Remove it.", self._line(event.start_mark))
        plain = not event.style
        if self._levels and self._levels[-1].wants_key:
            self._take_key(event, merge=plain and text == "<<")
        else:
            self._place(event, None if plain and text in NULLS else text)

    def _take_key(self, event: Any, *, merge: bool) -> None:
        level, key, line = self._levels[-1], event.value, self._line(event.start_mark)
        path = (*level.path, key)
        if merge:
            self._refuse(event, "the merge key '<<'", "Write the fields out.")
        elif path in self.lines:
            message = f"the key {quoted(key)} is given again, first on line {self.lines[path]}"
            self._collector.add("yaml-duplicate-key", message, "Keep one of them.", line)
        self.lines.setdefault(path, line)
        level.key = key

    def _open(self, event: Any, value: "dict[str, YamlValue] | list[YamlValue]") -> None:
        if self._levels and self._levels[-1].wants_key:
            self._refuse(event, "a key that is not text", "Quote the key.")
            raise YamlAbortError
        if len(self._levels) >= self._limits.yaml_depth:
            self._too_large(event, f"more than {self._limits.yaml_depth} levels", "yaml_depth")
        self._levels.append(_Level(value, self._place(event, value)))

    def _place(self, event: Any, value: YamlValue) -> KeyPath:
        """Add a value to the innermost open level, and return its path."""
        if not self._levels:
            self.root = value
            return ()
        level = self._levels[-1]
        if isinstance(level.value, dict):
            key, level.key = level.key or "", None
            level.value[key] = value
            return (*level.path, key)
        path = (*level.path, str(len(level.value)))
        self.lines[path] = self._line(event.start_mark)
        level.value.append(value)
        return path

    def _refuse(self, event: Any, feature: str, fix: str) -> None:
        mark = event.start_mark
        message = f"{feature} is not accepted"
        self._collector.add("yaml-unsafe", message, fix, self._line(mark), mark.column + 1)

    def _too_large(self, event: Any, excess: str, limit: str) -> None:
        self._report_too_large(excess, limit, self._line(event.start_mark))
        raise YamlAbortError

    def _report_too_large(self, excess: str, limit: str, line: int) -> None:
        message = f"it has {excess} (limit {limit})"
        self._collector.add("yaml-too-large", message, "Simplify it.", line)

    def _line(self, mark: Any) -> int:
        return int(mark.line) + self._first_line


def _fix(reason: str) -> str:
    if "mapping values are not allowed" in reason:
        return "Put the value in quotes: it contains a colon followed by a blank."
    if "tab character" in reason:
        return "Indent with spaces, not with tabs."
    if "cannot start any token" in reason:
        return "Put a value that starts with @, ` or % in quotes; indent with spaces, not tabs."
    return "Fix it here or just above; a value with special characters needs quotes."
