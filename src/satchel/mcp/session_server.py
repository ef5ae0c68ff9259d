"""Serve one session of the host over MCP, in the host's own process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from satchel.mcp.call_handler import run_call
from satchel.mcp.changing_server import UNCACHED, ChangingServer
from satchel.mcp.result_encoding import encode_result
from satchel.mcp.tool_client import (
    Context,
    ToolClient,
    connection_of,
    is_stateless,
    returning_questions,
)
from satchel.satchel import Satchel
from satchel.session.session import Session
from satchel.task_set import TaskSet
from satchel.tools import ToolCall
from satchel.watch_thread import calling_on_catalog


class SessionServer:
    """Serves the tools of one session, which the host and its clients share.

    `server` is a server of the official SDK: run it with any of its transports, or pass it to a
    client or framework in this process. All clients see and switch the same groups. Each list of
    tools is a new step of the session. The handshake returns the prompt as instructions.
    """

    def __init__(self, app: Satchel, session: Session, *, name: str = "satchel") -> None:
        self._app, self._session = app, session
        self._bus = InMemorySubscriptionBus()
        self._connections: set[Connection] = set()
        self._is_listed = False
        """Whether the clients have the newest list, as far as is known."""
        self._tasks = TaskSet()
        self.server: Server[None] = ChangingServer(
            name,
            version=version("satchel"),
            greeting=lambda _method: session.prompt(),
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    @asynccontextmanager
    async def _lifespan(self, _server: Server[Any]) -> AsyncIterator[None]:
        with calling_on_catalog(self._app.subscribe_catalogs, self._compare):
            try:
                yield
            finally:
                self._tasks.cancel()

    async def _list_tools(self, ctx: Context, _params: Any) -> Any:
        if not is_stateless(ctx):
            connection = connection_of(ctx)
            if connection not in self._connections:
                self._connections.add(connection)
                connection.exit_stack.callback(self._connections.discard, connection)
        self._is_listed = True
        return {"tools": self._session.schemas("mcp"), **UNCACHED}

    @returning_questions
    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        call = ToolCall(name=params.name, arguments=params.arguments or {}, id=str(ctx.request_id))
        client = ToolClient(ctx, "info", params)
        try:
            result = await run_call(self._session, call, client)
        finally:
            self._compare()
        client.raise_outcome(result)
        return encode_result(result, is_stateless=is_stateless(ctx))

    def _compare(self) -> None:
        """Notify the clients once if the session has changed since the last list."""
        if not self._is_listed or not self._session.changes():
            return
        self._is_listed = False
        self._tasks.start(self._notify())

    async def _notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for connection in tuple(self._connections):
            with suppress(Exception):  # it ended
                await connection.send_tool_list_changed()
