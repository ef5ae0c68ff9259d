"""The context of a call: values from the host that are not arguments of the model."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import field
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The context of a call. A tool gets it by a parameter with this annotation.

    The model's schema does not show that parameter. The host sets metadata, config and messages;
    the session sets the rest.
    """

    metadata: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """Any values about this call or step, such as a user's id or a trace."""
    config: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """The configuration of this call."""
    messages: Sequence[Any] = ()
    """The conversation so far, in the host's own format."""
    state: MutableMapping[str, Any] = field(default_factory=dict, repr=False)
    """The state of the session, which tools may change; the session sets it."""
    preapproved: Sequence[str] = ()
    """The tools that loaded skills ask to approve in advance, as they write them."""
    agent_id: str = ""
    """Which agent calls, if the host says so; likewise the next two."""
    run_id: str = ""
    iteration: int | None = None
    programs: Any = field(default=None, repr=False, compare=False)
    """The host's `ProgramRunner`, if any, and its `Sandbox`, for tools that run programs."""
    call_id: str = ""
    tool: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        """Refuse to be an argument: a model must never set a value of the host."""
        raise TypeError("annotate a parameter with ToolContext itself, not with a type around it")

    def get_metadata(self, key: str, default: Any = None) -> Any:
        """Return one value of the metadata."""
        return self.metadata.get(key, default)

    def get_config(self, key: str, default: Any = None) -> Any:
        """Return one value of the configuration of this call."""
        return self.config.get(key, default)
