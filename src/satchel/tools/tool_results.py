"""The result of a call, and how a tool's return value becomes one."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

from satchel.errors import DefinitionError, ToolError
from satchel.lazy_dataclass import dataclass
from satchel.tools.content_blocks import BLOCKS, Block, Text, block_from_dict
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.fast_construction import Draft, construct_fast

NO_VALUE = "Done. The tool returned no value."
"""What a model reads of `None`. An empty answer looks like a failure; some providers refuse it."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, kw_only=True)
class ToolChunk:
    """A part of a result that the tool yields while it runs."""

    content: tuple[Block, ...] = ()
    structured: Any | None = None
    metadata: Mapping[str, Any] = NOTHING
    call_id: str | None = None

    @property
    def text(self) -> str:
        """Return all text of the chunk."""
        return text_of(self.content)


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of one call: content blocks for the model, and the structured value."""

    content: tuple[Block, ...] = ()
    structured: Any | None = None
    is_error: bool = False
    is_interrupted: bool = False
    error_code: str | None = None
    call_id: str | None = None
    metadata: Mapping[str, Any] = NOTHING
    """For the host; the model does not see it."""
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    """What the tool raised; only middleware sees it, the result of the call has none."""

    @property
    def text(self) -> str:
        """Return all text of the result."""
        return text_of(self.content)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON; the content is in the shape of MCP.

        Values of `structured` and `metadata` that JSON cannot represent are left out.
        """
        return {
            "content": [block.to_dict() for block in self.content],
            "structured": _json_or_none(self.structured),
            "is_error": self.is_error,
            "is_interrupted": self.is_interrupted,
            "error_code": self.error_code,
            "call_id": self.call_id,
            "metadata": {
                key: copy
                for key, value in self.metadata.items()
                if (copy := _json_or_none(value)) is not None
            },
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "ToolResult":
        """Return the result for what `to_dict` returned. Raises `DefinitionError` otherwise."""
        try:
            return cls(
                content=tuple(block_from_dict(item) for item in value["content"]),
                structured=value.get("structured"),
                is_error=value.get("is_error", False) is True,
                is_interrupted=value.get("is_interrupted", False) is True,
                error_code=value.get("error_code"),
                call_id=value.get("call_id"),
                metadata=dict(value.get("metadata") or {}),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise DefinitionError(
                "this is not the result of a tool", fix="pass what ToolResult.to_dict() returned"
            ) from problem


@dataclass(frozen=True, kw_only=True)
class FinalResult(ToolResult):
    """A result of a run in another process: within the limits, and with all earlier chunks."""

    def with_id(self, call_id: str | None) -> ToolResult:
        """Return it as the result of a local call."""
        return construct_fast(ToolResult, **{**vars(self), "call_id": call_id})


Item = ToolChunk | ToolResult
"""What a running call yields: chunks, then the result."""


def text_of(content: tuple[Block, ...]) -> str:
    """Return the text of the blocks, joined by newlines."""
    return "\n".join(block.text for block in content if isinstance(block, Text))


def failure(code: str, text: str, call_id: str | None = None) -> ToolResult:
    """Return an error result; the model reads `text`."""
    return ToolResult(content=(Text(text),), is_error=True, error_code=code, call_id=call_id)


def result_of_nothing(call_id: str | None = None) -> ToolResult:
    """Return the result of a tool that returned `None`: the model reads that it is done."""
    return _text_result(NO_VALUE, call_id)


def _text_result(text: str, call_id: str | None) -> ToolResult:
    draft: Any = Draft()
    draft.content, draft.call_id = (Text(text),), call_id
    draft.__class__ = ToolResult
    result: ToolResult = draft
    return result


def to_result(value: Any, call_id: str | None = None) -> ToolResult:
    """Return the result for a value that a tool returned.

    A value that JSON cannot represent gives an error result with the code `invalid_result`.
    """
    try:
        if type(value) is str and value:
            if not value.isascii():
                value.encode()  # raises on a broken character
            return _text_result(value, call_id)
        if isinstance(value, ToolResult):
            return _checked_result(value, call_id)
        if isinstance(value, ToolChunk):
            result = ToolResult(
                content=value.content, structured=value.structured, metadata=value.metadata
            )
            return _checked_result(result, call_id)
        if (content := _content(value)) is not None:
            return ToolResult(content=_checked(content), call_id=call_id)
        text = to_json(value)
        structured = _copy(value, text)
        return construct_fast(
            ToolResult, content=(Text(text),), structured=structured, call_id=call_id
        )
    except Exception as problem:
        message = f"the tool ran, but its result contains {_reason(problem)}; do not retry"
        return failure("invalid_result", message, call_id)


def to_json(value: Any) -> str:
    """Return a value as compact JSON, always the same bytes; raise if JSON cannot represent it."""
    text = _ENCODER.encode(value)
    text.encode()  # raises for lone surrogates: UTF-8 cannot encode them
    return text


def sendable(value: Any, label: str) -> Any:
    """Return a value as plain JSON. Raises a `ToolError` that says why `what` cannot be sent."""
    try:
        return json.loads(to_json(value))
    except Exception as problem:
        raise ToolError(f"{label} contains {_reason(problem)}; send it without that") from problem


def _json_or_none(value: Any) -> Any:
    """Return a value as plain JSON, or `None` if JSON cannot represent it."""
    try:
        return json.loads(to_json(value))
    except Exception:  # objects of the host may raise anything
        return None


def _copy(value: Any, text: str) -> Any:
    """Return a copy of a value, given its JSON text."""
    return dict(value) if _is_flat(value) else json.loads(text)


def _is_flat(value: Any) -> bool:
    """Return whether a flat copy of a value equals its JSON; parsing the JSON is slower."""
    return type(value) is dict and all(
        type(key) is str and type(item) in _SCALARS for key, item in value.items()
    )


def _content(value: Any) -> tuple[Block, ...] | None:
    """Return the blocks of a value, or `None` if it is data."""
    match value:
        case None:
            return ()
        case str():
            text = str.__str__(value)  # the value of an enum member, not its name
            return (Text(text),) if text else ()
        case _ if isinstance(value, BLOCKS):
            return (value,)
        case list() | tuple() if any(isinstance(item, BLOCKS) for item in value):
            # A string beside a block is text, not data.
            return tuple(block for item in value for block in _content_or_json(item))
    return None


def _content_or_json(value: Any) -> tuple[Block, ...]:
    content = _content(value)
    return (Text(to_json(value)),) if content is None else content


def _checked_result(result: ToolResult, call_id: str | None) -> ToolResult:
    """Return a result that can be sent, with its own copy of the structured value."""
    content, structured = _checked(result.content), result.structured
    if structured is not None:
        structured = _copy(structured, to_json(structured))
    elif content is result.content and call_id == result.call_id:
        return result
    return replace(result, content=content, structured=structured, call_id=call_id)


def _checked(content: Any) -> tuple[Block, ...]:
    """Return the blocks; raise if one cannot be sent."""
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
    """Convert a value that `json` does not support."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    # Only the tool knows the encoding of bytes; an iterator may never end.
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
    """JSON cannot represent values of the named type."""


def _reason(problem: Exception) -> str:
    """Return what JSON cannot represent. It omits the text of `problem`, which may quote values."""
    match problem:
        case _NoJsonError():
            return f"a value of type {problem}, which JSON cannot represent"
        case UnicodeError():
            return "text with an invalid Unicode character"
        case RecursionError():
            return "values nested too deeply"
        case ValueError():
            return "a number that JSON cannot represent, or a value that contains itself"
        case _:
            return "a value that JSON cannot represent"
