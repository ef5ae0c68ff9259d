"""JSON as its standard has it, read with the line of each key, and no deeper than is safe.

The standard library's reader takes `NaN`, ends the process or raises on deep nesting, says
nothing of a key that is given twice, and forgets the lines.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.utf8_text import decode
from satchel.settings import KIB, Limits

JsonValue: TypeAlias = "bool | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonPath: TypeAlias = tuple[str, ...]
"""Where a value stands: the keys above it, and its own; items of lists by their number."""

_BLANK = re.compile(r"[ \t\n]*+")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
    |(?P<text>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    |(?P<word>true|false|null)""",
    re.VERBOSE,
)
# No manifest has a key of ours deeper, and paths of all the others could fill the memory.
_TOLD_DEPTH = 8
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """The value of a text, with the line of each key and the keys that are given twice.

    Of what lies very deep only the line of the nearest key above it is known.
    """

    value: JsonValue
    lines: Mapping[JsonPath, int]
    twice: tuple[JsonPath, ...]

    def line(self, at: JsonPath) -> int | None:
        """Return the line of a value, or of the nearest one that it lies in."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at)


def read_json(data: bytes, path: str, code: str, limits: Limits) -> ReadResult[JsonDocument]:
    """Read JSON in UTF-8; `code` reports why it cannot be read.

    Of a key that is given twice the last value counts; whether that is a fault is up to the caller.
    """
    problems = DiagnosticCollector(path)
    if len(data) > limits.json_file:
        message = f"it is larger than {limits.json_file // KIB} KiB (limit json_file)"
        problems.add(code, message, "Shorten it, or raise the limit json_file.")
        return ReadResult(None, problems.found)
    decoded = decode(data, path, code)
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    reader = _Reader(decoded.value, limits.json_depth)
    try:
        value = reader.document()
    except _FaultError as fault:
        problems.add(code, str(fault), fault.fix, fault.line)
        return ReadResult(None, problems.found)
    except RecursionError:  # whoever calls stands deep already
        problems.add(code, "it is nested too deeply", "Simplify it.")
        return ReadResult(None, problems.found)
    return ReadResult(JsonDocument(value, reader.lines, tuple(dict.fromkeys(reader.twice))), ())


class _FaultError(Exception):
    """A text is not JSON from some line on."""

    def __init__(self, message: str, line: int, fix: str = "Write it as JSON.") -> None:
        super().__init__(message)
        self.line, self.fix = line, fix


class _Reader:
    """One reading of one text, token by token."""

    def __init__(self, text: str, deepest: int) -> None:
        self._text, self._deepest, self._depth = text, deepest, 0
        self._at, self._counted, self._line = 0, 0, 1
        self.lines: dict[JsonPath, int] = {(): 1}
        self.twice: list[JsonPath] = []

    def document(self) -> JsonValue:
        value = self._value(self._next(), ())
        if self._skip_blanks() < len(self._text):
            raise self._fault("something stands below the end of the value")
        return value

    def _skip_blanks(self) -> int:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _here(self) -> int:
        """Return the line of the place that is being read."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _fault(self, message: str) -> _FaultError:
        return _FaultError(message, self._here())

    def _next(self) -> re.Match[str]:
        start = self._skip_blanks()
        found = _TOKEN.match(self._text, start)
        if found is None:
            ended = start == len(self._text)
            raise self._fault("the text ends too early" if ended else "it is not JSON here")
        self._here()
        self._at = found.end()
        return found

    def _mark(self, expected: str) -> str:
        """Read one of some marks."""
        token = self._next()
        if token["mark"] is None or token["mark"] not in expected:
            raise self._fault(f"expected {' or '.join(expected)}")
        return token["mark"]

    def _value(self, token: re.Match[str], at: JsonPath) -> JsonValue:
        match token.lastgroup, token[0]:
            case "mark", "{" | "[" as mark:
                if self._depth >= self._deepest:
                    raise self._too_deep()
                self._depth += 1
                value = self._object(at) if mark == "{" else self._array(at)
                self._depth -= 1
                return value
            case "text", text:
                return _text(text)
            case "number", number:
                return float(number)
            case "word", word:
                return _WORDS[word]
        raise self._fault("expected a value")

    def _too_deep(self) -> _FaultError:
        message = f"it is nested deeper than {self._deepest} (limit json_depth)"
        return _FaultError(message, self._here(), "Simplify it, or raise the limit json_depth.")

    def _step(self, at: JsonPath, key: str) -> JsonPath:
        """Return the path of a value, and note the line it stands on."""
        if len(at) == _TOLD_DEPTH:
            return at
        below = (*at, key)
        self.lines[below] = self._here()
        return below

    def _object(self, at: JsonPath) -> JsonValue:
        values: dict[str, JsonValue] = {}
        token = self._next()
        while token["mark"] != "}" or values:
            if token["text"] is None:
                raise self._fault("expected a key in quotes")
            key = _text(token["text"])
            below = self._step(at, key)
            if key in values:
                self.twice.append(below)
            self._mark(":")
            values[key] = self._value(self._next(), below)
            if self._mark(",}") == "}":
                break
            token = self._next()
        return values

    def _array(self, at: JsonPath) -> JsonValue:
        values: list[JsonValue] = []
        token = self._next()
        while token["mark"] != "]" or values:
            below = self._step(at, str(len(values)))
            values.append(self._value(token, below))
            if self._mark(",]") == "]":
                break
            token = self._next()
        return values


def _text(token: str) -> str:
    text: str = json.loads(token)
    # Half of a surrogate pair is no character: nothing could write it down.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_type_name(value: JsonValue) -> str:
    """Name the kind of a value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"
