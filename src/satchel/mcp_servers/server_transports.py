"""Open the transport to a server as a pair of message streams."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from satchel.errors import SatchelError
from satchel.mcp_servers.network_transports import over_http, over_sse
from satchel.mcp_servers.server_addresses import RemoteServer, SseServer, StdioServer
from satchel.mcp_servers.server_process import StderrBuffer, run_process

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

HEADERS_META = "dev.satchel/headers"
"""The `_meta` key of a request with HTTP headers for it; it is never sent."""

_MAX_OPEN_REQUESTS = 100
"""Requests of a server to us that may be open at once."""

_PATIENCE = 10.0
"""Seconds that a further request waits until one of them is answered."""


@asynccontextmanager
async def open_transport(
    server: RemoteServer,
    stderr: StderrBuffer,
    longest: int,
    *,
    on_result: Callable[[dict[str, Any]], None],
    on_gap: Callable[[], None],
    on_end: Callable[[], None],
    auth: Any = None,
) -> "AsyncIterator[TransportStreams]":
    """Start a server or connect to it, until the block ends.

    A message of more than `longest` bytes ends the connection. `on_result` gets the result in
    each received response, and may change it. `on_gap` is called when notifications may have been
    missed, and `on_end` when no more messages come. `auth` authorizes the requests to a server on
    the network.
    """
    streams: AbstractAsyncContextManager[TransportStreams]
    if isinstance(server, StdioServer):
        streams = run_process(server, stderr, longest)
    elif isinstance(server, SseServer):
        streams = over_sse(server, longest, auth)
    else:
        streams = over_http(server, longest, on_gap, auth)
    async with streams as (read, write):
        open_requests = asyncio.Semaphore(_MAX_OPEN_REQUESTS)
        yield (
            _ReceiveStream(read, on_result, on_end, open_requests),
            _SendStream(write, open_requests),
        )


class _WrappedStream:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> bool | None:
        return bool(await self._stream.__aexit__(*raised))


class _ReceiveStream(_WrappedStream):
    """Received messages; limits the server's open requests, and reports the end."""

    def __init__(
        self,
        stream: Any,
        on_result: Callable[[dict[str, Any]], None],
        on_end: Callable[[], None],
        open_requests: asyncio.Semaphore,
    ) -> None:
        super().__init__(stream)
        self._on_result, self._on_end, self._open_requests = on_result, on_end, open_requests

    @property
    def last_context(self) -> Any:
        """Return the SDK's context of the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            received = await self._stream.receive()
            message = getattr(received, "message", None)
            if hasattr(message, "method") and hasattr(message, "id"):
                await self._count_request()
            if isinstance(result := getattr(message, "result", None), dict):
                self._on_result(result)
        except BaseException:
            # Any error: nothing is read after it.
            self._on_end()
            raise
        return received

    async def _count_request(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._open_requests.acquire()
        except TimeoutError:
            raise SatchelError("sends requests and does not read the responses") from None

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    def __aiter__(self) -> "_ReceiveStream":
        return self


class _SendStream(_WrappedStream):
    """Sent messages; counts the responses to the server's requests."""

    def __init__(self, stream: Any, open_requests: asyncio.Semaphore) -> None:
        super().__init__(stream)
        self._open_requests = open_requests

    async def send(self, item: Any) -> None:
        """Send a message."""
        await self._stream.send(_with_headers(item))
        if not hasattr(item.message, "method"):
            self._open_requests.release()


def _with_headers(item: Any) -> Any:
    """Move the headers for a request from its metadata to where the transport finds them."""
    params = getattr(item.message, "params", None)
    if not isinstance(params, dict) or HEADERS_META not in (params.get("_meta") or ()):
        return item
    headers = params["_meta"].pop(HEADERS_META)
    if not params["_meta"]:
        del params["_meta"]
    from mcp.shared.message import ClientMessageMetadata

    old = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
    metadata = replace(old or ClientMessageMetadata())
    metadata.headers = {**(metadata.headers or {}), **headers}
    return replace(item, metadata=metadata)
