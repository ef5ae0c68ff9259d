"""The process of one plugin, which serves it to the host that started it."""

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.metadata import version
from pickle import loads
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from satchel.catalog import Supply, ToolSupply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.mcp.calling import answer
from satchel.mcp.stdio import claim_stdin, claim_stdout, serve_stdio
from satchel.plugins import fit, load_folder, started
from satchel.remote.listing import ABOUT
from satchel.runtime import begin, layers_for
from satchel.settings import Limits
from satchel.sources import Configuration, PluginFinding
from satchel.text import shorten
from satchel.tools import Tool, ToolCall, ToolContext, ToolResult
from satchel.tools.results import to_json
from satchel.workers import ERROR

Context = ServerRequestContext[Any, Any]

_PROGRESS_SHOWN = 2_000


def main() -> None:
    """Serve the plugin that the first line on stdin holds, until stdin ends."""
    stdin, stdout = claim_stdin(), claim_stdout()
    # It comes from the process that started this one, through a pipe that only they have.
    found, config, limits = loads(b64decode(stdin.readline()))  # noqa: S301
    _bound(limits.worker_memory)
    serving = Serving(found, config, limits)
    try:
        asyncio.run(serve_stdio(serving, stdin, stdout))
    finally:
        serving.end()


class Serving:
    """One plugin, served to the host."""

    def __init__(self, found: PluginFinding, config: Configuration, limits: Limits) -> None:
        assert found.manifest is not None
        self._limits = limits
        here = replace(found, manifest=replace(found.manifest, isolation="none"))
        supply = started(load_folder(here, (0,), limits), config)
        fitted = fit(supply, lambda _name, fields: replace(config, fields=fields), {}, None)
        fittings = fitted.fittings.values()
        self._supply = supply = replace(
            supply,
            tools=fitted.supply.tools,
            # With other values it may serve what it cannot serve now.
            flawed=supply.flawed or any(item.invalid for item in fittings),
            diagnostics=(
                *supply.diagnostics,
                *(item.problem for item in fittings if item.problem),
                *_left_out(supply),
            ),
        )
        offered = [tool for tool in supply.tools if tool.tool is not None and not tool.contract]
        self._tools = {tool.name: tool for tool in offered}
        versions = {tool.name: tool.version for tool in fitted.supply.tools}
        versions |= {item.raw.name: item.raw.version for item in fittings}
        self._about = {
            "tools": [
                _described(tool, tool.tool, versions[tool.name]) for tool in offered if tool.tool
            ],
            "groups": [asdict(group) for group in supply.groups],
            "skills": supply.skills,
            "sections": supply.sections,
            "failed": supply.failed,
            "flawed": supply.flawed,
            "withdrawn": supply.withdrawn,
            "diagnostics": [item.as_dict() for item in supply.diagnostics],
        }
        self.server: Server[None] = Server(
            "satchel-worker",
            version=version("satchel"),
            on_list_tools=self._list,
            on_call_tool=self._call,
            get_tool_input_schema=self._schema_of,
        )

    def end(self) -> None:
        """Run the shutdown of the plugin."""
        if self._supply.life is not None:
            self._supply.life.end()

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return tool.tool.parameters if tool and tool.tool else None

    async def _list(self, _ctx: Context, _params: types.PaginatedRequestParams | None) -> Any:
        return {
            "tools": [item.tool.to_schema("mcp") for item in self._tools.values() if item.tool],
            "_meta": {ABOUT: self._about},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        supply = self._tools.get(params.name)
        if supply is None or supply.tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
        call_id = str(ctx.request_id)
        call = ToolCall(
            params.name,
            dict(params.arguments or {}),
            call_id,
            supply.tool,
            self._groups_of(supply),
            ToolContext(tool=params.name, call_id=call_id),
        )
        layers = layers_for(self._supply.layers, call.name, call.groups)
        run = begin(call, supply.tool, self._limits, layers=layers)
        done = 0
        try:
            while not isinstance(item := await run.next(), ToolResult):
                done += 1
                said = shorten(item.text, _PROGRESS_SHOWN)
                await ctx.session.report_progress(done, None, said or None)
        finally:
            await run.close()
        return {**answer(item, is_stateless=True), "_meta": _meta_of(item)}

    def _groups_of(self, tool: ToolSupply) -> tuple[str, ...]:
        listed = (group.name for group in self._supply.groups if tool.name in group.tools)
        return tuple(dict.fromkeys((*tool.groups, *listed)))


def _described(supply: ToolSupply, tool: Tool, raw_version: str) -> dict[str, Any]:
    return {
        "name": supply.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "output": tool.output,
        "annotations": tool.annotations,
        "examples": tool.examples,
        "timeout": tool.timeout,
        "idempotent": tool.idempotent,
        "background": tool.background,
        "groups": supply.groups,
        "path": supply.path,
        "version": raw_version,
    }


def _meta_of(result: ToolResult) -> dict[str, Any]:
    meta: dict[str, Any] = {ERROR: result.error_code} if result.error_code else {}
    for key, value in result.metadata.items():
        with suppress(Exception):  # what cannot be written stays here
            to_json(value)
            meta[key] = value
    return meta


def _left_out(supply: Supply) -> list[Diagnostic]:
    """Tell what a plugin brings that cannot leave its process."""
    parts = {
        "its commands": supply.commands,
        "its prompts and resources for MCP": supply.offers,
        **{
            f"its tool {tool.name!r}, which has a contract,": tool.contract for tool in supply.tools
        },
    }
    return [
        report(
            "plugin-not-isolated",
            Where(supply.path),
            f"{what} cannot be reached in a process of its own; left out",
            "remove 'isolation: process' if its code may run in the process of the host",
        )
        for what, brought in parts.items()
        if brought
    ]


def _bound(memory: int) -> None:
    """Bound the memory of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    with suppress(OSError, ValueError):  # a lower bound was set by somebody else
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
