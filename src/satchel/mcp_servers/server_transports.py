"""Open the transport to a server as a pair of message streams."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from satchel.errors import SatchelError
from satchel.mcp_servers.network_transports import over_http, over_sse
from satchel.mcp_servers.server_addresses import RemoteServer, SseServer, StdioServer
from satchel.mcp_servers.server_process import run_process

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

HEADERS_META = "dev.satchel/headers"
"""The `_meta` key of a request with HTTP headers for it; it is never sent."""

_MAX_OPEN_REQUESTS = 100
"""Requests of a server to us that may be open at once."""

_PATIENCE = 10.0
"""Seconds that a further request waits until one of them is answered."""

_STDERR_BYTES = 2_000
"""Bytes kept of a server's standard error."""


class StderrBuffer:
    """Keeps the end of a process's standard error; `on_line` is called with each line."""

    def __init__(self, on_line: Callable[[str], object] | None = None) -> None:
        self._bytes, self._unfinished, self._on_line = b"", b"", on_line
        self._printed: str | None = ""

    def add_printed(self, line: bytes | None) -> None:
        """Keep the last line on stdout that is no message; `None` after the first message."""
        if line is None:
            self._printed = None
        elif self._printed is not None and line.strip():
            self._printed = line[:_STDERR_BYTES].decode(errors="replace")

    @property
    def printed(self) -> str:
        """Return the last line that the process printed before its first message, or `""`."""
        return self._printed or ""

    def add(self, data: bytes) -> None:
        """Append output, and drop the oldest."""
        self._bytes = (self._bytes + data)[-_STDERR_BYTES:]
        if self._on_line is not None:
            *lines, unfinished = (self._unfinished + data).split(b"\n")
            self._unfinished = unfinished[:_STDERR_BYTES]  # a line without an end is cut
            for line in filter(bytes.strip, lines):
                self._on_line(line.decode(errors="replace"))

    @property
    def text(self) -> str:
        """Return the end of the output."""
        return self._bytes.decode(errors="replace")

    @property
    def last_line(self) -> str:
        """Return the last line that is not blank."""
        lines = self.text.splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")


@asynccontextmanager
async def open_transport(
    server: RemoteServer,
    stderr: StderrBuffer,
    longest: int,
    *,
    filter_message: Callable[[Any], Any],
    on_gap: Callable[[], None],
    on_end: Callable[[], None],
    auth: Any = None,
) -> "AsyncIterator[TransportStreams]":
    """Start a server or connect to it, until the block ends.

    A message of more than `longest` bytes ends the connection. `filter_message` may replace each
    received message. `on_gap` is called when notifications may have been missed, and `on_end`
    when no more messages come. `auth` authorizes the requests to a server on the network.
    """
    streams: AbstractAsyncContextManager[TransportStreams]
    if isinstance(server, StdioServer):
        streams = _started(server, stderr, longest)
    elif isinstance(server, SseServer):
        streams = over_sse(server, longest, auth)
    else:
        streams = over_http(server, longest, on_gap, auth)
    async with streams as (read, write):
        open_requests = asyncio.Semaphore(_MAX_OPEN_REQUESTS)
        yield (
            _ReceiveStream(read, filter_message, on_end, open_requests),
            _SendStream(write, open_requests),
        )


@asynccontextmanager
async def _started(
    server: StdioServer, stderr: StderrBuffer, longest: int
) -> "AsyncIterator[TransportStreams]":
    async with (
        _stderr_file(stderr) as errors,
        run_process(server, errors, longest, stderr.add_printed) as streams,
    ):
        yield streams


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
        filter_message: Callable[[Any], Any],
        on_end: Callable[[], None],
        open_requests: asyncio.Semaphore,
    ) -> None:
        super().__init__(stream)
        self._filter_message, self._on_end = filter_message, on_end
        self._open_requests = open_requests

    @property
    def last_context(self) -> Any:
        """Return the SDK's context of the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        with self._reports_end():
            return await self._accept(await self._stream.receive())

    async def __anext__(self) -> Any:
        with self._reports_end():
            return await self._accept(await self._stream.__anext__())

    async def _accept(self, received: Any) -> Any:
        message = getattr(received, "message", None)
        if hasattr(message, "method") and hasattr(message, "id"):  # a request of the server
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._open_requests.acquire()
            except TimeoutError:
                raise SatchelError("sends requests and does not read the responses") from None
        return self._filter_message(received)

    def __aiter__(self) -> "_ReceiveStream":
        return self

    @contextmanager
    def _reports_end(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Any error: nothing is read after it.
            self._on_end()
            raise


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


@asynccontextmanager
async def _stderr_file(stderr: StderrBuffer) -> AsyncIterator[Any]:
    """Yield a file for the stderr of a process; it must not write to the host's terminal."""

    class Listener(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            stderr.add(data)

    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errors:
        reader = os.fdopen(reading, "rb", 0)
        listening, _ = await asyncio.get_running_loop().connect_read_pipe(Listener, reader)
        try:
            yield errors
        finally:
            listening.close()
