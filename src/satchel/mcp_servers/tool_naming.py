"""What the tools of servers are called here."""

import re
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import chain, count

from satchel.names import SESSION_TOOLS, tool_name_fault
from satchel.tools.empty_mapping import NOTHING

_LONGEST = 64


def names_for(
    servers: Iterable[tuple[str, Collection[str]]],
    taken: Iterable[str],
    given: Mapping[str, Collection[str]] = NOTHING,
) -> dict[str, Mapping[str, str]]:
    """Return, for each server, what each of its tools is called.

    A name that somebody has already, or that sessions keep for themselves, gets the server's in
    front of it. `servers` come in the order in which they may choose. Those `given` to tools of a
    server before are for none that comes after it: what is meant for one must not go to another.
    """
    known, named = {*taken, *SESSION_TOOLS}, dict[str, Mapping[str, str]]()
    for server, tools in servers:
        # What needs no other name has the first choice.
        in_turn = sorted(tools, key=lambda tool: (bool(tool_name_fault(tool)), tool))
        own: dict[str, str] = {}
        for tool in in_turn:
            own[tool] = name = _free(server, tool, known)
            known.add(name)
        named[server] = own
        known.update(given.get(server, ()))
    return named


def _free(server: str, tool: str, taken: Collection[str]) -> str:
    for name in (fit_tool_name(tool), fit_tool_name(f"{server}_{tool}")):
        if name not in taken and not tool_name_fault(name):
            return name
    mark = blake2b(tool.encode(errors="replace"), digest_size=4).hexdigest()
    base = fit_tool_name(f"mcp_{server}_{tool}")
    marked = chain((f"_{mark}",), (f"_{mark}_{number}" for number in count(2)))
    names = (base[: _LONGEST - len(end)] + end for end in marked)
    return next(name for name in names if name not in taken)


def fit_tool_name(name: str) -> str:
    """Return a name in the letters that providers accept, if it is not too long."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
