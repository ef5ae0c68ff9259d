"""Opening the way to a server: a process, or a connection, as a pair of streams."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from satchel.errors import SatchelError
from satchel.mcp_servers.network_transports import over_http, over_sse
from satchel.mcp_servers.server_addresses import RemoteServer, SseServer, StdioServer
from satchel.mcp_servers.server_process import running

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_MOST_ASKED = 100
"""How many requests of a server may wait for their answers to be sent."""

_PATIENCE = 10.0
"""Seconds that they may wait until the first of them is."""

_TAIL = 2_000
"""How many bytes are kept of what a server says on its standard error."""


class StderrBuffer:
    """The last that a process said on its standard error; `on_line` hears each line of it."""

    def __init__(self, on_line: Callable[[str], object] | None = None) -> None:
        self._bytes, self._begun, self._on_line = b"", b"", on_line

    def add(self, data: bytes) -> None:
        """Keep the newest."""
        self._bytes = (self._bytes + data)[-_TAIL:]
        if self._on_line is not None:
            *lines, begun = (self._begun + data).split(b"\n")
            self._begun = begun[:_TAIL]  # a line without an end is cut
            for line in filter(bytes.strip, lines):
                self._on_line(line.decode(errors="replace"))

    @property
    def last_line(self) -> str:
        """Return the last line that says something."""
        lines = self._bytes.decode(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")


@asynccontextmanager
async def open_transport(
    server: RemoteServer,
    tail: StderrBuffer,
    longest: int,
    *,
    look: Callable[[Any], Any],
    on_gap: Callable[[], None],
    on_end: Callable[[], None],
) -> "AsyncIterator[TransportStreams]":
    """Start a server or connect to it; none of its messages may be of more than `longest` bytes.

    `look` sees each message first, and may make another of it. `on_gap` hears that notices of it
    may have been missed, or that it may be gone; `on_end` that nothing more can come from it.
    """
    async with _streams(server, tail, longest, on_gap) as (read, write):
        asked = asyncio.Semaphore(_MOST_ASKED)
        yield _ReceiveStream(read, look, on_end, asked), _SendStream(write, asked)


def _streams(
    server: RemoteServer, tail: StderrBuffer, longest: int, on_gap: Callable[[], None]
) -> "AbstractAsyncContextManager[TransportStreams]":
    if isinstance(server, StdioServer):
        return _started(server, tail, longest)
    if isinstance(server, SseServer):
        return over_sse(server, longest)
    return over_http(server, longest, on_gap)


@asynccontextmanager
async def _started(
    server: StdioServer, tail: StderrBuffer, longest: int
) -> "AsyncIterator[TransportStreams]":
    async with _errors_into(tail) as errors, running(server, errors, longest) as streams:
        yield streams


class _WrappedStream:
    """A stream around another one."""

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
    """A stream of messages that tells when it ends, and waits for what is asked to be answered."""

    def __init__(
        self,
        stream: Any,
        look: Callable[[Any], Any],
        on_end: Callable[[], None],
        asked: asyncio.Semaphore,
    ) -> None:
        super().__init__(stream)
        self._look, self._on_end, self._asked = look, on_end, asked

    @property
    def last_context(self) -> Any:
        """Return the context of whoever sent the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        with self._told_of_the_end():
            return await self._taken(await self._stream.receive())

    async def __anext__(self) -> Any:
        with self._told_of_the_end():
            return await self._taken(await self._stream.__anext__())

    async def _taken(self, received: Any) -> Any:
        if hasattr(message := getattr(received, "message", None), "method") and hasattr(
            message, "id"
        ):
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._asked.acquire()
            except TimeoutError:
                raise SatchelError("asks, and does not hear the answers") from None
        return self._look(received)

    def __aiter__(self) -> "_ReceiveStream":
        return self

    @contextmanager
    def _told_of_the_end(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Any: whatever ends the reading, nothing is read afterwards.
            self._on_end()
            raise


class _SendStream(_WrappedStream):
    """A stream to a server that counts the answers."""

    def __init__(self, stream: Any, asked: asyncio.Semaphore) -> None:
        super().__init__(stream)
        self._asked = asked

    async def send(self, item: Any) -> None:
        """Send a message."""
        await self._stream.send(item)
        if not hasattr(item.message, "method"):
            self._asked.release()


@asynccontextmanager
async def _errors_into(tail: StderrBuffer) -> AsyncIterator[Any]:
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
