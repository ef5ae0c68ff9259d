"""`tools/call`: a request becomes a call of a session, and its result becomes an answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from satchel.catalog.catalog_entries import Status
from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp.own_task import run_in_task
from satchel.mcp.result_encoding import encode_result
from satchel.mcp.served_client import ServedClient
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp.tool_client import KEY, Context, ToolClient, is_stateless
from satchel.mcp.view_cache import ClientView
from satchel.names import near_misses
from satchel.session.session import Session
from satchel.session.tool_resolver import unknown_tool
from satchel.text import shorten
from satchel.tools import Item, Text, ToolCall, ToolChunk, ToolContext, ToolResult, failure

_PROGRESS_SHOWN = 2_000
_LOADER, _READER = "load_skill", "read_skill_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call that a client asks for."""

    ctx: Context
    params: types.CallToolRequestParams
    client: ServedClient
    view: ClientView
    """What the client sees."""
    choice: ServedSelection
    hide: Callable[[str], str] | None
    """Removes what the client must not see from the results of built-in tools."""

    @property
    def is_skill_reading(self) -> bool:
        """Return whether the call is for a built-in tool that returns texts of a skill."""
        return self.params.name in {_LOADER, _READER} and not self.view.view.by_name.get(
            self.params.name
        )


async def call_tool(request: CallRequest) -> dict[str, Any]:
    """Run a tool for a client."""
    client, name = request.client, request.params.name
    if name not in request.view.schemas and not _can_explain(request):
        near = near_misses(name, request.view.schemas)
        raise MCPError(types.INVALID_PARAMS, unknown_tool(name, near, request.view.catalog))
    call = ToolCall(name=name, arguments=await _arguments(request), id=str(request.ctx.request_id))
    tool_client = ToolClient(request.ctx, client.level, request.params)
    try:
        result = await run_call(client.session, call, tool_client)
        if not client.mode.is_lasting:
            # The next request could not ask for the task, so this one waits for it.
            result = await client.session.finished(result)
    finally:
        if not client.mode.is_lasting:
            client.session.interrupt()
    tool_client.raise_outcome(result)
    if request.hide is not None and name not in request.view.view.by_name:
        result = _without_paths(result, request.hide)
    return encode_result(result, is_stateless=is_stateless(request.ctx))


async def run_call(session: Session, call: ToolCall, tool_client: ToolClient) -> ToolResult:
    """Run a tool in its own task, so that it cannot cancel the server's."""
    try:
        return await run_in_task(_result(session, call, tool_client))
    except ToolError as problem:
        return failure("tool_failed", str(problem), call.id)


async def _result(session: Session, call: ToolCall, tool_client: ToolClient) -> ToolResult:
    """Run a tool; send each part of a streamed result if the client wants progress."""
    context = ToolContext(metadata={KEY: tool_client})
    if not tool_client.wants_progress:
        return await session.call(call.name, call.arguments, call_id=call.id, context=context)
    stream = session.stream(call.name, call.arguments, call_id=call.id, context=context)
    has_progress = False
    async with aclosing(cast("AsyncGenerator[Item]", stream)):
        async for item in stream:
            if isinstance(item, ToolResult):
                return item
            if progress := _progress_of(item):
                has_progress = True
                await tool_client.progress(*progress)
            elif not has_progress:  # otherwise it is the result, after all progress
                await tool_client.advance(shorten(item.text, _PROGRESS_SHOWN))
    raise AssertionError("a stream ends with its result")


def _progress_of(item: ToolChunk) -> tuple[float, float | None, str] | None:
    """Return the numbers and the message of a remote tool's progress, or `None` for other parts."""
    progress = item.metadata.get("progress")
    if item.content or not isinstance(progress, Mapping) or "progress" not in progress:
        return None
    message = shorten(str(progress.get("message") or ""), _PROGRESS_SHOWN)
    return progress["progress"], progress.get("total"), message


async def _arguments(request: CallRequest) -> dict[str, Any]:
    """Return the arguments of a call, with `again` for the tools that read skills.

    One connection may serve several conversations, so this model may not have seen a skill that
    was shown before: `again` shows it in full. A session that lasts for one request starts without
    skills, so the skill is loaded here before one of its files is read.
    """
    arguments = dict(request.params.arguments or {})
    if not request.is_skill_reading:
        return arguments
    skill_name = arguments.get("skill")
    if not request.client.mode.is_lasting and request.params.name == _READER:
        for skill in request.view.view.model_skills:
            if skill.name == skill_name:
                # The call itself then reports why the skill cannot be loaded.
                with suppress(ToolError):
                    await asyncio.to_thread(request.client.session.load_skill, skill.name)
    return {**arguments, "again": True}


def _can_explain(request: CallRequest) -> bool:
    """Return whether the session can say how to activate a tool, or why it cannot be used."""
    name, view, can_switch = request.params.name, request.view, request.client.mode.can_switch
    return any(
        tool.name == name
        and request.choice.enables(*tool.selectors)
        and (can_switch or not view.active.isdisjoint(tool.groups))
        and (
            tool.state in {Status.REVOKED, Status.HELD, Status.FAILED}
            or (can_switch and name in view.catalog.tools)
        )
        for tool in view.catalog.all_tools
    )


def _without_paths(result: ToolResult, hide: Callable[[str], str]) -> ToolResult:
    content = (
        replace(block, text=hide(block.text)) if isinstance(block, Text) else block
        for block in result.content
    )
    return replace(result, content=tuple(content))
