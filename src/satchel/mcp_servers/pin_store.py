"""Pin the definitions of a server's tools, and detect when they change.

A server can change the description of a tool after a person approved it, and a changed command or
address can put another server in its place. So a tool that differs from its pin is held until it
is approved again. All tools are pinned when a server is first connected.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from hashlib import blake2b
from urllib.parse import urlsplit

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ConflictError, SatchelError
from satchel.files.file_reader import StampedPath, UnreadableFileError, UnusableFileError
from satchel.files.state_files import StateFile, names_in
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.definition_diff import differences
from satchel.mcp_servers.server_addresses import RemoteServer, StdioServer
from satchel.mcp_servers.tool_definitions import ToolDefinition, definition_of
from satchel.text import one_line, shorten
from satchel.tools.empty_mapping import NOTHING

_PINS = "mcp-pins"
_MAX_APPROVALS = 10
"""Approvals kept of one tool; several programs may share them."""


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Where a server is declared: its pins are stored under this, however it is reached."""

    source: str = ""
    """The plugin or file that declares it, or `""` for code."""
    name: str = ""
    """Its name there."""
    reached: str = field(default="", repr=False)
    """Its command or address as declared: variables are not filled in."""


@dataclass(frozen=True, slots=True)
class ToolDrift:
    """How a tool differs from what was approved."""

    why: str
    digest: str
    """Of the tool's current definition, and how its server is reached."""
    change: str = ""
    """All changes, line by line."""


@dataclass(frozen=True, slots=True)
class PinVerdict:
    """The tools that differ from their pins, by name."""

    drift: Mapping[str, ToolDrift] = NOTHING
    problem: Diagnostic | None = None
    stamp: StampedPath | None = None
    """The stamp of the pin file."""


