"""Choose unique names for the tools of servers."""

import re
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import chain, count

from satchel.names import reads_like_session_tool, tool_name_fault
from satchel.tools.empty_mapping import NOTHING

_MAX_LENGTH = 64


def names_for(
    servers: Mapping[str, Mapping[str, str]],
    taken: Iterable[str],
    reserved_names: Mapping[str, Collection[str]] = NOTHING,
) -> dict[str, Mapping[str, str]]:
    """Return for each server a mapping from its own tool names to the names used here.

    `servers` have the names that their tools should have. A name that is taken, or reads like a
    session's, gets the server's name as a prefix. Servers choose in their order.
    `reserved_names` are the names that a server had before. They stay reserved for it: a call
    that is meant for one server must not reach another.
    """
    taken_names, named = {*taken}, dict[str, Mapping[str, str]]()
    for server, tools in servers.items():
        # Valid names choose first.
        ordered = sorted((bool(tool_name_fault(name)), tool, name) for tool, name in tools.items())
        tool_names: dict[str, str] = {}
        for _, tool, name in ordered:
            tool_names[tool] = name = _unique_name(server, name, taken_names)  # noqa: PLW2901
            taken_names.add(name)
        named[server] = tool_names
        taken_names.update(reserved_names.get(server, ()))
    return named


def _unique_name(server: str, tool: str, taken: Collection[str]) -> str:
    for name in (fit_tool_name(tool), fit_tool_name(f"{server}_{tool}")):
        if not (name in taken or reads_like_session_tool(name) or tool_name_fault(name)):
            return name
    digest = blake2b(tool.encode(errors="replace"), digest_size=4).hexdigest()
    base = fit_tool_name(f"mcp_{server}_{tool}")
    marked = chain((f"_{digest}",), (f"_{digest}_{number}" for number in count(2)))
    names = (base[: _MAX_LENGTH - len(end)] + end for end in marked)
    return next(name for name in names if name not in taken)


def fit_tool_name(name: str) -> str:
    """Replace the characters that model APIs do not accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
