"""What the session's own tools, such as `load_skill`, work with."""

from types import MappingProxyType

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import SkillEntry, ToolEntry
from satchel.groups.group_activation import View
from satchel.lazy_dataclass import dataclass
from satchel.session.session_state import SessionState, unavailable_reason
from satchel.shared import SharedView

META_TOOL = "reset_equipped_tools"

SAME_CONVERSATION = MappingProxyType({"readOnlyHint": True, "idempotentHint": False})
"""Annotations of tools that change nothing outside the conversation."""

HIDDEN = "_context"
"""The parameter that receives the `BuiltinContext`; no group can have this name."""


@dataclass(frozen=True, slots=True)
class BuiltinContext:
    """One conversation, and the view that its model saw when it made the call."""

    session_state: SessionState
    shared_view: SharedView

    @property
    def catalog(self) -> Catalog:
        """Return the catalog that the model saw."""
        return self.shared_view.catalog

    @property
    def view(self) -> View:
        """Return the part of the catalog that the model saw."""
        return self.shared_view.view

    def how_to_use(self, groups: tuple[str, ...]) -> str:
        """Return what the model must do to use an entry of these groups, none of them active."""
        entries = [self.catalog.groups[name] for name in groups if name in self.catalog.groups]
        if any(map(self.session_state.activation.is_active, entries)):
            return "which is active from the next step on. Try again then."
        usable = [group for group in entries if group.is_available]
        if entries and not usable:
            return f"which is unavailable: {unavailable_reason(entries[0])}. Tell the user."
        if not self.session_state.options.meta_tool:
            return "which is not active. Ask the user to activate it."
        group = usable[0].name if usable else groups[0]
        hint = f"Call {META_TOOL} with {group!r} and every group to keep set to true."
        return f"which is not active. {hint}"

    def how_to_use_tool(self, entry: ToolEntry, *, alone: bool = True) -> str:
        """Return the same for a tool; `alone` if the model may also activate it without a group."""
        if entry.name in self.session_state.activation.tools:
            return "but it is active alone from the next step on. Try again then."
        hint = self.how_to_use(entry.groups)
        if not alone or META_TOOL not in hint:
            return hint
        return f"{hint} Or call activate_tools with its name, for this tool alone."

    def group_of(self, entry: ToolEntry | SkillEntry) -> str:
        """Return the group to activate for an entry: the first available one, if any."""
        groups = self.catalog.groups
        usable = (name for name in entry.groups if name in groups and groups[name].is_available)
        return next(usable, entry.groups[0])
