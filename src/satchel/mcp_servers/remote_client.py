"""A client for one MCP server, for use without a satchel."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from satchel.errors import SatchelError, ToolError
from satchel.mcp_servers.remote_tool import RemoteTool
from satchel.mcp_servers.server_addresses import RemoteServer
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
from satchel.names import require_known
from satchel.settings import Limits
from satchel.tools.argument_reading import checked_arguments


class RemoteClient:
    """A client for one MCP server: `async with RemoteClient(server) as client`.

    It keeps one connection and reconnects when it breaks. With `stateless` it opens a connection
    for each call. A call takes at most `timeout` seconds, by default the limit `tool_call`.
    `Satchel.register_mcp_server` accepts it, too, entered or not.
    """

    def __init__(
        self,
        server: RemoteServer,
        *,
        stateless: bool = False,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.server, self.stateless, self.timeout = server, stateless, timeout
        self._limits = limits or Limits()
        self._pool: ServerPool | None = None
        self._handle: ServerHandle | None = None

    async def __aenter__(self) -> Self:
        if self._pool is not None:
            raise SatchelError("this client is open already", fix="create another one")
        self._pool = ServerPool(self._limits, lambda: None)
        self._handle = self._pool.add(
            ServerConfig(name=self.server.name, server=self.server, stateless=self.stateless)
        )
        try:
            # Longer than the limit: a server that hangs counts as failed only after it is ended.
            await asyncio.to_thread(self._handle.wait, self._handle.start_seconds * 2)
        except BaseException:
            await self.__aexit__()
            raise
        if (outage := self._handle.snapshot.outage) is not None:
            await self.__aexit__()
            raise SatchelError(outage.message, where=str(self.server), fix=outage.fix)
        return self

    async def __aexit__(self, *_: object) -> None:
        pool, self._pool, self._handle = self._pool, None, None
        if pool is not None:
            await asyncio.shield(asyncio.to_thread(pool.close))

    async def list_tools(self) -> tuple[RemoteTool, ...]:
        """Return the tools that the server offers now; none while it is down."""
        if (handle := self._handle) is None:
            raise SatchelError("this client is not open", fix="use it in `async with`")
        snapshot = handle.snapshot
        timeout = self._limits.tool_call if self.timeout is None else self.timeout
        return tuple(
            RemoteTool(definition, handle.call, timeout=timeout)
            for definition in (snapshot.tools if snapshot.is_up else ())
        )

    async def get_callable_function(
        self, name: str, *, wrap_tool_result: bool = True
    ) -> Callable[..., Awaitable[Any]]:
        """Return a tool as an async function with keyword arguments.

        The function returns a `ToolResult`. Without `wrap_tool_result` it returns the structured
        value, or the text if there is none, and raises `ToolError` for an error of the tool.
        Raises `NotFoundError`.
        """
        tools = {tool.name: tool for tool in await self.list_tools()}
        require_known("tool", name, tools)
        return _Function(tools[name], wrap=wrap_tool_result)


class _Function:
    def __init__(self, tool: RemoteTool, *, wrap: bool) -> None:
        self.__name__, self.__doc__ = tool.name, tool.description
        self.name, self.description = tool.name, tool.description
        self.json_schema = tool.parameters
        self.tool, self._wrap = tool, wrap

    async def __call__(self, **arguments: Any) -> Any:
        tool = self.tool
        checked = checked_arguments(tool, arguments)
        try:
            async with asyncio.timeout(tool.timeout):
                result = await tool.run(checked)
        except TimeoutError:
            raise ToolError(f"{tool.name} did not answer within {tool.timeout:g} s") from None
        if self._wrap:
            return result
        if result.is_error:
            raise ToolError(result.text)
        return result.text if result.structured is None else result.structured
