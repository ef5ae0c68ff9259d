"""`search_tools` and `search_skills`: the tools by which the model finds what is not listed."""

from collections.abc import Iterator
from functools import cache

from satchel.errors import ToolError
from satchel.search.search_documents import matching_inner_skills
from satchel.session.builtin_context import HIDDEN, SAME_CONVERSATION, BuiltinContext
from satchel.text import one_line, shorten
from satchel.tools import FunctionTool

_MAX_HITS = 10
_MAX_DESCRIPTION = 300
"""In characters."""


def search_tools(_context: BuiltinContext, words: str) -> str:
    """Find tools by what they do, also in tool groups that are not active.

    The answer says how to use each one.

    Args:
        words: What the tool should do, in a few words.
    """
    return _answer("tool", words, list(_tools(_context, words)))


def search_skills(_context: BuiltinContext, words: str) -> str:
    """Find skills, which are instructions for particular tasks, by their subject.

    The answer says how to use each one.

    Args:
        words: What the task is about, in a few words.
    """
    return _answer("skill", words, list(_skills(_context, words)))


@cache
def search_tool(name: str) -> FunctionTool:
    """Return `search_tools` or `search_skills`."""
    search = search_tools if name == "search_tools" else search_skills
    return FunctionTool(search, presets={HIDDEN: None}, annotations=SAME_CONVERSATION)


def _tools(context: BuiltinContext, words: str) -> Iterator[str]:
    # The index also has tools that this session does not see.
    hidden = len(context.session_state.shared.catalog.tools) - len(context.catalog.tools)
    for hit in context.session_state.shared.search(words, "tool", _MAX_HITS + max(hidden, 0)):
        entry = context.catalog.tools.get(hit.name)
        if entry is None:  # not in the catalog that the model saw
            continue
        if entry.name in context.view.by_name and entry.name not in context.view.deferred:
            hint = "active: call it."
        else:
            hint = f"in tool group {context.group_of(entry)!r}, {context.how_to_use_tool(entry)}"
        yield f"{entry.name}: {_short(entry.description)} ({hint})"


def _skills(context: BuiltinContext, words: str) -> Iterator[str]:
    shown = {skill.name for skill in context.view.model_skills}
    # The index also has skills that are hidden from the model.
    hidden = len(context.session_state.shared.catalog.skills) - len(context.catalog.skills)
    hidden = max(hidden, 0) + sum(not item.is_for_model for item in context.catalog.skills.values())
    for hit in context.session_state.shared.search(words, "skill", _MAX_HITS + hidden):
        entry = context.catalog.skills.get(hit.name)
        if entry is None or not entry.is_for_model:
            continue
        if not entry.access.has_folder and not context.session_state.options.skill_tools:
            continue
        if entry.name not in shown:
            hint = f"in tool group {context.group_of(entry)!r}, {context.how_to_use(entry.groups)}"
        elif context.session_state.options.skill_tools:
            hint = f"call load_skill with name {entry.name!r}."
        else:
            hint = f"read {entry.path}/SKILL.md."
        names = ", ".join(matching_inner_skills(entry, words))
        inside = f" It contains {_short(names)}." if names else ""
        yield f"{entry.name}: {_short(entry.description)}{inside} ({hint})"


def _answer(kind: str, words: str, lines: list[str]) -> str:
    if not words.strip():
        raise ToolError(f"Say in a few words what the {kind} is for.")
    if not lines:
        return f"No {kind} was found. Try other words, or continue without one."
    return "\n".join(f"- {line}" for line in lines[:_MAX_HITS])


def _short(description: str) -> str:
    return shorten(one_line(description), _MAX_DESCRIPTION)
