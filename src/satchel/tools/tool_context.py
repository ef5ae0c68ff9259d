"""What the host tells a tool beside the arguments of the model."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from satchel.tools.empty_mapping import NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What surrounds a call; a parameter annotated with it gets it, and no schema shows it.

    The host makes one with what it wants to tell; the session adds its own part.
    """

    metadata: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """About this call or this step: a user's id, a trace, whatever the host likes."""
    config: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """Choices for this call."""
    messages: Sequence[Any] = ()
    """The conversation so far, in the host's own form."""
    state: MutableMapping[str, Any] = field(default_factory=dict, repr=False)
    """The session's own state, which tools may change; the session fills it in."""
    preapproved: Sequence[str] = ()
    """What the skills that were loaded ask to be approved beforehand, in their own words."""
    call_id: str = ""
    tool: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        """Refuse to be an argument: what the host tells must never be made up by a model."""
        raise TypeError("a ToolContext stands alone as a parameter's annotation")

    def get_metadata(self, key: str, default: Any = None) -> Any:
        """Return one value of the metadata."""
        return self.metadata.get(key, default)

    def get_config(self, key: str, default: Any = None) -> Any:
        """Return one value of the configuration of this call."""
        return self.config.get(key, default)
