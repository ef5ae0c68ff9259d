"""What comes back from a tool, and how any Python value becomes that."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's wish to run a tool; `arguments` may be the JSON text that models produce."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call: blocks for the model, and the value they were made of."""

    content: tuple[Text, ...] = ()
    structured: Any | None = None
    is_error: bool = False
    is_interrupted: bool = False
    error_code: str | None = None
    call_id: str | None = None

    @property
    def text(self) -> str:
        """All text of the result."""
        return "\n".join(block.text for block in self.content)


def failure(code: str, text: str) -> ToolResult:
    """Make the result that tells the model that, and why, a call brought nothing."""
    return ToolResult((Text(text),), is_error=True, error_code=code)


def to_result(value: Any) -> ToolResult:
    """Make a result of whatever a tool returned.

    What JSON cannot carry becomes an error result with the code `invalid_result`.
    """
    if value is None:
        return ToolResult()
    try:
        if isinstance(value, ToolResult):
            return _checked(value)
        if isinstance(value, str):
            return _plain_text(value)
        text = to_json(value)
        # Read back, so that the value is exactly what the text says and shared with nobody.
        return ToolResult((Text(text),), structured=json.loads(text))
    except Exception as problem:
        return failure(
            "invalid_result", f"the tool ran, but its result holds {_unfit(problem)}; do not retry"
        )


def to_json(value: Any) -> str:
    """Write any value as compact JSON, the same bytes each time; raise where JSON has no word."""
    text = json.dumps(
        value, default=_jsonable, allow_nan=False, ensure_ascii=False, separators=(",", ":")
    )
    text.encode()  # raises on lone surrogates, which no transport carries
    return text


def _checked(result: ToolResult) -> ToolResult:
    for block in result.content:
        if not isinstance(block, Text):
            raise _NoJsonError(type(block).__name__)
        block.text.encode()
    to_json(result.structured)
    return result


def _plain_text(value: str) -> ToolResult:
    text = str.__str__(value)  # the letters of an enum member, not its name
    text.encode()
    return ToolResult((Text(text),) if text else ())


def _jsonable(value: Any) -> Any:
    """Turn one value that `json` does not know into some that it does."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    # Bytes need an encoding that only the tool knows; an iterator may never end.
    if isinstance(value, bytes | bytearray | memoryview | Iterator | type):
        raise _NoJsonError(type(value).__name__)
    is_pydantic = hasattr(value, "__pydantic_serializer__")
    if is_dataclass(value) and not is_pydantic:
        return {item.name: getattr(value, item.name) for item in fields(value)}
    from pydantic_core import to_jsonable_python

    def refuse(unknown: Any) -> Any:
        raise _NoJsonError(type(unknown).__name__)

    return to_jsonable_python(value, fallback=refuse)


class _NoJsonError(TypeError):
    """JSON has no word for values of the type that is named."""


def _unfit(problem: Exception) -> str:
    """Say in our words what JSON cannot carry; the text of `problem` may quote the value."""
    match problem:
        case _NoJsonError():
            return f"a value of type {problem}, which JSON cannot carry"
        case UnicodeError():
            return "text with a broken character"
        case RecursionError():
            return "values nested too deeply"
        case ValueError():
            return "a number that JSON lacks, or a value that contains itself"
        case _:
            return "a value that JSON cannot carry"
