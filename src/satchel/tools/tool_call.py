"""The model's wish to run a tool."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools.base_tool import Tool
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.fast_construction import changed_fast
from satchel.tools.tool_context import ToolContext

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """The model's wish to run a tool; `arguments` may be the JSON text that models produce.

    The session fills in `tool`, `groups` and `context`, for middleware to read.
    """

    name: str
    arguments: Mapping[str, Any] | str = NOTHING
    id: str = ""
    approved: bool = False
    """Whether the user has approved this call; the host says so, and `approve` does not ask."""
    custom: bool = False
    """Whether the model sent free text, to a custom tool of OpenAI: its answer has another form."""
    tool: Tool | None = field(default=None, compare=False, repr=False)
    groups: tuple[str, ...] = field(default=(), compare=False)
    context: ToolContext = field(default_factory=ToolContext, compare=False, repr=False)
    plugin_digest: str = field(default="", compare=False, repr=False)
    """The digest of the plugin whose tool it is, for runners elsewhere; `""` for other tools."""
    session_key: int = field(default=0, compare=False, repr=False)
    """The same for all calls of a session, for runners among which sessions take turns."""

    def changed(self, **parts: Any) -> "ToolCall":
        """Return a copy with other parts, as `dataclasses.replace` does, but faster."""
        return changed_fast(self, parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the wish as JSON: name, arguments and id. An approval is not part of it."""
        arguments = self.arguments if isinstance(self.arguments, str) else dict(self.arguments)
        value = {"name": self.name, "arguments": arguments, "id": self.id}
        return {**value, "custom": True} if self.custom else value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "ToolCall":
        """Return the call for what `to_dict` returned. Raises `DefinitionError` for other data."""
        match value:
            case {"name": str() as name, **others}:
                arguments, call_id = others.get("arguments", {}), others.get("id", "")
                if isinstance(arguments, str | Mapping) and isinstance(call_id, str):
                    custom = others.get("custom") is True
                    return cls(name=name, arguments=arguments, id=call_id, custom=custom)
        raise DefinitionError(
            "this is not a tool call", fix='write {"name": "...", "arguments": {...}, "id": "..."}'
        )

    def bind(self) -> Callable[[], Any]:
        """Return what runs the tool: its function, with the arguments and what is injected."""
        assert self.tool is not None
        assert not isinstance(self.arguments, str)  # they were read and checked
        return self.tool.bind(self.arguments, self.context)

    @property
    def group(self) -> str:
        """Return the first of the tool's groups."""
        return self.groups[0] if self.groups else ""


def pairs_of(calls: Iterable[ToolCall], results: Iterable[R]) -> list[tuple[ToolCall, R]]:
    """Return each call with its result. Raises `ValueError` unless there is one for each."""
    calls, results = list(calls), list(results)
    if len(calls) != len(results):
        raise ValueError(
            f"calls and results are not as many: {len(calls)} and {len(results)} "
            "(pass one result for each call, in the same order)"
        )
    return list(zip(calls, results, strict=True))
