"""Serve one session of the host over MCP, in the host's own process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

from satchel.errors import ToolError
from satchel.mcp.call_handler import result_of
from satchel.mcp.changing_server import UNCACHED, ChangingServer
from satchel.mcp.own_task import run_in_task
from satchel.mcp.result_encoding import encode_result
from satchel.mcp.served_client import connection_of
from satchel.mcp.tool_client import Context, InputNeededError, ToolClient, is_stateless
from satchel.satchel import Satchel
from satchel.session import Session
from satchel.tools import ToolCall, failure


class SessionServer:
    """Serves the tools of one session, which the host and its clients share.

    `server` is a server of the official SDK: run it with any of its transports, or give it to a
    client or framework in this process. All clients see and switch the same groups. Each list of
    tools is a new step of the session; the prompt is in the instructions of the handshake.
    """

    def __init__(self, app: Satchel, session: Session, *, name: str = "satchel") -> None:
        self._app, self._session = app, session
        self._bus = InMemorySubscriptionBus()
        self._connections: set[Connection] = set()
        self._shown: list[dict[str, Any]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.server: Server[None] = ChangingServer(
            name,
            version=version("satchel"),
            instructions=session.prompt() or None,
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.server.greeting = session.prompt

    @asynccontextmanager
    async def _lifespan(self, _server: Server[Any]) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def heard(_change: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._compare)

        undo = self._app.subscribe(heard)
        try:
            yield
        finally:
            undo()
            for task in self._tasks:
                task.cancel()

    async def _list_tools(self, ctx: Context, _params: Any) -> Any:
        if not is_stateless(ctx):
            connection = connection_of(ctx)
            if connection not in self._connections:
                self._connections.add(connection)
                connection.exit_stack.callback(self._connections.discard, connection)
        self._shown = self._session.schemas("mcp")
        return {"tools": self._shown, **UNCACHED}

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        call = ToolCall(name=params.name, arguments=params.arguments or {}, id=str(ctx.request_id))
        client = ToolClient(ctx, "info", params)
        try:
            result = await run_in_task(result_of(self._session, call, client))
        except ToolError as problem:
            result = failure("tool_failed", str(problem), call.id)
        finally:
            self._compare()
        match client.outcome:
            case InputNeededError(result=questions) if result.is_error:
                return questions
            case MCPError() as outcome if result.is_error:
                raise outcome
        return encode_result(result, is_stateless=is_stateless(ctx))

    def _compare(self) -> None:
        """Tell the clients if the list of tools is not the one that they saw."""
        if self._shown is None or not self._session.changes():
            return
        self._shown = None  # told once; they ask for the list when they want it
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for connection in tuple(self._connections):
            with suppress(Exception):  # it ended
                await connection.send_tool_list_changed()
