"""Pins: what a server said of its tools at first sight, against what it says now.

A server can change what a tool says it does after somebody has looked at it, and whoever says how
it is reached can put another in its place. So what is not as it was first seen is held until
somebody approves it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ConflictError, SatchelError
from satchel.mcp_servers.definition_diff import differences
from satchel.mcp_servers.server_addresses import RemoteServer, StdioServer
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.sources.file_reader import StampedPath, UnreadableFileError
from satchel.sources.state_files import StateFile
from satchel.text import one_line, shorten
from satchel.tools.empty_mapping import NOTHING

_MOST_APPROVED = 10
"""How many approvals of one tool are remembered; several programs may share them."""


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Whose a server is: its pins are kept by that, however it is reached."""

    source: str = ""
    """The plugin or file that names it, or `""` for code."""
    name: str = ""
    """What it is called there."""
    reached: str = field(default="", repr=False)
    """How it is reached, as it is written there: variables are not filled in."""


@dataclass(frozen=True, slots=True)
class ToolDrift:
    """In what a tool is not as it was approved."""

    why: str
    digest: str
    """Names the tool as it is now, and how its server is reached."""
    change: str = ""
    """All that changed, line by line."""


@dataclass(frozen=True, slots=True)
class PinVerdict:
    """What is not as it was first seen, and why, by tool."""

    odd: Mapping[str, ToolDrift] = NOTHING
    problem: Diagnostic | None = None
    stamp: StampedPath | None = None
    """That of the file in which the pins stand."""


