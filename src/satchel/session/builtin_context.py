"""The desk: what a session's own tools work with."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from satchel.catalog import Catalog, SkillEntry, ToolEntry
from satchel.groups import View
from satchel.session.session_state import SessionState, unavailable_reason
from satchel.shared import SharedView
from satchel.tools import FunctionTool

META_TOOL = "reset_equipped_tools"

SAME_CONVERSATION = MappingProxyType({"readOnlyHint": True, "idempotentHint": False})
"""Said of what changes nothing outside the conversation, but does not answer alike twice."""

HIDDEN = "_desk"
"""The parameter by which such a tool gets its desk; no group can have that name."""


@dataclass(frozen=True, slots=True)
class BuiltinContext:
    """One conversation, and what its model was shown when it made the call."""

    conversation: SessionState
    scene: SharedView

    @property
    def catalog(self) -> Catalog:
        """Return the generation that the model was shown."""
        return self.scene.catalog

    @property
    def view(self) -> View:
        """Return what the model was shown of it."""
        return self.scene.view

    def how_to_use(self, groups: tuple[str, ...]) -> str:
        """Say how what belongs to some groups, none of them active, comes within reach."""
        known = [self.catalog.groups[name] for name in groups if name in self.catalog.groups]
        if any(map(self.conversation.activation.covers, known)):
            return "which is active from the next step on. Try again then."
        usable = [group for group in known if group.is_available]
        if known and not usable:
            return f"which is unavailable: {unavailable_reason(known[0])}. Tell the user."
        if not self.conversation.options.meta_tool:
            return "which is not active. Ask the user to activate it."
        group = (usable or known)[0].name if known else groups[0]
        return (
            f"which is not active. Call {META_TOOL} with {group!r} true, and with true for each "
            "group to keep."
        )

    def group_of(self, entry: ToolEntry | SkillEntry) -> str:
        """Return the group by which to get at something: an available one, if there is one."""
        groups = self.catalog.groups
        usable = (name for name in entry.groups if name in groups and groups[name].is_available)
        return next(usable, entry.groups[0])


def describe_parameters(tool: FunctionTool, properties: Mapping[str, Any]) -> FunctionTool:
    """Return a copy that shows more about some of its parameters.

    What is checked stays the same: the tool itself answers what does not fit.
    """
    made = copy(tool)
    shown = {**tool.parameters["properties"], **properties}
    made.parameters = {**tool.parameters, "properties": shown}
    return made
