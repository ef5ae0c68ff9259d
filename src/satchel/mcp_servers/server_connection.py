"""One connection to a server, in whichever era of the protocol it speaks."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from satchel.errors import ToolError
from satchel.mcp_servers.backoff import Backoff
from satchel.mcp_servers.call_outcome import decode_answer, with_fewer_blocks
from satchel.mcp_servers.listed_skills import SkillListing, listed_skills, offers_skills
from satchel.mcp_servers.resource_reader import read_resource
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer, describe_server
from satchel.mcp_servers.server_transports import StderrBuffer, open_transport
from satchel.mcp_servers.tool_definitions import ToolDefinition, ToolList
from satchel.mcp_servers.tool_lister import ToolLister, too_late, with_sound_tools
from satchel.settings import Limits
from satchel.text import one_line, shorten
from satchel.tools import ToolResult
from satchel.tools.callables import in_thread

if TYPE_CHECKING:
    from mcp import Client

Era = Literal["auto", "legacy"]
"""How to begin: ask what the server speaks, or with the handshake that all older ones know."""

OnProgress = Callable[[Mapping[str, Any]], None]
"""Hears how far a call is."""

_GOODBYE = 5.0
"""Seconds that a server has to let go of us."""

_MESSAGE_LENGTH = 500


class ServerConnection:
    """A server that is connected to."""

    def __init__(self, client: "Client", name: str, server: RemoteServer, limits: Limits) -> None:
        from pydantic import TypeAdapter

        self._client, self._name, self._server, self._limits = client, name, server, limits
        self._lister = ToolLister(client, server, limits)
        self._answers: TypeAdapter[Any] = TypeAdapter(dict[str, Any])

    @property
    def era(self) -> Era:
        """How to begin with this server the next time."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return "auto" if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"

    @property
    def version(self) -> str:
        """The version that the server says it is, or `""`."""
        info = self._client.server_info
        return shorten(one_line(info.version), 100) if info and info.version else ""

    async def listing(self) -> ToolList:
        """Return all tools that the server offers.

        Raises what tells that the connection is of no more use.
        """
        return await self._lister.listing()

    async def skills(self) -> SkillListing:
        """Return all skills that the server lists; none if it has no such extension."""
        if isinstance(self._server, WorkerServer) or not offers_skills(self._client):
            return SkillListing()
        return await listed_skills(self._client, self._name, str(self._server), self._limits)

    async def read(self, uri: str) -> bytes | None:
        """Return what the server says that a resource holds, `None` for an answer that is none.

        Raises `ToolError` for what it refuses.
        """
        return await read_resource(self._client, uri, self._name)

    async def call(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> ToolResult:
        """Call a tool, and return what it answered.

        Raises `ToolError` for what the server refuses. Whoever cancels this has the server told.
        """
        from mcp import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            # A part of a result comes that way from a process of ours.
            said = message if isinstance(self._server, WorkerServer) else _brief(message)
            told = {"progress": progress, "total": total, "message": said}
            on_progress({key: value for key, value in told.items() if value is not None})

        params = CallToolRequestParams(name=tool.name, arguments=dict(arguments))
        try:
            # Not `call_tool`: it judges the answer by a schema of the server's, on this loop,
            # with an engine that hostile patterns can hold up for ever.
            raw = await self._client.session.send_request(
                CallToolRequest(params=params), self._answers, progress_callback=heard
            )
        except MCPError as problem:
            raise _refusal(problem, describe_server(self._server, self._name)) from None
        except ValueError:  # of pydantic, too: the answer is none
            raise ToolError(
                f"the server of {tool.name} gave an answer that is none; do not retry"
            ) from None
        # Not on the loop, on which all other servers are heard.
        result: ToolResult = await in_thread(partial(decode_answer, raw, tool))
        return result


def _brief(message: str | None) -> str | None:
    """Cut before it is looked at: it may be as long as a whole message of the protocol."""
    words = one_line((message or "")[: 2 * _MESSAGE_LENGTH])
    return shorten(words, _MESSAGE_LENGTH) or None


def _refusal(problem: Any, server: str) -> ToolError:
    """Say what became of a call that a server did not answer with a result."""
    from mcp_types import CONNECTION_CLOSED

    # Servers use the code for other things, too.
    if problem.code == CONNECTION_CLOSED and problem.message == "Connection closed":
        return connection_lost(server)
    told = shorten(one_line(problem.message), _MESSAGE_LENGTH)
    return ToolError(f"{server} refused the call: {told}")


def connection_lost(server: str) -> ToolError:
    """Return the error for a call of which nobody knows what became."""
    return ToolError(
        f"{server} went away during the call, which may or may not have been done; check "
        "before you try again"
    )


@asynccontextmanager
async def connect(
    name: str,
    server: RemoteServer,
    limits: Limits,
    *,
    era: Era = "auto",
    on_change: Callable[[], None] = lambda: None,
    on_end: Callable[[], None] = lambda: None,
    on_late: Callable[[], None] = lambda: None,
    tail: StderrBuffer | None = None,
) -> AsyncIterator[ServerConnection]:
    """Connect to a server, and keep it open until the block ends.

    `on_change` hears that its tools are others, `on_end` that nothing more comes from it, and
    `on_late` that it took longer than the limit, for which `SatchelError` is raised once all is
    closed, which may take a while. Raises whatever the way to it raises, too.
    """
    import anyio
    from mcp import Client
    from mcp_types import (
        Implementation,
        ResourceListChangedNotification,
        ToolListChangedNotification,
    )

    async def heard(message: Any) -> None:
        is_of_skills = isinstance(message, ResourceListChangedNotification)
        if isinstance(message, ToolListChangedNotification) or (
            is_of_skills and offers_skills(client)
        ):
            on_change()

    def look(received: Any) -> Any:
        if isinstance(server, WorkerServer):
            return received  # from our own process: as long as what a tool returned
        return with_sound_tools(with_fewer_blocks(received), version, limits.mcp_tools)

    def version() -> str:
        try:
            return client.protocol_version
        except RuntimeError:  # not agreed upon yet
            return ""

    client = Client(
        open_transport(
            server,
            tail or StderrBuffer(),
            limits.mcp_message,
            look=look,
            on_gap=on_change,
            on_end=on_end,
        ),
        mode=era,
        message_handler=heard,
        client_info=Implementation(name="satchel", version="0"),
        cache=None,
    )
    timer = asyncio.get_running_loop().call_later(limits.mcp_connect, on_late)
    outcome: BaseException | None = too_late("gave no answer", limits)
    # A scope around all: one that ends earlier than what it surrounds is an error.
    with (
        _ended(timer),
        anyio.CancelScope(deadline=anyio.current_time() + limits.mcp_connect) as scope,
    ):
        async with client, anyio.create_task_group() as listening:
            scope.deadline, outcome = math.inf, None
            timer.cancel()
            listening.start_soon(_listen, client, on_change)
            try:
                yield ServerConnection(client, name, server, limits)
            except BaseException as problem:
                outcome = problem
                raise
            finally:
                listening.cancel_scope.cancel()
                scope.deadline = anyio.current_time() + _GOODBYE
    if scope.cancelled_caught and outcome is not None:
        raise outcome


@contextmanager
def _ended(timer: asyncio.TimerHandle) -> Iterator[None]:
    try:
        yield
    finally:
        timer.cancel()


async def _listen(client: "Client", on_change: Callable[[], None]) -> None:
    """Hear of changes from a server of the newer era, which tells only those who ask."""
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    tools, resources = client.server_capabilities.tools, client.server_capabilities.resources
    of_tools = bool(tools and tools.list_changed)
    of_skills = bool(resources and resources.list_changed and offers_skills(client))
    if not (of_tools or of_skills):
        return
    pauses = Backoff()
    while True:
        try:
            async with client.listen(
                tools_list_changed=of_tools, resources_list_changed=of_skills
            ) as notices:
                on_change()  # what changed before it listened
                async for _ in notices:
                    on_change()
        except (ListenNotSupportedError, MCPError):
            return
        except SubscriptionLost:
            pass
        on_change()
        await asyncio.sleep(pauses.next())
