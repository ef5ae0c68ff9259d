"""The page of MCP servers: state, log, pins, and tools that wait for approval."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from satchel.mcp_servers.remote_tool import RemoteTool
from satchel.names import require_known
from satchel.reports.printed_commands import completed
from satchel.reports.serializer import remote_tool_json, server_json
from satchel.server_registry import ServerState
from satchel.web.page_rendering import Page
from satchel.web.page_routes import text_of
from satchel.web.workbench import Workbench

_SOURCE = "mcp:"


def servers(workbench: Workbench, _request: Request) -> Page:
    """Return every declared server with its state and tools."""
    states = {state.name: state for state in workbench.app.mcp_server_states}
    declared = workbench.app.declared_mcp_servers
    record = {
        "servers": [
            {
                **server_json(name, item),
                **_state(states.get(name), workbench.options.source_options),
                "login": _login(workbench, states.get(name), name),
                "tools": _tools(workbench, name),
            }
            for name, item in declared.items()
        ]
    }
    return Page(template="servers.html", title="Servers", record=record, extra={})


def _state(state: ServerState | None, source_options: Sequence[str]) -> dict[str, Any]:
    if state is None:
        return {"state": "disabled", "outage": None, "log": ""}
    is_up = state.outage is None
    name = "ok" if is_up else "revoked" if state.is_known else "settling"
    outage = state.outage.as_dict() if state.outage else None
    if outage is not None:
        outage["fix"] = completed(outage["fix"], source_options)
    return {"state": name, "outage": outage, "log": state.log}


def _login(workbench: Workbench, state: ServerState | None, name: str) -> dict[str, Any]:
    """Return whether a server needs a login in a browser, and how far that is."""
    outage = state.outage if state else None
    is_needed = (
        outage is not None
        and outage.code == "mcp-login-needed"
        and outage.fix.startswith("satchel mcp login")
    )
    return {"is_needed": is_needed, **workbench.logins.record(name)}


def _tools(workbench: Workbench, server: str) -> list[dict[str, Any]]:
    """Return the tools of a server; those that differ from their pin with old and new."""
    return [
        {
            **remote_tool_json(entry),
            "why": drift.why if drift else "",
            "changes": _sides(drift.change) if drift else [],
        }
        for entry in workbench.catalog.all_tools
        if entry.source == f"{_SOURCE}{server}" and isinstance(tool := entry.tool, RemoteTool)
        for drift in [tool.drift]
    ]


def _sides(change: str) -> list[dict[str, str]]:
    """Return each changed part with its old and its new lines."""
    parts: list[dict[str, str]] = []
    for line in change.splitlines():
        if line.startswith("- ") and parts:
            parts[-1]["old"] += line[2:] + "\n"
        elif line.startswith("+ ") and parts:
            parts[-1]["new"] += line[2:] + "\n"
        else:
            parts.append({"part": line.removesuffix(":"), "old": "", "new": ""})
    return parts


async def approve(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Approve one tool of a server, if it still is what the page showed."""
    server, tool, digest = (text_of(fields, key) for key in ("server", "tool", "digest"))
    approved = await asyncio.to_thread(
        workbench.app.approve_mcp_tools, server, tool, digests={tool: digest}
    )
    workbench.wake()
    return {"server": server, "approved": list(approved)}


async def begin_login(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a login, and return the address that the user opens."""
    name = text_of(fields, "server")
    declared = workbench.app.declared_mcp_servers
    require_known("MCP server", name, declared)
    return {"server": name, "address": await workbench.logins.begin(name, declared[name].server)}


async def take_redirect(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Take the address where a browser on another machine ended."""
    workbench.logins.take(fields["server"], text_of(fields, "address"))
    return {}


async def cancel_login(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """End a login that waits."""
    workbench.logins.cancel(fields["server"])
    return {}
