"""`search_tools` and `search_skills`: the model finds what it was not shown."""

from collections.abc import Iterator
from functools import cache

from satchel.errors import ToolError
from satchel.session.builtin_context import HIDDEN, SAME_CONVERSATION, BuiltinContext
from satchel.text import one_line, shorten
from satchel.tools import FunctionTool

_MOST = 10
"""How many a search names."""
_LENGTH = 300
"""Characters of each description."""


def search_tools(_desk: BuiltinContext, words: str) -> str:
    """Find tools by what they do, also those of tool groups that are not active.

    The answer says how to get at each.

    Args:
        words: What the tool is to do, in a few words.
    """
    return _answer("tool", words, list(_tools(_desk, words)))


def search_skills(_desk: BuiltinContext, words: str) -> str:
    """Find skills, which are instructions for particular tasks, by what they are about.

    The answer says how to get at each.

    Args:
        words: What the task is about, in a few words.
    """
    return _answer("skill", words, list(_skills(_desk, words)))


@cache
def search_tool(kind: str) -> FunctionTool:
    """Return the tool that searches for a kind of things: `tool` or `skill`."""
    search = search_tools if kind == "tool" else search_skills
    return FunctionTool(search, presets={HIDDEN: None}, annotations=SAME_CONVERSATION)


def _tools(desk: BuiltinContext, words: str) -> Iterator[str]:
    # So many more as are not for this conversation.
    hidden = len(desk.conversation.shared.catalog.tools) - len(desk.catalog.tools)
    for hit in desk.conversation.shared.search(words, "tool", _MOST + max(hidden, 0)):
        entry = desk.catalog.tools.get(hit.name)
        if entry is None:  # it is not in the generation that the model was shown
            continue
        if entry.name in desk.view.by_name:
            how = "active: call it."
        else:
            how = f"in tool group {desk.group_of(entry)!r}, {desk.how_to_use(entry.groups)}"
        yield f"{entry.name}: {_short(entry.description)} ({how})"


def _skills(desk: BuiltinContext, words: str) -> Iterator[str]:
    shown = {skill.name for skill in desk.view.model_skills}
    # So many more as are not for the model.
    hidden = sum(not entry.is_for_model for entry in desk.catalog.skills.values())
    for hit in desk.conversation.shared.search(words, "skill", _MOST + hidden):
        entry = desk.catalog.skills.get(hit.name)
        if entry is None or not entry.is_for_model:
            continue
        if entry.server and not desk.conversation.options.skill_tools:
            continue
        if entry.name not in shown:
            how = f"in tool group {desk.group_of(entry)!r}, {desk.how_to_use(entry.groups)}"
        elif desk.conversation.options.skill_tools:
            how = f"call load_skill with name {entry.name!r}."
        else:
            how = f"read {entry.path}/SKILL.md."
        yield f"{entry.name}: {_short(entry.description)} ({how})"


def _answer(kind: str, words: str, found: list[str]) -> str:
    if not words.strip():
        raise ToolError(f"Say in a few words what the {kind} is for.")
    if not found:
        return f"No {kind} was found. Try other words, or go on without."
    return "\n".join(f"- {line}" for line in found[:_MOST])


def _short(description: str) -> str:
    return shorten(one_line(description), _LENGTH)
