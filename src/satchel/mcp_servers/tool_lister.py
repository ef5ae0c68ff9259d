"""What a server offers, page by page, within limits that hold whatever it sends."""

import asyncio
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError, SatchelError
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer
from satchel.mcp_servers.tool_definitions import ToolDefinition, ToolList, check_definition
from satchel.settings import MIB, Limits
from satchel.text import one_line, shorten
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from mcp import Client

ABOUT = "dev.satchel/plugin"
"""Where the process of a plugin tells of it, beside its tools."""

_FAULT = "dev.satchel/fault"
"""Where a tool that is none says why."""

_MOST_PAGES = 1_000
_MOST_TOLD = 20
"""How many unusable tools of one server are told of."""

_Judged = ToolDefinition | str
"""A tool as it can be shown, or why it cannot be used."""


class ToolLister:
    """Lists the tools of a server; what did not change since the last time is not judged anew."""

    def __init__(self, client: "Client", server: RemoteServer, limits: Limits) -> None:
        self._client, self._server, self._limits = client, server, limits
        self._known: Mapping[str, tuple[ToolDefinition, _Judged]] = NOTHING

    async def listing(self) -> ToolList:
        """Return all tools that the server offers.

        Raises what tells that the connection is of no more use.
        """
        if self._client.server_capabilities.tools is None:
            return ToolList()
        seen = _Seen(self._known, self._limits)
        try:
            async with asyncio.timeout(self._limits.mcp_connect):
                fresh, about = await self._read(seen)
        except TimeoutError:
            raise too_late("did not list its tools", self._limits) from None
        finally:
            seen.is_given_up = True
        self._known = seen.judged
        return ToolList(
            tools=tuple(sorted(seen.found.values(), key=lambda tool: tool.name)),
            diagnostics=tuple(self._told(seen)),
            fresh=None if fresh == math.inf else fresh,
            about=about,
        )

    async def _read(self, seen: "_Seen") -> tuple[float, Mapping[str, Any]]:
        """Read page after page; return how long that holds, and what is said beside it."""
        cursor, cursors, fresh = None, set[str](), math.inf
        about: Mapping[str, Any] = NOTHING
        for _ in range(_MOST_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            fresh = min(fresh, page.ttl_ms / 1000 or math.inf)
            if isinstance(self._server, WorkerServer):
                about = (page.meta or {}).get(ABOUT, NOTHING)
            # Not on the loop, on which all other servers are heard.
            await in_thread(partial(seen.take, page.tools))
            cursor = page.next_cursor
            if cursor is None or cursor in cursors or seen.limit:
                break
            cursors.add(cursor)
        return fresh, about

    def _told(self, seen: "_Seen") -> list[Diagnostic]:
        where = Where(str(self._server))
        told = [
            make_diagnostic(
                "mcp-tool-invalid",
                where,
                f"tool {shorten(one_line(name), 100)!r} is left out: {shorten(one_line(why), 300)}",
                "tell whoever runs the server",
            )
            for name, why in seen.unusable[:_MOST_TOLD]
        ]
        if more := len(seen.unusable) - len(told):
            told.append(
                make_diagnostic(
                    "mcp-tool-invalid",
                    where,
                    f"and {more:,} more of its tools are left out",
                    "tell whoever runs the server",
                )
            )
        if seen.limit:
            told.append(
                make_diagnostic(
                    "mcp-too-many-tools",
                    where,
                    f"it offers more than {seen.limit}; the rest is left out",
                    "tell whoever runs the server, or raise the limit",
                )
            )
        return told


class _Seen:
    """What was seen of one listing so far."""

    def __init__(self, known: Mapping[str, tuple[ToolDefinition, _Judged]], limits: Limits) -> None:
        self._known, self._limits = known, limits
        self._count = self._size = 0
        self.found: dict[str, ToolDefinition] = {}
        self.judged: dict[str, tuple[ToolDefinition, _Judged]] = {}
        self.unusable: list[tuple[str, str]] = []
        self.limit = ""
        """Which limit was reached, if one was."""
        self.is_given_up = False

    def take(self, tools: list[Any]) -> None:
        """Take the tools of one page, as far as the limits go."""
        limits = self._limits
        for tool in tools:
            if self.is_given_up:
                return
            if self._count >= limits.mcp_tools:
                self.limit = f"{limits.mcp_tools} tools (limit mcp_tools)"
                return
            self._count += 1
            if fault := (tool.meta or {}).get(_FAULT):
                self.unusable.append((tool.name, str(fault)))
                continue
            raw = _as_sent(tool)
            if raw.name in self.judged:
                self.unusable.append((raw.name, "another of that name comes before it"))
                continue
            judged = self._judged(raw)
            self.judged[raw.name] = raw, judged
            if isinstance(judged, str):
                self.unusable.append((raw.name, judged))
                continue
            self._size += len(judged.text)
            if self._size > limits.mcp_listing:
                self.limit = f"{limits.mcp_listing / MIB:g} MiB of definitions (limit mcp_listing)"
                return
            self.found[raw.name] = judged

    def _judged(self, raw: ToolDefinition) -> _Judged:
        before = self._known.get(raw.name)
        try:
            if before is not None and before[0] == raw:
                return before[1]
        except RecursionError:  # which only what is nested too deep raises
            pass
        try:
            return check_definition(raw, self._limits)
        except DefinitionError as problem:
            return problem.message


def _as_sent(tool: Any) -> ToolDefinition:
    hints = tool.annotations
    annotations = hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
    if tool.title:
        annotations.setdefault("title", tool.title)
    return ToolDefinition(
        name=tool.name,
        description=tool.description or "",
        parameters=tool.input_schema,
        output=tool.output_schema,
        annotations=annotations or None,
    )


def with_sound_tools(received: Any, version: Callable[[], str], most: int) -> Any:
    """Mark the tools of a page that are none; for a message as it comes in.

    Else the SDK takes one of them for a page that is none. `version` is that of the protocol, and
    no more than `most` tools are ever wanted.
    """
    from mcp_types.methods import SERVER_RESULTS
    from pydantic import ValidationError

    result = getattr(getattr(received, "message", None), "result", None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list):
        return received
    del tools[most + 1 :]  # one more tells that there are more
    kind: Any = SERVER_RESULTS.get(("tools/list", version()))
    try:
        if kind is not None:
            kind.model_validate(result, by_name=False)
    except ValidationError as problem:
        for error in problem.errors(include_url=False, include_context=False, include_input=False):
            match error["loc"]:
                case ("tools", int(at), *inside):
                    why = ": ".join((".".join(map(str, inside)) or "it", error["msg"]))
                    tools[at] = _unsound(tools[at], why)
    return received


def _unsound(tool: Any, why: str) -> dict[str, Any]:
    name = tool.get("name") if isinstance(tool, dict) else None
    name = name if isinstance(name, str) else "without a name"
    return {"name": name, "inputSchema": {"type": "object"}, "_meta": {_FAULT: why}}


def too_late(what: str, limits: Limits) -> SatchelError:
    """Make the error for what a server did not do in time."""
    return SatchelError(f"{what} within {limits.mcp_connect:g} s (limit mcp_connect)")
