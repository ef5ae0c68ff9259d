"""Record a conversation as JSON lines, to replay it against edited skills and plugins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satchel.errors import DefinitionError
from satchel.files.atomic_write import write_atomic
from satchel.tools import ToolCall, ToolResult
from satchel.tools.tool_call import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from satchel.session.step import Step

_FORMAT = {"satchel-recording": 1}
"""The first line of a file."""
SWITCHED = ("on", "off", "tools")
"""What a step says of its activation: groups switched on and off, and single tools."""
_KINDS = ("message", "step", "call")
CUT_OFF = "cut_off"
"""The `error_code` of a call that was not run, as the model's answer ended in the middle."""


class Recording:
    """What was said and done in a conversation, in order: messages, steps, calls and results.

    A host adds to it as it goes; the loops of `satchel.adapters` take one as `record`. It holds all
    that the model read, so treat the file as you treat the conversation.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Return the entries; each has `kind`: `message`, `step` or `call`."""
        return iter(tuple(self._entries))

    def add_messages(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Add messages of a provider. What JSON cannot represent becomes text."""
        self._entries += [{"kind": "message", "message": dict(message)} for message in messages]

    def add_step(self, step: Step) -> None:
        """Add what the model saw in a step: groups, prompt and tools."""
        self._entries.append({"kind": "step", **describe_step(step)})

    def add_calls(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Add the calls of one message with their results, in the same order.

        Raises `ValueError`, and adds nothing, unless there is one result for each call.
        """
        self._entries += [
            {"kind": "call", "call": call.to_dict(), "result": result.to_dict()}
            for call, result in pairs_of(calls, results)
        ]

    def dumps(self) -> str:
        """Return the recording as JSON lines."""
        lines = (_FORMAT, *self._entries)
        return "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file that only the user can read. Raises `SatchelError`."""
        data = self.dumps().encode("utf-8", "surrogatepass")
        write_atomic(os.fspath(path), data, private=True)

    @classmethod
    def loads(cls, text: str) -> Recording:
        """Return the recording that `dumps` wrote. Raises `DefinitionError` with the line."""
        recording = cls()
        if text.partition("\n")[0].strip() != json.dumps(_FORMAT):
            raise _invalid(1, "it does not begin a recording of version 1")
        for number, line in enumerate(text.split("\n")[1:], 2):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise _invalid(number, f"it is not JSON: {error}") from None
            recording._entries.append(_checked(entry, number))
        return recording

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a file that `save` wrote. Raises `DefinitionError`, and `OSError`."""
        data = Path(path).read_bytes()
        try:
            return cls.loads(data.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise _invalid(line, "it is not UTF-8") from None


def describe_step(step: Step) -> dict[str, Any]:
    """Return what the model sees in a step, and what host and model switched and loaded for it."""
    activation = step.activation
    switched = {key: sorted(getattr(activation, key)) for key in SWITCHED}
    return {
        "switched": {**switched, "skills": list(step.loaded_skills)},
        "groups": list(step.active_groups),
        "prompt": step.prompt(),
        "tools": step.schemas("mcp"),
    }


def _checked(entry: Any, number: int) -> dict[str, Any]:
    match entry:
        case {"kind": "message", "message": dict()}:
            return dict(entry)
        case {"kind": "step", "groups": list(), "prompt": str(), "tools": list() as tools} if all(
            isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools
        ) and _are_names(entry.get("switched", {})):
            return dict(entry)
        case {"kind": "call", "call": dict() as call, "result": dict() as result}:
            try:
                ToolCall.from_dict(call)
                ToolResult.from_dict(result)
            except DefinitionError as error:
                raise _invalid(number, error.message) from None
            return dict(entry)
    raise _invalid(number, f"it is not one of {', '.join(_KINDS)}, or a part of it is missing")


def _are_names(switched: Any) -> bool:
    """Return whether all values are lists of names; files of earlier versions have none."""
    return isinstance(switched, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in switched.values()
    )


def _invalid(number: int, reason: str) -> DefinitionError:
    return DefinitionError(
        f"line {number} of the recording cannot be read: {reason}",
        fix="pass a file that Recording.save() wrote",
    )
