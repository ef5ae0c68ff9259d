"""Read the tool list of a server page by page, within the limits for untrusted servers."""

import asyncio
import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError, SatchelError
from satchel.mcp_servers.protocol_fields import FieldReader
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition, check_definition
from satchel.settings import MIB, Limits
from satchel.text import one_line, shorten
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from mcp import Client

ABOUT = "dev.satchel/plugin"
"""The `_meta` key of a tool list in which a plugin's process describes the plugin."""

WAIT = "dev.satchel/wait"
"""The `_meta` key of a list request: the seconds that it may wait for what is still starting.

A satchel that connects to a satchel asks for it, because the first list is what is pinned.
"""

_FAULT = "dev.satchel/fault"
"""The `_meta` key that marks an invalid tool, with the reason."""

_REPORT = "report it to the maintainer of the server"
_TASK_ONLY = "it can only be called as a task of the protocol, which Satchel does not do"
_MAX_PAGES = 1_000
_MAX_DIAGNOSTICS = 20
"""Diagnostics about invalid tools of one server."""

_Checked = ToolDefinition | str
"""A checked definition, or why it is invalid."""


class ToolLister:
    """Lists the tools of a server; checks only those that changed since the last time."""

    def __init__(self, client: "Client", server: RemoteServer, limits: Limits) -> None:
        self._client, self._server, self._limits = client, server, limits
        self._checked: Mapping[str, tuple[ToolDefinition, _Checked]] = NOTHING

    async def listing(self) -> ServerSnapshot:
        """Return all tools that the server offers. Raises an error if the connection is broken."""
        if self._client.server_capabilities.tools is None:
            return ServerSnapshot()
        pages = _Pages(self._checked, self._limits)
        try:
            async with asyncio.timeout(self._limits.mcp_connect):
                ttl, about = await self._read(pages)
        except TimeoutError:
            seconds = self._limits.mcp_connect
            raise SatchelError(
                f"did not list its tools within {seconds:g} s (limit mcp_connect)"
            ) from None
        finally:
            pages.is_cancelled = True
        self._checked = pages.checked
        return ServerSnapshot(
            tools=tuple(sorted(pages.valid.values(), key=lambda tool: tool.name)),
            diagnostics=tuple(self._diagnostics(pages)),
            ttl=None if ttl == math.inf else ttl,
            about=about,
        )

    async def _read(self, pages: "_Pages") -> tuple[float, Mapping[str, Any]]:
        """Read all pages. Return the `ttl` in seconds, and what a plugin's process sends."""
        cursor, cursors, ttl = None, set[str](), math.inf
        about: Mapping[str, Any] = NOTHING
        meta: Any = {WAIT: self._limits.mcp_connect / 2}
        for _ in range(_MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor, meta=meta)
            ttl = min(ttl, page.ttl_ms / 1000 or math.inf)
            if isinstance(self._server, WorkerServer):
                about = (page.meta or {}).get(ABOUT, NOTHING)
            # In a thread: this is the event loop of all servers.
            await in_thread(partial(pages.add, page.tools))
            cursor = page.next_cursor
            if cursor is None or cursor in cursors or pages.limit:
                break
            cursors.add(cursor)
        return ttl, about

    def _diagnostics(self, pages: "_Pages") -> list[Diagnostic]:
        where = Where(str(self._server))
        diagnostics = [
            invalid_tool(where, name, why) for name, why in pages.invalid[:_MAX_DIAGNOSTICS]
        ]
        if further := len(pages.invalid) - len(diagnostics):
            message = f"{further:,} more of its tools are left out"
            diagnostics.append(make_diagnostic("mcp-tool-invalid", where, message, _REPORT))
        if pages.limit:
            diagnostics.append(
                make_diagnostic(
                    "mcp-too-many-tools",
                    where,
                    f"it offers more than {pages.limit}; the rest is left out",
                    f"raise the limit, or {_REPORT}",
                )
            )
        return diagnostics


