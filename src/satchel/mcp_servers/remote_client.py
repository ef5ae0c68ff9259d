"""A client of one server, for use without a satchel."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from satchel.errors import NotFoundError, SatchelError, ToolError
from satchel.mcp_servers.remote_tool import RemoteTool
from satchel.mcp_servers.server_addresses import RemoteServer
from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
from satchel.names import near_misses
from satchel.settings import Limits
from satchel.tools import ToolResult
from satchel.tools.argument_reading import read_arguments


class RemoteClient:
    """Talks to one server: `async with RemoteClient(server) as client`.

    It keeps one connection, and mends it when it breaks; with `stateless` it makes one for each
    call. A call takes no longer than `timeout`, or the limit `tool_call`.
    `Satchel.register_mcp_server` takes it, too, whether or not it is entered.
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
        self._fleet: ServerPool | None = None
        self._member: ServerHandle | None = None

    async def __aenter__(self) -> Self:
        if self._fleet is not None:
            raise SatchelError("this client is entered already", fix="make another")
        self._fleet = ServerPool(self._limits, lambda: None)
        self._member = self._fleet.add(self.server.name, self.server, stateless=self.stateless)
        try:
            # Longer than the server has: one that hangs is given up only once it has been ended.
            await asyncio.to_thread(self._member.wait, self._limits.mcp_connect * 2)
        except BaseException:
            await self.__aexit__()
            raise
        if (trouble := self._member.offer.trouble) is not None:
            await self.__aexit__()
            raise SatchelError(trouble.message, where=str(self.server), fix=trouble.fix)
        return self

    async def __aexit__(self, *_: object) -> None:
        fleet, self._fleet, self._member = self._fleet, None, None
        if fleet is not None:
            await asyncio.shield(asyncio.to_thread(fleet.close))

    async def list_tools(self) -> tuple[RemoteTool, ...]:
        """Return the tools that the server offers at the moment; none while it is down."""
        member = self._entered()
        timeout = self._limits.tool_call if self.timeout is None else self.timeout
        return tuple(
            RemoteTool(definition, member.call, timeout=timeout)
            for definition in (member.offer.listing.tools if member.offer.is_up else ())
        )

    async def get_callable_function(
        self, name: str, *, wrap_tool_result: bool = True
    ) -> Callable[..., Awaitable[Any]]:
        """Return a tool as a function of named arguments.

        It returns a `ToolResult`; without `wrap_tool_result` the value of that, or else its text,
        and what the tool calls an error is raised as `ToolError`. Raises `NotFoundError`.
        """
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise NotFoundError("tool", name, near_misses(name, tools))
        return _Function(tools[name], wrap=wrap_tool_result)

    def _entered(self) -> ServerHandle:
        if self._member is None:
            raise SatchelError("this client is not entered", fix="use it in `async with`")
        return self._member


class _Function:
    """A remote tool as a function."""

    def __init__(self, tool: RemoteTool, *, wrap: bool) -> None:
        self.__name__, self.__doc__ = tool.name, tool.description
        self.tool, self._wrap = tool, wrap

    async def __call__(self, **arguments: Any) -> Any:
        tool = self.tool
        checked = tool.check(read_arguments(tool.name, arguments))
        try:
            async with asyncio.timeout(tool.timeout):
                result = await tool.run(checked)
        except TimeoutError:
            raise ToolError(f"{tool.name} did not answer within {tool.timeout:g} s") from None
        return result if self._wrap else _unwrapped(result)


def _unwrapped(result: ToolResult) -> Any:
    if result.is_error:
        raise ToolError(result.text)
    return result.text if result.structured is None else result.structured
