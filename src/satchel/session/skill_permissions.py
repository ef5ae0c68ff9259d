"""Refuse the tools that the loaded skills do not allow, for `session(allowed_tools="enforce")`.

A skill restricts the session while it is loaded and names `allowed-tools`. Several such skills
allow what any of them allows. The session's own tools stay, but for `run_skill_script`.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from satchel.names import SESSION_TOOLS
from satchel.runtime.stream_opening import opened
from satchel.session.tool_patterns import FILE_TOOLS, WantedCall, allows, conditions
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, failure
from satchel.tools.argument_reading import read_arguments

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import ToolEntry
    from satchel.runtime.middleware_chain import Handler, Middleware
    from satchel.session.session_state import SessionState

_SCRIPTS = "run_skill_script"
_MOST_SHOWN = 300
_HINT = (
    "For a condition in parentheses, pass one text argument only: one plain command, or an address "
    "for domain:. If the tool needs more texts, tell the user to allow it without a condition. "
)


def permission_middleware(session_state: SessionState, entry: ToolEntry | None) -> Middleware:
    """Return middleware for one tool; `entry` is `None` for one of the session's own."""

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        if message := _refusal(session_state, entry, call):
            yield failure("not_allowed", message, call.id or None)
            return
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    return middleware


def restricting_skills(session_state: SessionState) -> list[str]:
    """Return the names of the loaded skills that name `allowed-tools`."""
    return [
        skill.name
        for skill in session_state.loaded
        if skill.is_restricting
        or ((now := session_state.entry_of(skill)) and now.manifest and now.manifest.is_restricting)
    ]


def allowed_remark(patterns: tuple[str, ...]) -> str:
    """Return what the model reads when it loads a skill that restricts the session."""
    tools = _listed(patterns) or "those of the session itself"
    return f"While this skill is loaded, only these tools may be called: {tools}."


def _refusal(session_state: SessionState, entry: ToolEntry | None, call: ToolCall) -> str:
    if entry is None and call.name in SESSION_TOOLS and call.name != _SCRIPTS:
        return ""
    skills = restricting_skills(session_state)
    if not skills:
        return ""
    patterns, request = session_state.preapproved, _wanted(call, entry)
    if allows(patterns, request):
        return ""
    hint = _HINT if conditions(patterns, request.names) else ""
    names = ", ".join(map(repr, map(one_line, skills[:5])))
    tools = _listed(patterns) or "no other tool"
    return (
        f"{shorten(one_line(call.name), 64)} is not allowed in this way while the loaded skills "
        f"({names}) restrict the tools to: {tools}. {hint}Continue with these, and do not retry."
    )


def _wanted(call: ToolCall, entry: ToolEntry | None) -> WantedCall:
    arguments = _arguments(call)
    names = {call.name}
    tool = call.tool
    if tool is not None:
        names.add(tool.name)
    if entry is not None and entry.source.startswith("mcp:"):
        server = entry.source.removeprefix("mcp:")
        own = (tool.own_name if tool else "") or call.name
        # A server's name alone stands for all of its tools.
        names |= {f"mcp__{server}__{own}", f"mcp__{server}", f"{server}:{own}"}
    if call.name == _SCRIPTS:
        arguments = {"command": _command_of(arguments)}
    folder = (
        tool.injected.get("base_directory") if tool and not FILE_TOOLS.isdisjoint(names) else None
    )
    folder = None if folder is None else str(folder)
    return WantedCall(names=frozenset(names), arguments=arguments, folder=folder)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        return dict(read_arguments(call.name, call.arguments))
    except Exception:  # the call itself reports what is wrong with them
        return {}


def _command_of(arguments: dict[str, Any]) -> str:
    """Return the script with its arguments as a command line, as an author would write it."""
    args = arguments.get("args")
    words = [arguments.get("script", ""), *(args if isinstance(args, list) else ())]
    return shlex.join(map(str, words))


def _listed(patterns: tuple[str, ...]) -> str:
    return shorten(", ".join(map(one_line, patterns)), _MOST_SHOWN)