def invalid_tool(where: Where, name: str, why: str) -> Diagnostic:
    """Return the diagnostic for a tool that cannot be used."""
    message = f"tool {shorten(one_line(name), 100)!r} is left out: {shorten(one_line(why), 300)}"
    return make_diagnostic("mcp-tool-invalid", where, message, _REPORT)


class _Pages:
    def __init__(
        self, previous: Mapping[str, tuple[ToolDefinition, _Checked]], limits: Limits
    ) -> None:
        self._previous, self._limits = previous, limits
        self._fields = FieldReader(limits)
        self._count = self._size = 0
        self.valid: dict[str, ToolDefinition] = {}
        self.checked: dict[str, tuple[ToolDefinition, _Checked]] = {}
        self.invalid: list[tuple[str, str]] = []
        self.limit = ""
        """The limit that was reached, or `""`."""
        self.is_cancelled = False

    def add(self, tools: list[Any]) -> None:
        """Check and add the tools of one page, within the limits."""
        limits = self._limits
        for tool in tools:
            if self.is_cancelled:
                return
            if self._count >= limits.mcp_tools:
                self.limit = f"{limits.mcp_tools} tools (limit mcp_tools)"
                return
            self._count += 1
            if fault := (tool.meta or {}).get(_FAULT):
                self.invalid.append((tool.name, str(fault)))
                continue
            if tool.execution is not None and tool.execution.task_support == "required":
                self.invalid.append((tool.name, _TASK_ONLY))
                continue
            received = _definition(tool, self._fields)
            if received.name in self.checked:
                self.invalid.append((received.name, "the list has an earlier tool of that name"))
                continue
            checked = self._check(received)
            self.checked[received.name] = received, checked
            if isinstance(checked, str):
                self.invalid.append((received.name, checked))
                continue
            self._size += len(checked.text)
            if self._size > limits.mcp_listing:
                self.limit = f"{limits.mcp_listing / MIB:g} MiB of definitions (limit mcp_listing)"
                return
            self.valid[received.name] = checked

    def _check(self, received: ToolDefinition) -> _Checked:
        previous = self._previous.get(received.name)
        try:
            if previous is not None and previous[0] == received:
                return previous[1]
        except RecursionError:  # nested too deep to compare
            pass
        try:
            return check_definition(received, self._limits)
        except DefinitionError as problem:
            return problem.message


def _definition(tool: Any, fields: FieldReader) -> ToolDefinition:
    hints = tool.annotations
    annotations = hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
    if tool.title:  # as the protocol has it, it wins over that of the annotations
        annotations["title"] = tool.title
    return ToolDefinition(
        name=tool.name,
        description=tool.description or "",
        parameters=tool.input_schema,
        output=tool.output_schema,
        annotations=annotations or None,
        mcp_fields=fields.read(
            type(tool), tool, used=("name", "description", "inputSchema", "outputSchema")
        ),
    )


def mark_invalid_tools(result: dict[str, Any], version: str, most: int) -> None:
    """Mark the invalid tools in a received result, if it is a page of a tool list.

    Otherwise the SDK rejects the whole page for one invalid tool. `version` is that of the
    protocol. Tools after the first `most` are dropped.
    """
    tools = result.get("tools")
    if not isinstance(tools, list):
        return
    from mcp_types.methods import SERVER_RESULTS
    from pydantic import ValidationError

    del tools[most + 1 :]  # one extra, so that the limit is reported
    page_type: Any = SERVER_RESULTS.get(("tools/list", version))
    try:
        if page_type is not None:
            page_type.model_validate(result, by_name=False)
    except ValidationError as problem:
        for error in problem.errors(include_url=False, include_context=False, include_input=False):
            match error["loc"]:
                case ("tools", int(at), *path):
                    why = ": ".join((".".join(map(str, path)) or "it", error["msg"]))
                    tools[at] = _marked(tools[at], why)


def _marked(tool: Any, why: str) -> dict[str, Any]:
    name = tool.get("name") if isinstance(tool, dict) else None
    name = name if isinstance(name, str) else "without a name"
    return {"name": name, "inputSchema": {"type": "object"}, "_meta": {_FAULT: why}}
