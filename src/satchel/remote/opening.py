"""Opening the way to a server: a process, or a connection, as a pair of streams."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from satchel.remote.outcome import with_fewer_blocks
from satchel.remote.process import running, too_long
from satchel.remote.servers import RemoteServer, SseServer, StdioServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_TAIL = 2_000
"""How many bytes are kept of what a server says on its standard error."""

_HTTP_WAIT = 10.0
"""Seconds to wait for a connection, or for a free one; an answer may take as long as it takes."""

_DAY = 24 * 60 * 60.0


class Tail:
    """The last that a process said on its standard error."""

    def __init__(self) -> None:
        self._bytes = b""

    def add(self, data: bytes) -> None:
        """Keep the newest."""
        self._bytes = (self._bytes + data)[-_TAIL:]

    @property
    def last_line(self) -> str:
        """Return the last line that says something."""
        lines = self._bytes.decode(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")


@asynccontextmanager
async def opened(
    server: RemoteServer,
    tail: Tail,
    longest: int,
    on_gap: Callable[[], None],
    on_end: Callable[[], None],
) -> "AsyncIterator[TransportStreams]":
    """Start a server or connect to it; none of its messages may be of more than `longest` bytes.

    `on_gap` hears that notices of it may have been missed, or that it may be gone; `on_end` that
    nothing more can come from it.
    """
    async with _streams(server, tail, longest, on_gap) as (read, write):
        yield _Heard(read, on_end), write


def _streams(
    server: RemoteServer, tail: Tail, longest: int, on_gap: Callable[[], None]
) -> "AbstractAsyncContextManager[TransportStreams]":
    if isinstance(server, StdioServer):
        return _process(server, tail, longest)
    headers = dict(server.headers or {})
    if isinstance(server, SseServer):
        return _sse(server.url, headers)
    return _http(server.url, headers, longest, on_gap)


@asynccontextmanager
async def _process(
    server: StdioServer, tail: Tail, longest: int
) -> "AsyncIterator[TransportStreams]":
    async with _errors_into(tail) as errors, running(server, errors, longest) as streams:
        yield streams


@asynccontextmanager
async def _http(
    url: str, headers: Mapping[str, str], longest: int, on_gap: Callable[[], None]
) -> "AsyncIterator[TransportStreams]":
    from mcp.client.streamable_http import streamable_http_client

    async with (
        _http_client(headers, longest, on_gap) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=longest) as streams,
    ):
        yield streams


def _bounded(stream: Any, longest: int) -> Any:
    """Return an answer that breaks off where it gets too long."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = longest
            async for part in stream:
                left -= len(part)
                if left < 0:
                    raise too_long(longest)
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def _http_client(
    headers: Mapping[str, str], longest: int, on_gap: Callable[[], None]
) -> "httpx2.AsyncClient":
    import httpx2

    async def answered(response: httpx2.Response) -> None:
        # A stream of events has no end; there each event is measured.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _bounded(response.stream, longest)

    streams = 0

    async def asking(request: httpx2.Request) -> None:
        nonlocal streams
        if request.method == "GET":  # the stream of notices; asked for again if it broke off
            streams += 1
            if streams > 1:
                on_gap()

    # Answers and streams of notices may be silent for long: calls have their own time limit.
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_HTTP_WAIT, read=None),
        event_hooks={"request": [asking], "response": [answered]},
    )


@asynccontextmanager
async def _sse(url: str, headers: Mapping[str, str]) -> "AsyncIterator[TransportStreams]":
    from mcp.client.sse import sse_client

    wait = sse_client(url, dict(headers), timeout=_HTTP_WAIT, sse_read_timeout=_DAY)
    async with wait as streams:
        yield streams


class _Heard:
    """A stream of messages that tells when it ends."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream, self._on_end = stream, on_end

    @property
    def last_context(self) -> Any:
        """Return the context of whoever sent the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        with self._told_of_the_end():
            return with_fewer_blocks(await self._stream.receive())

    async def __anext__(self) -> Any:
        with self._told_of_the_end():
            return with_fewer_blocks(await self._stream.__anext__())

    def __aiter__(self) -> "_Heard":
        return self

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> bool | None:
        return bool(await self._stream.__aexit__(*raised))

    @contextmanager
    def _told_of_the_end(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Any: whatever ends the reading, nothing is read afterwards.
            self._on_end()
            raise


@asynccontextmanager
async def _errors_into(tail: Tail) -> AsyncIterator[Any]:
    """Yield a file for a process to write its errors to; the terminal of the host is not its."""

    class Listener(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            tail.add(data)

    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errors:
        reader = os.fdopen(reading, "rb", 0)
        listening, _ = await asyncio.get_running_loop().connect_read_pipe(Listener, reader)
        try:
            yield errors
        finally:
            listening.close()
