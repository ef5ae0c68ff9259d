"""What comes back from a tool, and how any Python value becomes that."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from satchel.errors import ToolError
from satchel.tools.content_blocks import BLOCKS, Block, Text
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.fast_construction import construct_fast

_SCALARS = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, kw_only=True)
class ToolChunk:
    """A part of a result, told while the tool still runs."""

    content: tuple[Block, ...] = ()
    structured: Any | None = None
    metadata: Mapping[str, Any] = NOTHING
    call_id: str | None = None

    @property
    def text(self) -> str:
        """All text of the chunk."""
        return text_of(self.content)


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The answer to one call: blocks for the model, and the value they were made of."""

    content: tuple[Block, ...] = ()
    structured: Any | None = None
    is_error: bool = False
    is_interrupted: bool = False
    error_code: str | None = None
    call_id: str | None = None
    metadata: Mapping[str, Any] = NOTHING
    """For the host; the model does not see it."""

    @property
    def text(self) -> str:
        """All text of the result."""
        return text_of(self.content)


@dataclass(frozen=True, kw_only=True)
class FinalResult(ToolResult):
    """A result of a run elsewhere: it is within the limits, and says again all told before it."""

    def with_id(self, call_id: str | None) -> ToolResult:
        """Return it as the result of a call here."""
        return construct_fast(ToolResult, **{**vars(self), "call_id": call_id})


Item = ToolChunk | ToolResult
"""What a running call yields: chunks, and last of all the result."""


def text_of(content: tuple[Block, ...]) -> str:
    """Return the text of blocks, one below the other."""
    return "\n".join(block.text for block in content if isinstance(block, Text))


def failure(code: str, text: str, call_id: str | None = None) -> ToolResult:
    """Make the result that tells the model that, and why, a call brought nothing."""
    return ToolResult(content=(Text(text),), is_error=True, error_code=code, call_id=call_id)


def to_result(value: Any, call_id: str | None = None) -> ToolResult:
    """Make a result of whatever a tool returned.

    What JSON cannot carry becomes an error result with the code `invalid_result`.
    """
    try:
        if type(value) is str and value:
            if not value.isascii():
                value.encode()  # raises on a broken character
            return construct_fast(ToolResult, content=(Text(value),), call_id=call_id)
        if isinstance(value, ToolResult):
            return _settled(value, call_id)
        if isinstance(value, ToolChunk):
            made = ToolResult(
                content=value.content, structured=value.structured, metadata=value.metadata
            )
            return _settled(made, call_id)
        if (content := _content(value)) is not None:
            return ToolResult(content=_checked(content), call_id=call_id)
        text = to_json(value)
        structured = _copied(value, text)
        return construct_fast(
            ToolResult, content=(Text(text),), structured=structured, call_id=call_id
        )
    except Exception as problem:
        told = f"the tool ran, but its result holds {_unfit(problem)}; do not retry"
        return failure("invalid_result", told, call_id)


def to_json(value: Any) -> str:
    """Write any value as compact JSON, the same bytes each time; raise where JSON has no word."""
    text = _ENCODER.encode(value)
    text.encode()  # raises on lone surrogates, which no transport carries
    return text


def sendable(value: Any, what: str) -> Any:
    """Return a value as JSON has it. Raises `ToolError` that tells why `what` cannot be sent."""
    try:
        return json.loads(to_json(value))
    except Exception as problem:
        told = f"{what} holds {_unfit(problem)}; send it without"
        raise ToolError(told) from problem


def _is_flat(value: Any) -> bool:
    """Tell whether a copy of a value is what its JSON says, and shares nothing with it.

    Otherwise the JSON is read back, which takes longer.
    """
    return type(value) is dict and all(
        type(key) is str and type(item) in _SCALARS for key, item in value.items()
    )


def _content(value: Any) -> tuple[Block, ...] | None:
    """Return the blocks that a value is, or `None` if it is data."""
    match value:
        case None:
            return ()
        case str():
            text = str.__str__(value)  # the letters of an enum member, not its name
            return (Text(text),) if text else ()
        case _ if isinstance(value, BLOCKS):
            return (value,)
        case list() | tuple() if any(isinstance(item, BLOCKS) for item in value):
            # Text beside a picture is text, not a string in a list.
            return tuple(block for item in value for block in _content_or_json(item))
    return None


def _content_or_json(value: Any) -> tuple[Block, ...]:
    content = _content(value)
    return (Text(to_json(value)),) if content is None else content


def _settled(result: ToolResult, call_id: str | None) -> ToolResult:
    """Return a result that can be sent, and shares its structured value with nobody."""
    content, structured = _checked(result.content), result.structured
    if structured is not None:
        structured = _copied(structured, to_json(structured))
    elif content is result.content and call_id == result.call_id:
        return result
    return replace(result, content=content, structured=structured, call_id=call_id)


def _copied(value: Any, text: str) -> Any:
    """Return a copy of a value that was written as JSON."""
    return dict(value) if _is_flat(value) else json.loads(text)


def _checked(content: Any) -> tuple[Block, ...]:
    """Return blocks that can be sent; raise what tells why others cannot."""
    blocks: tuple[Block, ...] = tuple(content)
    for block in blocks:
        if not isinstance(block, BLOCKS):
            raise _NoJsonError(type(block).__name__)
        if isinstance(block, Text):
            block.text.encode()
        else:
            to_json(block.to_dict())
    return blocks


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


_ENCODER = json.JSONEncoder(
    default=_jsonable, allow_nan=False, ensure_ascii=False, separators=(",", ":")
)


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
