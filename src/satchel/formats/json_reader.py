"""Parse strict JSON with line numbers and a depth limit.

The standard library's parser accepts `NaN`, can crash on deep nesting, and reports neither
duplicate keys nor lines.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from satchel.formats.read_result import DiagnosticCollector, ReadResult, nearest_line
from satchel.formats.utf8_text import decode
from satchel.lazy_dataclass import dataclass
from satchel.settings import KIB, Limits

JsonValue: TypeAlias = "bool | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonPath: TypeAlias = tuple[str, ...]
"""The keys that lead to a value; items of lists have their index as key."""

_BLANK = re.compile(r"[ \t\n]*+")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
    |(?P<text>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    |(?P<word>true|false|null)""",
    re.VERBOSE,
)
_RELAXED = re.compile(
    rb"""(?xs) "(?:[^"\\]|\\.)*+"? | //[^\n]* | /\*.*?(?:\*/|\Z)
    | ,(?= (?: \s | //[^\n]* | /\*.*?(?:\*/|\Z) )*+ [}\]] )"""
)
"""A text, a comment, or the comma before the end of an object or list.

Each matches also without its end: a hostile file must not be searched again from each place.
"""
# No manifest has a key of interest any deeper, and storing every path could fill the memory.
_LINES_DEPTH = 8
_LITERALS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A parsed value, with the line of each key and the duplicate keys.

    For deeply nested values, only the line of the nearest recorded key above is known.
    """

    value: JsonValue
    lines: Mapping[JsonPath, int]
    duplicates: tuple[JsonPath, ...]

    def line(self, at: JsonPath) -> int | None:
        """Return the line of a value, or of the nearest value around it."""
        return nearest_line(self.lines, at)


def read_json(data: bytes, path: str, code: str, limits: Limits) -> ReadResult[JsonDocument]:
    """Parse UTF-8 JSON; errors are reported with `code`.

    The last value of a duplicate key wins; the caller decides whether that is an error.
    """
    collector = DiagnosticCollector(path)
    if len(data) > limits.json_file:
        message = f"it is larger than {limits.json_file // KIB} KiB (limit json_file)"
        collector.add(code, message, "Shorten it, or raise the limit json_file.")
        return ReadResult(None, collector.diagnostics)
    decoded = decode(data, path, code)
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    reader = _Reader(decoded.value, limits.json_depth)
    try:
        value = reader.document()
    except _FaultError as fault:
        collector.add(code, str(fault), fault.fix, fault.line)
        return ReadResult(None, collector.diagnostics)
    except RecursionError:  # the caller's stack is already deep
        collector.add(code, "it is nested too deeply", "Simplify it.")
        return ReadResult(None, collector.diagnostics)
    return ReadResult(
        JsonDocument(value, reader.lines, tuple(dict.fromkeys(reader.duplicates))), ()
    )


def without_comments(data: bytes) -> bytes:
    """Return JSON without the comments and last commas that editors allow; lines stay the same."""

    def kept(match: re.Match[bytes]) -> bytes:
        return match[0] if match[0].startswith(b'"') else b" " + b"\n" * match[0].count(b"\n")

    return _RELAXED.sub(kept, data)


class _FaultError(Exception):
    """The text is not JSON, at the given line."""

    def __init__(self, message: str, line: int, fix: str = "Write it as JSON.") -> None:
        super().__init__(message)
        self.line, self.fix = line, fix


class _Reader:
    def __init__(self, text: str, deepest: int) -> None:
        self._text, self._deepest, self._depth = text, deepest, 0
        self._at, self._counted, self._last_line = 0, 0, 1
        self.lines: dict[JsonPath, int] = {(): 1}
        self.duplicates: list[JsonPath] = []

    def document(self) -> JsonValue:
        value = self._value(self._next(), ())
        if self._skip_blanks() < len(self._text):
            raise self._fault("there is more text after the end of the value")
        return value

    def _skip_blanks(self) -> int:
        blanks = _BLANK.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at
        return self._at

    def _line(self) -> int:
        self._last_line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._last_line

    def _fault(self, message: str) -> _FaultError:
        return _FaultError(message, self._line())

    def _next(self) -> re.Match[str]:
        start = self._skip_blanks()
        token = _TOKEN.match(self._text, start)
        if token is None:
            is_end = start == len(self._text)
            raise self._fault("the text ends too early" if is_end else "it is not JSON here")
        self._line()
        self._at = token.end()
        return token

    def _mark(self, expected: str) -> str:
        token = self._next()
        if token["mark"] is None or token["mark"] not in expected:
            raise self._fault(f"expected {' or '.join(expected)}")
        return token["mark"]

    def _value(self, token: re.Match[str], at: JsonPath) -> JsonValue:
        match token.lastgroup, token[0]:
            case "mark", "{" | "[" as mark:
                if self._depth >= self._deepest:
                    message = f"it is nested deeper than {self._deepest} (limit json_depth)"
                    fix = "Simplify it, or raise the limit json_depth."
                    raise _FaultError(message, self._line(), fix)
                self._depth += 1
                value = self._object(at) if mark == "{" else self._array(at)
                self._depth -= 1
                return value
            case "text", text:
                return _text(text)
            case "number", number:
                return float(number)
            case "word", word:
                return _LITERALS[word]
        raise self._fault("expected a value")

    def _record_line(self, at: JsonPath, key: str) -> JsonPath:
        """Return the path of a value, and record its line."""
        if len(at) == _LINES_DEPTH:
            return at
        below = (*at, key)
        self.lines[below] = self._line()
        return below

    def _object(self, at: JsonPath) -> JsonValue:
        values: dict[str, JsonValue] = {}
        token = self._next()
        while token["mark"] != "}" or values:
            if token["text"] is None:
                raise self._fault("expected a key in quotes")
            key = _text(token["text"])
            below = self._record_line(at, key)
            if key in values:
                self.duplicates.append(below)
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
            below = self._record_line(at, str(len(values)))
            values.append(self._value(token, below))
            if self._mark(",]") == "]":
                break
            token = self._next()
        return values


def _text(token: str) -> str:
    text: str = json.loads(token)
    # Replace lone surrogates, which cannot be encoded.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_type_name(value: JsonValue) -> str:
    """Return the type of a value, for a message."""
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
