"""Read the fields of a manifest in JSON."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from satchel.formats.json_reader import JsonDocument, JsonPath, JsonValue, json_type_name, read_json
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFields:
    """One object of a JSON manifest, read key by key.

    Invalid values are reported and replaced by a default, so that reading continues.
    """

    values: Mapping[str, JsonValue]
    at: JsonPath
    document: JsonDocument
    collector: DiagnosticCollector

    def report(self, code: str, key: str, message: str, fix: str) -> None:
        """Add a diagnostic on the line of `key`, or of the object if the key is missing."""
        self.collector.add(code, message, fix, self.document.line((*self.at, key)))

    def report_invalid(self, key: str, expected: str) -> None:
        """Report a value of the wrong type."""
        name = quoted(".".join((*self.at, key)))
        message = f"{name} is {json_type_name(self.values[key])}, not {expected}"
        self.report("plugin-field-type", key, message, f"Write {expected}, or remove the field.")

    def text(self, key: str) -> str:
        """Return a text, `""` if the key is missing."""
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        if key in self.values:
            self.report_invalid(key, "text")
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty if the key is missing."""
        value = self.values.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(map(str, value))
        if key in self.values:
            self.report_invalid(key, "a list of texts")
        return ()


def read_object(
    data: bytes, path: str, code: str, limits: Limits, read: Callable[[JsonFields], T | None]
) -> ReadResult[T]:
    """Return the result of `read` for JSON that must be an object.

    Errors are reported with `code`. The value is `None` if there are any.
    """
    parsed = read_json(data, path, code, limits)
    document = parsed.value
    if document is None:
        return ReadResult(None, parsed.diagnostics)
    collector = DiagnosticCollector(path)
    if not isinstance(document.value, dict):
        message = f"the top level is {json_type_name(document.value)}, not an object"
        collector.add(code, message, "Write an object.", 1)
        return ReadResult(None, collector.diagnostics)
    value = read(JsonFields(values=document.value, at=(), document=document, collector=collector))
    return ReadResult(None if collector.fatal else value, collector.diagnostics)
