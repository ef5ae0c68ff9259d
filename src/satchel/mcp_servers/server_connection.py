"""One connection to a server, in the older or the newer protocol."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from satchel.diagnostics import Where
from satchel.errors import ToolError
from satchel.mcp_servers.call_outcome import (
    decode_response,
    invalid_response,
    truncate_blocks,
)
from satchel.mcp_servers.client_callbacks import (
    Caller,
    ClientCallbacks,
    RunningCallers,
    sdk_callbacks,
    send_answering,
)
from satchel.mcp_servers.connection_errors import (
    CannotAskError,
    SessionExpiredError,
    SlowStartError,
    StartLimit,
    is_connection_closed,
    is_expired,
    is_unreadable,
    unsent_question,
)
from satchel.mcp_servers.list_reader import reject_invalid_items
from satchel.mcp_servers.listed_skills import list_skills
from satchel.mcp_servers.resource_reader import bytes_of_resource
from satchel.mcp_servers.resource_subscriptions import ResourceSubscriptions, keep_listening
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer, describe_server
from satchel.mcp_servers.server_instructions import with_instructions
from satchel.mcp_servers.server_offers import list_offers
from satchel.mcp_servers.server_process import StderrBuffer
from satchel.mcp_servers.server_transports import HEADERS_META, open_transport
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition, joined
from satchel.mcp_servers.tool_lister import ToolLister
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.text import one_line, shorten
from satchel.tools import ToolResult
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from mcp import Client

ProtocolMode = Literal["auto", "legacy"]
"""How to connect: `auto` asks for the protocol version, `legacy` begins with the old handshake."""

OnProgress = Callable[[Mapping[str, Any]], None]
"""Is called with each progress notification of a call."""


_CLOSE_LIMIT = 5.0
"""Seconds that closing a connection may take."""

_MESSAGE_LENGTH = 500


class ServerConnection:
    """An open connection to a server."""

    def __init__(
        self,
        client: "Client",
        name: str,
        server: RemoteServer,
        limits: Limits,
        *,
        callbacks: ClientCallbacks,
        callers: RunningCallers,
    ) -> None:
        self._client, self._name, self._server, self._limits = client, name, server, limits
        self._callbacks, self.callers = callbacks, callers
        self._lister = ToolLister(client, server, limits)
        self.is_replaced = False
        """Whether new calls use another connection; this one closes when its last call ends."""
        self.has_ended = False
        """Whether the server sends nothing more."""

    @property
    def is_over(self) -> bool:
        """Return whether new calls cannot use it."""
        return self.has_ended or self.is_replaced

    @property
    def mode(self) -> ProtocolMode:
        """The mode in which to connect to this server the next time."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return "auto" if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"

    async def snapshot(self) -> ServerSnapshot:
        """Return all that the server offers. Raises an error if the connection is broken."""
        if isinstance(self._server, WorkerServer):
            return await self.tools()
        where = Where(str(self._server))
        lists = await asyncio.gather(
            self.tools(),
            list_skills(self._client, self._name, where, self._limits),
            list_offers(self._client, where, self._limits),
        )
        info = self._client.server_info
        return replace(
            with_instructions(joined(*lists), self._client.instructions),
            version=shorten(one_line(info.version), 100) if info and info.version else "",
        )

    async def tools(self) -> ServerSnapshot:
        """Return its tools alone. Raises an error if the connection is broken."""
        return await self._lister.listing()

    async def request(
        self, method: str, params: Mapping[str, Any], caller: Caller | None
    ) -> dict[str, Any]:
        """Send a request about a prompt or a resource, and return the response.

        Raises `ToolError` if the server refuses or sends an invalid response.
        """
        from mcp_types import CompleteRequest, GetPromptRequest, ReadResourceRequest

        kinds: dict[str, Any] = {
            "prompts/get": GetPromptRequest,
            "resources/read": ReadResourceRequest,
            "completion/complete": CompleteRequest,
        }
        request = kinds[method].model_validate(
            {"method": method, "params": dict(params)}, by_name=False
        )
        where = describe_server(self._server, self._name)
        invalid = ToolError(f"{where} returned an invalid response; do not retry")
        return await self._send(request, caller, invalid)

    async def _send(
        self, request: Any, caller: Caller | None, invalid: ToolError, on_progress: Any = None
    ) -> dict[str, Any]:
        from mcp import MCPError

        try:
            with self.callers.during(caller):
                return await send_answering(
                    self._client, request, self._callbacks, caller, on_progress
                )
        except MCPError as problem:
            where = describe_server(self._server, self._name)
            if is_expired(problem):
                raise SessionExpiredError(f"{where} ended the session; try again") from None
            if (question := unsent_question(problem)) is not None:
                if self.mode != "auto" or not self._callbacks.can_for(question, caller):
                    raise ToolError(
                        f"{where} asks what cannot be answered here; continue without it. What it "
                        "did before may have been done"
                    ) from None
                raise CannotAskError(
                    f"{where} had to ask something in the middle of the call, and could not. It is "
                    "connected in another way now, in which it can. What it did before may have "
                    "been done; check, and call it again"
                ) from None
            if is_connection_closed(problem):
                raise connection_lost(where) from None
            if is_unreadable(problem):
                raise ToolError(
                    f"{where} sent a response that cannot be read; the call may or may not have "
                    "been done; check before you try again"
                ) from None
            message = shorten(one_line(problem.message), _MESSAGE_LENGTH)
            raise ToolError(f"{where} refused the call: {message}") from None
        except ValueError:  # pydantic's ValidationError, too
            raise invalid from None

    async def read(self, uri: str) -> bytes | None:
        """Return the content of a resource, or `None` for another response.

        Raises `ToolError` if the server refuses.
        """
        response = await self.request("resources/read", {"uri": uri}, None)
        # In a thread: this is the event loop of all servers, and a file may be large.
        data: bytes | None = await in_thread(partial(bytes_of_resource, response, uri))
        return data

    async def call(
        self,
        tool: ToolDefinition,
        arguments: Mapping[str, Any],
        on_progress: OnProgress,
        caller: Caller | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> ToolResult:
        """Call a tool and return its result. Cancelling this notifies the server.

        `headers` are sent with the request, if it is sent over HTTP. Raises `ToolError` if the
        server refuses or sends an invalid response.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            # The process of a plugin sends the chunks of a result this way.
            if not isinstance(self._server, WorkerServer):
                # Cut first: it may be as long as a whole protocol message.
                text = one_line((message or "")[: 2 * _MESSAGE_LENGTH])
                message = shorten(text, _MESSAGE_LENGTH) or None
            notification = {"progress": progress, "total": total, "message": message}
            on_progress({key: value for key, value in notification.items() if value is not None})

        # The SDK's client has no way to add headers to a request; the transport takes them out.
        extra: Any = {"_meta": {HEADERS_META: dict(headers)}} if headers else {}
        params = CallToolRequestParams(name=tool.name, arguments=dict(arguments), **extra)
        # Not `call_tool`: it validates the result against the server's schema on this event loop,
        # with an engine that a hostile pattern can block for ever.
        request = CallToolRequest(params=params)
        raw = await self._send(request, caller, invalid_response(tool.name), progressed)
        # In a thread: this is the event loop of all servers.
        result: ToolResult = await in_thread(partial(decode_response, raw, tool))
        return result


def connection_lost(server: str) -> ToolError:
    """Return the error for a call that may or may not have run."""
    return ToolError(
        f"{server} disconnected during the call, which may or may not have been done; check "
        "before you try again"
    )


@asynccontextmanager
async def connect(
    name: str,
    server: RemoteServer,
    limits: Limits,
    *,
    mode: ProtocolMode = "auto",
    on_change: Callable[[], None] = lambda: None,
    on_late: Callable[[SlowStartError], None] = lambda _: None,
    stderr: StderrBuffer | None = None,
    start_limit: StartLimit | None = None,
    auth: Any = None,
    callbacks: ClientCallbacks | None = None,
    roots: tuple[str, ...] = (),
    subscriptions: ResourceSubscriptions | None = None,
) -> AsyncIterator[ServerConnection]:
    """Connect to a server until the block ends.

    `on_change` is called when its tools or skills may have changed, or when it has ended, and
    `on_late` when connecting takes longer than `start_limit`. That error is raised, too, but
    only after closing, which may take long. `auth` authorizes requests to a server on the network.
    `callbacks` answer what it asks, and `roots` are folders that it may ask for. `subscriptions`
    are the resources that it reports changes of. Also raises any error of the transport.
    """
    limit = start_limit or StartLimit(limits.mcp_connect, "limit mcp_connect")
    import anyio
    from mcp import Client
    from mcp_types import (
        Implementation,
        PromptListChangedNotification,
        ResourceListChangedNotification,
        ResourceUpdatedNotification,
        ToolListChangedNotification,
    )

    async def on_message(message: Any) -> None:
        changed = (
            ToolListChangedNotification,
            PromptListChangedNotification,
            ResourceListChangedNotification,
        )
        if isinstance(message, changed):
            on_change()
        elif isinstance(message, ResourceUpdatedNotification):
            followed.updated(str(message.params.uri))

    def on_result(result: dict[str, Any]) -> None:
        if isinstance(server, WorkerServer):
            return  # a plugin's process may send results of any size
        truncate_blocks(result)
        try:
            version = client.protocol_version
        except RuntimeError:  # not negotiated yet
            return
        reject_invalid_items(result, version, limits.mcp_tools)

    def on_end() -> None:
        connection.has_ended = True
        on_change()

    answering = replace(callbacks or ClientCallbacks(), server=name, roots=_addresses(roots))
    callers, followed = RunningCallers(), subscriptions or ResourceSubscriptions(name)
    client = Client(
        open_transport(
            server,
            stderr or StderrBuffer(),
            limits.mcp_message,
            on_result=on_result,
            on_gap=on_change,
            on_end=on_end,
            auth=auth,
        ),
        mode=mode,
        message_handler=on_message,
        client_info=Implementation(name="satchel", version="0"),
        cache=None,
        **sdk_callbacks(answering, callers, lambda text: redacted(text, {"": server.secrets})),
    )
    connection = ServerConnection(
        client, name, server, limits, callbacks=answering, callers=callers
    )
    late = SlowStartError(limit)
    timer = asyncio.get_running_loop().call_later(limit.seconds, on_late, late)
    outcome: BaseException | None = late
    # The scope surrounds everything: it must not end before what it contains.
    with (
        ExitStack() as ends,
        anyio.CancelScope(deadline=anyio.current_time() + limit.seconds) as scope,
    ):
        ends.callback(timer.cancel)
        async with client, anyio.create_task_group() as listening:
            scope.deadline, outcome = math.inf, None
            timer.cancel()
            listening.start_soon(_listen, client, on_change)
            listening.start_soon(followed.serve, client)
            try:
                yield connection
            except BaseException as problem:
                outcome = problem
                raise
            finally:
                listening.cancel_scope.cancel()
                scope.deadline = anyio.current_time() + _CLOSE_LIMIT
    if scope.cancelled_caught and outcome is not None:
        raise outcome


def _addresses(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(Path(folder).absolute().as_uri() for folder in folders)


async def _listen(client: "Client", on_change: Callable[[], None]) -> None:
    """Subscribe to changes: a server of the newer protocol notifies subscribers only."""
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError

    able = client.server_capabilities
    wants: dict[str, Any] = {
        f"{name}_list_changed": bool(capability and capability.list_changed)
        for name in ("tools", "prompts", "resources")
        for capability in [getattr(able, name)]
    }
    if any(wants.values()):
        with suppress(ListenNotSupportedError, MCPError):
            await keep_listening(client, on_change, **wants)