@dataclass(frozen=True, slots=True)
class PinRecord:
    """What is known of a server."""

    ways: tuple[str, ...] = ()
    """Digests of how it was reached when something was approved."""
    tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each tool what was said of it by the digest of an approval, the newest last."""

    def has(self, tool: str, digest: str) -> bool:
        """Tell whether that was approved."""
        return digest in self.tools.get(tool, NOTHING)

    def text(self, tool: str) -> str:
        """Return what was last said of a tool when it was approved, as far as that is known."""
        return next((text for text in [*self.tools.get(tool, {}).values()][::-1] if text), "")


class PinStore:
    """The pins of one server, in a file of their own."""

    def __init__(self, folder: str, name: str, origin: ServerOrigin) -> None:
        self._name, self._way = name, _digest(origin.reached)
        mark = f"-{_digest(origin.source)}" if origin.source else ""
        self._file = StateFile(folder, "mcp-pins", f"{origin.name or name}{mark}.json")
        self._known: tuple[StampedPath, tuple[ToolDefinition, ...], PinVerdict] | None = None
        self._unkept: PinRecord | None = None
        """What was said at first sight, while it cannot be written down."""

    def judged(self, tools: tuple[ToolDefinition, ...]) -> PinVerdict:
        """Return what of these tools is held; at first sight, pin them all."""
        stamp = self._file.stamp
        known = self._known
        if known is not None and known[0] == stamp and known[1] is tools:
            return known[2]
        try:
            pinned, problem = self._pinned(tools)
        except UnreadableFileError as trouble:
            odd = {
                tool.name: ToolDrift("cannot be compared", self._digest_of(tool), tool.text)
                for tool in tools
            }
            found = PinVerdict(odd, self._told(trouble))
        else:
            found = PinVerdict(self._compared(pinned, tools) if pinned else NOTHING, problem)
        stamp = self._file.stamp
        found = PinVerdict(found.odd, found.problem, stamp)
        self._known = stamp, tools, found
        return found

    def _pinned(
        self, tools: tuple[ToolDefinition, ...]
    ) -> tuple[PinRecord | None, Diagnostic | None]:
        """Return what is pinned, and why that cannot be kept; at first sight, pin all."""
        pinned = _read(self._file.read())
        if pinned is not None or not tools:
            return pinned, None
        first = self._unkept or self._all(tools)
        try:
            pinned = self._change(lambda now: first if now is None else now)
        except SatchelError as problem:
            self._unkept = first  # so that this process, at least, sees what changes
            return first, self._told(problem)
        self._unkept = None
        return pinned, None

    def approve(
        self,
        tools: tuple[ToolDefinition, ...],
        names: Collection[str] = (),
        digests: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Pin tools as they are now, all or some, and return which were not so before.

        With `digests` only what those name, and nothing if a tool is another by now. What is
        pinned and gone is forgotten, if all are meant. Raises `SatchelError`.
        """
        wanted = digests or NOTHING
        meant = names or (wanted if digests is not None else [tool.name for tool in tools])
        now = {tool.name: tool for tool in tools if tool.name in meant}
        for name, digest in wanted.items():
            if name not in now or self._digest_of(now[name]) != digest:
                raise ConflictError(
                    f"tool {name!r} is not any more as it was shown", fix="look at it again"
                )
        approved: list[str] = []

        def change(pinned: PinRecord | None) -> PinRecord:
            pinned = pinned or PinRecord()
            here = {tool.name for tool in tools}
            kept = {name: known for name, known in pinned.tools.items() if names or name in here}
            approved.extend(sorted(pinned.tools.keys() - kept.keys()))
            for name, tool in sorted(now.items()):
                digest = self._digest_of(tool)
                if not pinned.has(name, digest) or not pinned.text(name):
                    approved.append(name)
                kept[name] = _with(kept.get(name, NOTHING), digest, tool.text)
            return PinRecord(tuple(dict.fromkeys((*pinned.ways, self._way))), kept)

        self._decide(change, anew=True)
        return tuple(sorted(approved))

    def accept(self, tool: str, digest: str) -> None:
        """Approve a tool for when it is what a digest names, without a look at it.

        Raises `SatchelError`, also if the server was never seen.
        """

        def change(pinned: PinRecord | None) -> PinRecord:
            if pinned is None:
                raise ConflictError(
                    f"nothing is remembered of MCP server {self._name!r}",
                    fix="say --project, --plugins or --state as where it was listed",
                )
            if pinned.has(tool, digest):
                return pinned
            known = pinned.tools.get(tool, {})
            return PinRecord(pinned.ways, {**pinned.tools, tool: {**known, digest: ""}})

        self._decide(change)

    def _decide(
        self, change: Callable[[PinRecord | None], PinRecord], *, anew: bool = False
    ) -> None:
        try:
            self._change(change, anew=anew)
        except UnreadableFileError as problem:
            told = self._told(problem)
            raise SatchelError(told.message, where=told.where.path) from None

    def _all(self, tools: Iterable[ToolDefinition]) -> PinRecord:
        return PinRecord(
            (self._way,), {tool.name: {self._digest_of(tool): tool.text} for tool in tools}
        )

    def _digest_of(self, tool: ToolDefinition) -> str:
        return _digest(self._way, tool.text, size=16)

    def _compared(self, pinned: PinRecord, tools: Iterable[ToolDefinition]) -> dict[str, ToolDrift]:
        """Return, for each tool that is not as it was approved, in what it differs."""
        tools = tuple(tools)
        gone = pinned.tools.keys() - {tool.name for tool in tools}
        formerly = {_nameless(pinned.text(name)): name for name in sorted(gone, reverse=True)}
        other = "" if self._way in pinned.ways else "; the command or address changed, too"
        odd = {}
        for tool in tools:
            digest = self._digest_of(tool)
            if pinned.has(tool.name, digest):
                continue
            before = pinned.text(tool.name)
            short, change = "", tool.text
            if tool.name not in pinned.tools:
                old = formerly.get(_nameless(tool.text))
                why = f"was called {_shown(old)} before{other}" if old else f"is new{other}"
            elif before == tool.text:
                why, change = "is as it was, but the command or address of its server changed", ""
            else:
                short, change = differences(before, tool.text)
                why = f"is not what it was{other}: {short}"
            odd[tool.name] = ToolDrift(why, digest, change)
        return odd

    def _change(
        self, change: Callable[[PinRecord | None], PinRecord], *, anew: bool = False
    ) -> PinRecord:
        """Change what is remembered, and nobody else meanwhile; `anew` if it cannot be read."""
        made: list[PinRecord] = []

        def changed(data: bytes | None) -> bytes:
            try:
                pinned = _read(data)
            except UnreadableFileError:
                if not anew:
                    raise
                pinned = None
            made.append(change(pinned))
            return self._written(made[0])

        self._file.change(changed)
        return made[0]

    def _written(self, pinned: PinRecord) -> bytes:
        value: dict[str, Any] = {
            "version": 2,
            "server": self._name,
            "reached": [*pinned.ways],
            "tools": {name: {**known} for name, known in sorted(pinned.tools.items())},
        }
        return json.dumps(value, indent=1).encode()

    def _told(self, problem: Exception) -> Diagnostic:
        said = problem.message if isinstance(problem, SatchelError) else str(problem)
        return make_diagnostic(
            "mcp-pins-unreadable",
            Where(self._file.path),
            f"the pins of MCP server {self._name!r} cannot be kept: {said}",
            f"mend the file or its folder, then 'satchel mcp approve {self._name}'",
        )


def _read(data: bytes | None) -> PinRecord | None:
    if data is None:
        return None
    try:
        value = json.loads(data)
        tools = {
            str(name): {str(digest): str(text) for digest, text in known.items()}
            for name, known in value["tools"].items()
        }
        return PinRecord(tuple(map(str, value["reached"])), tools)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnreadableFileError("it is no list of pins") from None


def _with(known: Mapping[str, str], digest: str, text: str) -> dict[str, str]:
    """Add an approval; only of the newest is remembered what was said."""
    older = [name for name in known if name != digest][1 - _MOST_APPROVED :]
    return {**dict.fromkeys(older, ""), digest: text}


def way_of(server: RemoteServer) -> str:
    """Return how a server is reached, but for what may be a secret in its address."""
    if isinstance(server, StdioServer):
        return json.dumps([server.command, *server.args, server.cwd])
    return str(server)


def _nameless(text: str) -> str:
    """Return what is said of a tool but for its name."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(' "name": '))


def _shown(name: str) -> str:
    return repr(shorten(one_line(name), 100))


def _digest(*texts: str, size: int = 6) -> str:
    return blake2b("\0".join(texts).encode(errors="replace"), digest_size=size).hexdigest()
