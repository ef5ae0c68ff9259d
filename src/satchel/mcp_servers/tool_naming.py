"""Choose unique names for the tools of servers."""

import re
from collections.abc import Collection, Mapping
from hashlib import blake2b
from itertools import chain, count

from satchel.lazy_dataclass import dataclass
from satchel.names import reads_like_session_tool, tool_name_fault
from satchel.tools.empty_mapping import NOTHING

_MAX_LENGTH = 64


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of a server's tools here, by their names there."""

    names: Mapping[str, str]
    owners: Mapping[str, str]
    """For each tool that could not have its name, who has it; `""` if no one can."""


def names_for(
    servers: Mapping[str, Mapping[str, str]],
    taken: Mapping[str, str],
    reserved_names: Mapping[str, Collection[str]] = NOTHING,
    owners_here: Mapping[str, str] = NOTHING,
) -> dict[str, ToolNames]:
    """Return for each server the names of its tools.

    `servers` have the names that their tools should have, and `taken` the owners of names. A name
    that is taken, or reads like a session's, gets the server's name as a prefix. `owners_here` are
    the servers that have a name already; of other names, servers choose in their order.
    `reserved_names` are the names that a server had before. They stay reserved for it: a call that
    is meant for one server must not reach another.
    """
    holders = {name: f"MCP server {server!r}" for name, server in owners_here.items()} | {**taken}
    named = dict[str, ToolNames]()
    for server, tools in servers.items():
        holder = f"MCP server {server!r}"
        names: dict[str, str] = {}
        owners: dict[str, str] = {}
        used = {name for name, other in holders.items() if other != holder}
        # Valid names choose first.
        ordered = sorted((bool(tool_name_fault(name)), tool, name) for tool, name in tools.items())
        for _, tool, preferred in ordered:
            fitted = fit_tool_name(preferred)
            names[tool] = name = _unique_name(server, preferred, used)
            if name != preferred:
                owners[tool] = "" if name == fitted else _owner(fitted, holders)
            holders[name] = holder
            used.add(name)
        named[server] = ToolNames(names, owners)
        holders = {**dict.fromkeys(reserved_names.get(server, ()), holder), **holders}
    return named


def _owner(name: str, holders: Mapping[str, str]) -> str:
    return holders.get(name) or ("every session" if reads_like_session_tool(name) else "")


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