@dataclass(frozen=True, slots=True)
class PinRecord:
    """The content of a pin file."""

    ways: tuple[str, ...] = ()
    """Digests of how the server was reached at each approval."""
    tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each tool its definitions by the digests of their approvals, the newest last."""

    def has(self, tool: str, digest: str) -> bool:
        """Return whether this version of a tool was approved."""
        return digest in self.tools.get(tool, NOTHING)

    def text(self, tool: str) -> str:
        """Return the last approved definition of a tool, or `""` if only its digest is known."""
        return next((text for text in [*self.tools.get(tool, {}).values()][::-1] if text), "")


class PinStore:
    """The pins of one server, in one file."""

    def __init__(self, folder: str, name: str, origin: ServerOrigin, file: str = "") -> None:
        """Use the file of the origin, or the one with the name `file`."""
        self._name, self._reached_digest = name, _digest(origin.reached)
        mark = f"-{_digest(origin.source)}" if origin.source else ""
        self._file = StateFile(folder, _PINS, file or f"{origin.name or name}{mark}.json")
        self._last: tuple[StampedPath, tuple[ToolDefinition, ...], PinVerdict] | None = None
        self._unsaved: PinRecord | None = None
        """The first pins, while the file cannot be written."""

    def compare(self, tools: tuple[ToolDefinition, ...]) -> PinVerdict:
        """Compare tools with their pins; without a pin file, pin them all."""
        stamp = self._file.stamp
        last = self._last
        if last is not None and last[0] == stamp and last[1] is tools:
            return last[2]
        is_passing = False
        try:
            pinned, diagnostic = self._pinned(tools)
        except UnreadableFileError as problem:
            is_passing = not isinstance(problem, UnusableFileError)
            drift: Mapping[str, ToolDrift] = {
                tool.name: ToolDrift("cannot be compared", self._digest_of(tool), tool.text)
                for tool in tools
            }
            diagnostic = self._unreadable(problem)
        else:
            drift = self._drifts(pinned, tools) if pinned else NOTHING
        stamp = self._file.stamp
        verdict = PinVerdict(drift, diagnostic, stamp)
        self._last = None if is_passing else (stamp, tools, verdict)
        return verdict

    def _pinned(
        self, tools: tuple[ToolDefinition, ...]
    ) -> tuple[PinRecord | None, Diagnostic | None]:
        """Return the pins, and why they cannot be written; without a pin file, pin all tools."""
        pinned = _read(self._file.read())
        if pinned is not None or not tools:
            return pinned, None
        first = self._unsaved or PinRecord(
            (self._reached_digest,),
            {tool.name: {self._digest_of(tool): tool.text} for tool in tools},
        )
        try:
            pinned = self._change(lambda now: first if now is None else now)
        except SatchelError as problem:
            self._unsaved = first  # so that this process still detects changes
            return first, self._unreadable(problem)
        self._unsaved = None
        return pinned, None

    def known_tools(self) -> tuple[ToolDefinition, ...]:
        """Return the last approved definitions, not checked; none without a readable pin file."""
        try:
            pinned = _read(self._file.read())
        except UnreadableFileError:
            return ()
        texts = (pinned.text(tool) for tool in pinned.tools) if pinned else ()
        definitions = (definition_of(text) for text in texts if text)
        return tuple(filter(None, definitions))

    def approve(
        self,
        tools: tuple[ToolDefinition, ...],
        names: Collection[str] = (),
        digests: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Pin the current definitions of all or some tools. Return those that were not pinned so.

        With `digests`, pin only the tools it names, and none if one has another digest by now.
        Without `names`, drop the pins of tools that no longer exist. Raises `SatchelError`.
        """
        expected = digests or NOTHING
        chosen = names or (expected if digests is not None else [tool.name for tool in tools])
        now = {tool.name: tool for tool in tools if tool.name in chosen}
        for name, digest in expected.items():
            if name not in now or self._digest_of(now[name]) != digest:
                raise ConflictError(
                    f"tool {name!r} changed after it was shown", fix="review it again"
                )
        approved: list[str] = []

        def change(pinned: PinRecord | None) -> PinRecord:
            pinned = pinned or PinRecord()
            present = {tool.name for tool in tools}
            kept = {
                name: approvals
                for name, approvals in pinned.tools.items()
                if names or name in present
            }
            approved.extend(sorted(pinned.tools.keys() - kept.keys()))
            for name, tool in sorted(now.items()):
                digest = self._digest_of(tool)
                if not pinned.has(name, digest) or not pinned.text(name):
                    approved.append(name)
                # Only the newest keeps its definition.
                older = [one for one in kept.get(name, NOTHING) if one != digest]
                older = older[1 - _MAX_APPROVALS :]
                kept[name] = {**dict.fromkeys(older, ""), digest: tool.text}
            return PinRecord(tuple(dict.fromkeys((*pinned.ways, self._reached_digest))), kept)

        self._record(change, reset=True)
        return tuple(sorted(approved))

    def accept(self, tool: str, digest: str) -> None:
        """Approve a version of a tool by its digest, without connecting to the server.

        Raises `SatchelError`, also if the server was never connected.
        """

        def change(pinned: PinRecord | None) -> PinRecord:
            if pinned is None:
                raise ConflictError(
                    f"MCP server {self._name!r} has no pins",
                    fix="use the same --project, --plugins or --state as where it was listed",
                )
            if pinned.has(tool, digest):
                return pinned
            approvals = pinned.tools.get(tool, {})
            return PinRecord(pinned.ways, {**pinned.tools, tool: {**approvals, digest: ""}})

        self._record(change)

    def _record(
        self, change: Callable[[PinRecord | None], PinRecord], *, reset: bool = False
    ) -> None:
        try:
            self._change(change, reset=reset)
        except UnreadableFileError as problem:
            diagnostic = self._unreadable(problem)
            raise SatchelError(diagnostic.message, where=diagnostic.where.path) from None

    def _digest_of(self, tool: ToolDefinition) -> str:
        return _digest(self._reached_digest, tool.text, size=16)

    def _drifts(self, pinned: PinRecord, tools: Iterable[ToolDefinition]) -> dict[str, ToolDrift]:
        tools = tuple(tools)
        gone = pinned.tools.keys() - {tool.name for tool in tools}
        former_names = {
            _without_name(pinned.text(name)): name for name in sorted(gone, reverse=True)
        }
        and_reached = (
            "" if self._reached_digest in pinned.ways else "; the command or address changed, too"
        )
        drift = {}
        for tool in tools:
            digest = self._digest_of(tool)
            if pinned.has(tool.name, digest):
                continue
            before = pinned.text(tool.name)
            change = tool.text
            if tool.name not in pinned.tools:
                old = former_names.get(_without_name(tool.text))
                why = f"was called {shorten(one_line(old), 100)!r} before" if old else "is new"
                why += and_reached
            elif before == tool.text:
                why, change = "is unchanged, but the command or address of its server changed", ""
            else:
                short, change = differences(before, tool.text)
                why = f"changed{and_reached}: {short}"
            drift[tool.name] = ToolDrift(why, digest, change)
        return drift

    def _change(
        self, change: Callable[[PinRecord | None], PinRecord], *, reset: bool = False
    ) -> PinRecord:
        """Change the pin file under its lock; with `reset`, replace an unreadable one."""
        records: list[PinRecord] = []

        def changed(data: bytes | None) -> bytes:
            try:
                pinned = _read(data)
            except UnusableFileError:
                if not reset:
                    raise
                pinned = None
            records.append(change(pinned))
            tools = {name: {**definition} for name, definition in sorted(records[0].tools.items())}
            reached = [*records[0].ways]
            value = {"version": 2, "server": self._name, "reached": reached, "tools": tools}
            return json.dumps(value, indent=1).encode()

        self._file.change(changed)
        return records[0]

    def _unreadable(self, problem: Exception) -> Diagnostic:
        reason = problem.message if isinstance(problem, SatchelError) else str(problem)
        return make_diagnostic(
            "mcp-pins-unreadable",
            Where(self._file.path),
            f"cannot read or write the pins of MCP server {self._name!r}: {reason}",
            f"restore or remove the file, then run 'satchel mcp approve {self._name}'"
            if isinstance(problem, UnusableFileError)
            else "try again later; if it stays, let yourself read and write the file",
        )


