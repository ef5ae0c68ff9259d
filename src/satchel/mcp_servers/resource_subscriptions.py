"""Subscribe to resources of one server, and report their changes to the subscribers."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.mcp_servers.backoff import Backoff

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup, TaskStatus
    from mcp import Client

OnUpdate = Callable[[], object]
"""Is called in a thread of its own whenever a resource changed; it must return soon."""

_MOST = 50
"""Resources of one server that are followed at once."""

_UNSUBSCRIBE_LIMIT = 2.0


class ResourceSubscriptions:
    """The resources of one server that are followed. Use it on the servers' event loop only.

    They stay followed when the connection is replaced. Without a lasting connection, none can be.
    """

    def __init__(self, server: str, *, stateless: bool = False) -> None:
        self._server, self._stateless = server, stateless
        self._followers: dict[str, Counter[OnUpdate]] = {}
        self._scopes: dict[str, CancelScope] = {}
        self._connection: tuple[Client, TaskGroup] | None = None

    async def serve(self, client: "Client") -> None:
        """Keep the server subscribed while a connection lasts."""
        import anyio

        async with anyio.create_task_group() as tasks:
            self._connection = client, tasks
            self._scopes.clear()  # a connection that this one replaces may still be open
            try:
                for uri in self._followers:
                    tasks.start_soon(self._renew, uri)
                await anyio.sleep_forever()
            finally:
                if self._is_current(client):
                    self._connection = None
                    self._scopes.clear()

    def _is_current(self, client: "Client") -> bool:
        return self._connection is not None and self._connection[0] is client

    async def add(self, uri: str, on_update: OnUpdate) -> None:
        """Follow a resource. Equal functions are called once. Raises `ToolError`."""
        if uri not in self._followers:
            await self._subscribe(uri)
        self._followers.setdefault(uri, Counter())[on_update] += 1

    def remove(self, uri: str, on_update: OnUpdate) -> None:
        """Follow a resource no more."""
        followers = self._followers.get(uri, Counter())
        followers[on_update] -= 1
        if +followers:
            return
        self._followers.pop(uri, None)
        if (scope := self._scopes.pop(uri, None)) is not None:
            scope.cancel()

    def updated(self, uri: str) -> None:
        """Call those who follow a resource, or one that contains it."""
        for followed, followers in self._followers.items():
            if uri == followed or uri.startswith(f"{followed.rstrip('/')}/"):
                for on_update in +followers:
                    on_update()

    async def _renew(self, uri: str) -> None:
        """Subscribe over a new connection; the resource may have changed in between."""
        with suppress(ToolError):
            await self._subscribe(uri)
            self.updated(uri)

    async def _subscribe(self, uri: str) -> None:
        from mcp import MCPError

        unable = ToolError(f"the server {self._server!r} does not report changes of {uri}")
        if self._stateless:
            raise unable
        if self._connection is None:
            raise ToolError(f"the server {self._server!r} is restarting; try again later")
        client, tasks = self._connection
        able = client.server_capabilities.resources
        if able is None or not able.subscribe or len(self._scopes) >= _MOST:
            raise unable
        if uri in self._scopes:
            return
        try:
            await tasks.start(self._follow, client, uri)
        except MCPError:
            raise unable from None

    async def _follow(self, client: "Client", uri: str, *, task_status: "TaskStatus[None]") -> None:
        """Stay subscribed to a resource until its scope is cancelled."""
        import anyio
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        with anyio.CancelScope() as scope:
            self._scopes[uri] = scope
            try:
                await (self._listen if is_modern else self._hold)(client, uri, task_status)
            finally:
                if self._scopes.get(uri) is scope:
                    del self._scopes[uri]

    async def _hold(self, client: "Client", uri: str, started: "TaskStatus[None]") -> None:
        """Subscribe in the older protocol; `updated` is called by who reads the messages."""
        import anyio

        await _send(client, "resources/subscribe", uri)
        started.started()
        try:
            await anyio.sleep_forever()
        finally:
            if self._is_current(client):
                with anyio.move_on_after(_UNSUBSCRIBE_LIMIT, shield=True), suppress(Exception):
                    await _send(client, "resources/unsubscribe", uri)

    async def _listen(self, client: "Client", uri: str, started: "TaskStatus[None]") -> None:
        """Read the stream of a resource."""
        has_started = False

        def on_notice() -> None:
            nonlocal has_started
            if has_started:
                self.updated(uri)
            else:
                has_started = True
                started.started()

        await keep_listening(client, on_notice, resource_subscriptions=[uri])


async def keep_listening(client: "Client", on_notice: Callable[[], None], **wants: Any) -> None:
    """Read a stream of notices, and open it again when it breaks.

    `on_notice` is called with each, and when a stream begins: there may be changes before it.
    Raises an error if the server refuses the first stream.
    """
    from mcp import MCPError
    from mcp.client.subscriptions import SubscriptionLost

    backoff, has_begun = Backoff(), False
    while True:
        try:
            async with client.listen(**wants) as notices:
                has_begun = True
                on_notice()
                async for _ in notices:
                    on_notice()
        except SubscriptionLost:  # also before the server acknowledged it
            pass
        except MCPError:
            if not has_begun:
                raise
        await asyncio.sleep(backoff.next())


async def _send(client: "Client", method: str, uri: str) -> None:
    import mcp_types as types

    kind: Any = types.UnsubscribeRequest if "/un" in method else types.SubscribeRequest
    request = kind.model_validate({"method": method, "params": {"uri": uri}})
    await client.session.send_request(request, types.EmptyResult)
