"""`reset_equipped_tools`: the model chooses its tool groups."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any

from satchel.catalog import Catalog, GroupEntry
from satchel.errors import ToolError
from satchel.names import BASIC_GROUP, near_misses
from satchel.session.builtin_context import META_TOOL, SAME_CONVERSATION, BuiltinContext
from satchel.session.session_state import unavailable_reason
from satchel.text import one_line, shorten
from satchel.tools import ArgumentError, ArgumentFault, Tool, ToolContext

_BUDGET = 16_000
"""Characters for the descriptions of all groups."""
_MOST = 256
"""Groups that are described at all; the others can be named all the same."""
_LONGEST_NAME = 80

_DESCRIPTION = (
    "Choose the tool groups that you need now. Each argument switches one group on (true) or off "
    "(false, or left out): every call sets the final state of all groups at once. The answer "
    "names the groups that are then active and says how to use them well; follow it."
)
_WORDS = {"true": True, "false": False}


class GroupTool(Tool):
    """The tool as it is for the groups of one catalog; it works once it is at a desk."""

    name = META_TOOL
    _desk: BuiltinContext

    def __init__(self, catalog: Catalog) -> None:
        self.annotations = SAME_CONVERSATION
        groups = [group for name, group in catalog.groups.items() if name != BASIC_GROUP]
        usable = [group for group in groups if group.is_available]
        missing = [group for group in groups if not group.is_available]
        self.description = "\n\n".join([_DESCRIPTION, *_remarks(usable, missing)])
        length = _BUDGET // max(1, min(len(usable), _MOST))
        properties = {
            group.name: {"type": "boolean", "description": shorten(_said_of(group), length)}
            for group in usable[:_MOST]
        }
        self.parameters = {
            "type": "object",
            "properties": properties,
            "additionalProperties": {"type": "boolean"} if len(usable) > _MOST else False,
        }

    def at(self, desk: BuiltinContext) -> "GroupTool":
        """Return a copy that works for one conversation."""
        made = copy(self)
        made._desk = desk  # noqa: SLF001
        return made

    @property
    def wants_context(self) -> bool:
        """Whether it is to be told the context of its call: it has no use for it."""
        return False

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is to be switched on and off. Raises `ArgumentError` or `ToolError`."""
        wanted = {name: _switch(value) for name, value in arguments.items() if value is not None}
        odd = [name for name, value in wanted.items() if value is None]
        if odd:
            raise ArgumentError(self.name, [ArgumentFault(n, "must be true or false") for n in odd])
        groups = self._desk.catalog.groups
        faults = (_fault(name, bool(value), groups) for name, value in wanted.items())
        if told := [fault for fault in faults if fault]:
            raise ToolError(" ".join([*told, "Nothing was changed."]))
        return wanted

    def bind(self, arguments: Mapping[str, Any], _context: ToolContext) -> Callable[[], Any]:
        """Return what switches the groups, after everything was checked."""
        return partial(self.execute, **arguments)

    async def execute(self, /, **groups: bool) -> str:
        """Make the groups that are true the only active ones, and tell which are active now."""
        conversation, catalog = self._desk.conversation, self._desk.catalog
        chosen = [name for name, wanted in groups.items() if wanted]
        conversation.activation = conversation.activation.only(chosen, catalog.groups)
        active = conversation.active_in(catalog)
        if not active:
            return "No tool group is active; only the tools that are always there are."
        told = f"Active tool groups: {', '.join(group.name for group in active)}."
        notes = conversation.notes_in_answer(active, catalog)
        return f"{told}\n\n{notes}" if notes else told


def group_tool(catalog: Catalog) -> GroupTool | None:
    """Return the tool for the groups of a catalog; `None` if there is nothing to choose."""
    return GroupTool(catalog) if len(catalog.groups) > 1 else None


def _remarks(usable: list[GroupEntry], missing: list[GroupEntry]) -> list[str]:
    remarks = []
    if (left := len(usable) - _MOST) > 0:
        remarks.append(f"{left} more groups can be named, too, but are not described here.")
    if missing:
        told = ", ".join(f"{group.name} ({unavailable_reason(group)})" for group in missing)
        remarks.append(shorten(f"Unavailable: {told}.", _BUDGET // 4))
    return remarks


def _said_of(group: GroupEntry) -> str:
    if said := one_line(group.description):
        return said
    if group.tools:
        return f"Tools: {', '.join(group.tools)}."
    return f"Skills: {', '.join(group.skills)}." if group.skills else f"Tool group {group.name}."


def _switch(value: Any) -> bool | None:
    """Read a switch as models write it; `None` if it is none."""
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _fault(name: str, wanted: bool, groups: Mapping[str, GroupEntry]) -> str:
    """Say why a group cannot be switched so, or `""` if it can."""
    group = groups.get(name)
    if group is None:
        name = shorten(one_line(name), _LONGEST_NAME)
        near = near_misses(name, groups)
        meant = f" Did you mean {', '.join(near)}?" if near else ""
        return f"There is no tool group {name!r}.{meant}"
    if name == BASIC_GROUP and not wanted:
        return f"Tool group {BASIC_GROUP!r} is always active."
    if wanted and not group.is_available:
        return f"Tool group {name!r} is unavailable: {unavailable_reason(group)}."
    return ""