def _read(data: bytes | None) -> PinRecord | None:
    if data is None:
        return None
    try:
        value = json.loads(data)
        tools = {
            str(name): {str(digest): str(text) for digest, text in approvals.items()}
            for name, approvals in value["tools"].items()
        }
        return PinRecord(tuple(map(str, value["reached"])), tools)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableFileError("it is not a valid pin file") from None


def how_reached(server: RemoteServer) -> str:
    """Return the command or address of a server, without secrets in a URL."""
    if isinstance(server, StdioServer):
        return json.dumps([server.command, *server.args, server.cwd])
    parts = urlsplit(server.shown or server.url)
    place = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"{parts.scheme}://{place}" if parts.scheme else place


def origin_in_code(server: RemoteServer, name: str | None, identity: str | None) -> ServerOrigin:
    """Return where a server is declared that the host names in code.

    A name that the host gives is the declaration's. Without one, the command or address is: many
    servers have one default name. `identity` stands for a command of which a part varies.
    """
    if identity is not None:
        return ServerOrigin(f"identity {identity}", name or server.name, f"identity {identity}")
    reached = how_reached(server)
    return ServerOrigin("" if name is not None else f"code {reached}", name or server.name, reached)


def pin_files(folder: str, name: str) -> list[str]:
    """Return the names of the files with pins of servers of this name."""
    return [
        file
        for file in names_in(os.path.join(folder, _PINS))
        if file == f"{name}.json" or re.fullmatch(f"{re.escape(name)}-[0-9a-f]{{12}}[.]json", file)
    ]


def _without_name(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(' "name": '))


def _digest(*texts: str, size: int = 6) -> str:
    return blake2b("\0".join(texts).encode(errors="replace"), digest_size=size).hexdigest()
