"""Pins: what a server said of its tools at first sight, against what it says now.

A server can change what a tool says it does after somebody has looked at it. So what is not as
it was first seen is held until somebody approves it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import blake2b
from typing import Any

from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import SatchelError
from satchel.remote.definitions import Definition
from satchel.remote.servers import RemoteServer, StdioServer
from satchel.sources.files import UnreadableFileError
from satchel.sources.state import Remembered, Stamp
from satchel.text import one_line, shorten
from satchel.tools.nothing import NOTHING

_DIFF_LENGTH = 1_000

Texts = Mapping[str, str]
"""What was said of each tool, by its name."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is not as it was first seen, and why, by tool."""

    odd: Mapping[str, str] = NOTHING
    problem: Diagnostic | None = None
    stamp: Stamp | None = None
    """That of the file in which the pins stand."""


class Pins:
    """The pins of one server, in a file of their own."""

    def __init__(self, folder: str, name: str, server: RemoteServer) -> None:
        self._name, self._server = name, server
        self._file = Remembered(folder, "mcp-pins", f"{name}-{_identity(server)}.json")
        self._known: tuple[Stamp, tuple[Definition, ...], Verdict] | None = None

    def judged(self, tools: tuple[Definition, ...]) -> Verdict:
        """Return what of these tools is held; at first sight, pin them all."""
        stamp = self._file.stamp
        known = self._known
        if known is not None and known[0] == stamp and known[1] is tools:
            return known[2]
        try:
            pinned = self._read()
            if pinned is None and tools:
                self._write(_texts(tools))
        except UnreadableFileError as problem:
            found = Verdict(dict.fromkeys(_texts(tools), "cannot be compared"), self._told(problem))
        except SatchelError as problem:
            found = Verdict(problem=self._told(problem))
        else:
            found = Verdict(NOTHING if pinned is None else compared(pinned, tools))
        stamp = self._file.stamp
        found = Verdict(found.odd, found.problem, stamp)
        self._known = stamp, tools, found
        return found

    def approve(
        self, tools: tuple[Definition, ...], is_meant: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """Pin tools as they are now, and return which were not so before. Raises `SatchelError`.

        What is pinned and gone is forgotten with them, if it is meant.
        """
        try:
            pinned = self._read() or {}
        except UnreadableFileError:
            pinned = {}
        now = _texts(tools)
        meant = {name for name in (*now, *pinned) if is_meant(name)}
        kept = {name: text for name, text in pinned.items() if name not in meant}
        approved = {name: text for name, text in now.items() if name in meant}
        self._write(kept | approved)
        return tuple(sorted(n for n in meant if pinned.get(n) != approved.get(n)))

    def _read(self) -> dict[str, str] | None:
        data = self._file.read()
        if data is None:
            return None
        try:
            tools = json.loads(data)["tools"]
            return {str(name): str(text) for name, text in tools.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnreadableFileError("it is no list of pins") from None

    def _write(self, texts: Texts) -> None:
        value: dict[str, Any] = {"version": 1, "server": str(self._server), "tools": dict(texts)}
        self._file.write(json.dumps(value, indent=1, sort_keys=True).encode())

    def _told(self, problem: Exception) -> Diagnostic:
        said = problem.message if isinstance(problem, SatchelError) else str(problem)
        return report(
            "mcp-pins-unreadable",
            Where(self._file.path),
            f"the pins of MCP server {self._name!r} cannot be kept: {said}",
            f"mend or remove the file, then 'satchel mcp approve {self._name}'",
        )


def compared(pinned: Texts, tools: Iterable[Definition]) -> dict[str, str]:
    """Return, for each tool that is not as it was pinned, in what it differs."""
    tools = tuple(tools)
    gone = pinned.keys() - {tool.name for tool in tools}
    formerly = {_nameless(pinned[name]): name for name in sorted(gone, reverse=True)}
    odd = {}
    for tool in tools:
        before = pinned.get(tool.name)
        if before is None:
            old = formerly.get(_nameless(tool.text))
            odd[tool.name] = f"was called {_shown(old)} before" if old else "is new"
        elif before != tool.text:
            odd[tool.name] = f"is not what it was: {_difference(before, tool.text)}"
    return odd


def _difference(before: str, now: str) -> str:
    lines = unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[:3] not in {"---", "+++"} and line[:2] != "@@"]
    return shorten(" | ".join(one_line(line) for line in changed), _DIFF_LENGTH)


def _nameless(text: str) -> str:
    """Return what is said of a tool but for its name."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(' "name": '))


def _shown(name: str) -> str:
    return repr(shorten(one_line(name), 100))


def _texts(tools: Iterable[Definition]) -> dict[str, str]:
    return {tool.name: tool.text for tool in tools}


def _identity(server: RemoteServer) -> str:
    """Return what tells a server from another that somebody gives the same name."""
    parts = (
        (server.command, *server.args, server.cwd or "")
        if isinstance(server, StdioServer)
        else (server.url,)
    )
    return blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()
