"""`reset_equipped_tools`: the tool by which the model chooses its tool groups."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import GroupEntry
from satchel.errors import ToolError
from satchel.names import BASIC_GROUP, near_misses
from satchel.session.builtin_context import META_TOOL, SAME_CONVERSATION, BuiltinContext
from satchel.session.session_state import unavailable_reason
from satchel.text import one_line, shorten
from satchel.tools import ArgumentError, ArgumentFault, Tool, ToolContext

_BUDGET = 16_000
"""Characters for the descriptions of all groups."""
_MAX_DESCRIBED = 256
"""Groups in the schema; the others can be activated, too."""
_LONGEST_NAME = 80

_DESCRIPTION = (
    "Choose the tool groups that you need now. Each argument activates one group (true) or "
    "deactivates it (false or left out): every call sets the final state of all groups at once. "
    "The answer names the active groups and explains how to use them; follow it."
)
_BOOLEANS = {"true": True, "false": False}


class GroupTool(Tool):
    """The tool for the groups of one catalog; `with_context` makes it callable."""

    name = META_TOOL
    _context: BuiltinContext

    def __init__(self, catalog: Catalog) -> None:
        self.annotations = SAME_CONVERSATION
        groups = [group for name, group in catalog.groups.items() if name != BASIC_GROUP]
        usable = [group for group in groups if group.is_available]
        missing = [group for group in groups if not group.is_available]
        self.description = "\n\n".join([_DESCRIPTION, *_remarks(usable, missing)])
        length = _BUDGET // max(1, min(len(usable), _MAX_DESCRIBED))
        properties = {
            group.name: {"type": "boolean", "description": shorten(_describe(group), length)}
            for group in usable[:_MAX_DESCRIBED]
        }
        self.parameters = {
            "type": "object",
            "properties": properties,
            "additionalProperties": {"type": "boolean"} if len(usable) > _MAX_DESCRIBED else False,
        }

    def with_context(self, context: BuiltinContext) -> "GroupTool":
        """Return a copy for one conversation."""
        tool = copy(self)
        tool._context = context  # noqa: SLF001
        return tool

    @property
    def wants_context(self) -> bool:
        """Return `False`: the tool does not use the context of its call."""
        return False

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return for each group whether to activate it. Raises `ArgumentError` or `ToolError`."""
        states = {name: _boolean(value) for name, value in arguments.items() if value is not None}
        if invalid := [name for name, state in states.items() if state is None]:
            faults = [ArgumentFault(name, "must be true or false") for name in invalid]
            raise ArgumentError(self.name, faults)
        groups = self._context.catalog.groups
        errors = [_error(name, bool(state), groups) for name, state in states.items()]
        if any(errors):
            raise ToolError(" ".join([*filter(None, errors), "Nothing was changed."]))
        return states

    def bind(self, arguments: Mapping[str, Any], _context: ToolContext) -> Callable[[], Any]:
        """Return a function that activates the groups; `arguments` come from `check`."""
        return partial(self.execute, **arguments)

    async def execute(self, /, **groups: bool) -> str:
        """Activate exactly the groups that are true, and return the answer for the model."""
        session_state, catalog = self._context.session_state, self._context.catalog
        chosen = [name for name, state in groups.items() if state]
        session_state.activation = session_state.activation.only(chosen, catalog.groups)
        active = session_state.active_in(catalog)
        if not active:
            return "No tool group is active; only the tools that are always available are left."
        answer = f"Active tool groups: {', '.join(group.name for group in active)}."
        notes = session_state.notes_in_answer(active, catalog)
        return f"{answer}\n\n{notes}" if notes else answer


def _remarks(usable: list[GroupEntry], missing: list[GroupEntry]) -> list[str]:
    remarks = []
    if (rest := len(usable) - _MAX_DESCRIBED) > 0:
        remarks.append(f"{rest} more groups can be activated by name but are not described here.")
    if missing:
        names = ", ".join(f"{group.name} ({unavailable_reason(group)})" for group in missing)
        remarks.append(shorten(f"Unavailable: {names}.", _BUDGET // 4))
    return remarks


def _describe(group: GroupEntry) -> str:
    if description := one_line(group.description):
        return description
    if group.tools:
        return f"Tools: {', '.join(group.tools)}."
    return f"Skills: {', '.join(group.skills)}." if group.skills else f"Tool group {group.name}."


def _boolean(value: Any) -> bool | None:
    """Return a boolean as models write it, also as text; `None` for anything else."""
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _error(name: str, state: bool, groups: Mapping[str, GroupEntry]) -> str:
    """Return why a group cannot have this state, or `""` if it can."""
    group = groups.get(name)
    if group is None:
        name = shorten(one_line(name), _LONGEST_NAME)
        near = near_misses(name, groups)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        return f"There is no tool group {name!r}.{hint}"
    if name == BASIC_GROUP and not state:
        return f"Tool group {BASIC_GROUP!r} is always active."
    if state and not group.is_available:
        return f"Tool group {name!r} is unavailable: {unavailable_reason(group)}."
    return ""
