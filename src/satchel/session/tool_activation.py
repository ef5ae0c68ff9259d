"""`activate_tools`: the tool by which the model activates single tools that a search found."""

from dataclasses import replace
from functools import cache

from satchel.errors import ConflictError, NotFoundError, ToolError
from satchel.session.builtin_context import HIDDEN, SAME_CONVERSATION, BuiltinContext
from satchel.session.session_state import require_usable_tool
from satchel.text import one_line, shorten
from satchel.tools import FunctionTool

_LONGEST_NAME = 80


def activate_tools(_context: BuiltinContext, names: list[str]) -> str:
    """Activate single tools that a search found, without the other tools of their groups.

    Every call sets the final list of these tools. Tools of active groups stay active.

    Args:
        names: The names of the tools, as the search shows them.
    """
    session_state, catalog = _context.session_state, _context.catalog
    groups: dict[str, None] = {}
    for name in names:
        try:
            entry = require_usable_tool(name, catalog)
        except NotFoundError as problem:
            near = f" Did you mean {', '.join(problem.near)}?" if problem.near else ""
            short = shorten(one_line(name), _LONGEST_NAME)
            raise ToolError(f"There is no tool {short!r}.{near} Nothing was changed.") from None
        except ConflictError as problem:
            raise ToolError(f"{problem.message}. Tell the user. Nothing was changed.") from None
        groups |= dict.fromkeys(group for group in entry.groups if group in catalog.groups)
    session_state.activation = replace(session_state.activation, tools=frozenset(names))
    if not names:
        return "No single tool is active; the tools of the active groups are left."
    answer = f"Active from the next step on: {', '.join(dict.fromkeys(names))}."
    inactive = [
        catalog.groups[name]
        for name in groups
        if not session_state.activation.is_active(catalog.groups[name])
    ]
    notes = session_state.notes_in_answer(inactive, catalog)
    return f"{answer}\n\n{notes}" if notes else answer


@cache
def activation_tool() -> FunctionTool:
    """Return the tool."""
    return FunctionTool(activate_tools, presets={HIDDEN: None}, annotations=SAME_CONVERSATION)
