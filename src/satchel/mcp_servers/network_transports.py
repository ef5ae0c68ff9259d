"""Servers on a network as pairs of streams: streamable HTTP, and server-sent events before it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from satchel.errors import SatchelError
from satchel.mcp_servers.connection_errors import first_error
from satchel.mcp_servers.server_addresses import HttpServer, SseServer
from satchel.mcp_servers.server_process import message_of, too_long

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_WAIT = 10.0
"""Seconds to wait for a connection, or for a free one; an answer may take as long as it takes."""

_EVENTS = "text/event-stream"

_SAYS_NOTHING = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
"""What the SDK makes of an answer that is nothing but a status."""


@asynccontextmanager
async def over_http(
    server: HttpServer, longest: int, on_gap: Callable[[], None]
) -> "AsyncIterator[TransportStreams]":
    """Connect by streamable HTTP; `on_gap` hears that notices may have been missed."""
    from mcp import MCPError
    from mcp.client.streamable_http import streamable_http_client

    streams = 0
    last: httpx2.Response | None = None

    async def asking(request: "httpx2.Request") -> None:
        nonlocal streams
        if request.method == "GET":  # the stream of notices; asked for again if it broke off
            streams += 1
            if streams > 1:
                on_gap()

    async def noting(response: "httpx2.Response") -> None:
        nonlocal last
        if response.request.method == "POST":  # a stream of notices may well be refused
            last = response

    async with (
        _client(server, longest, asking, noting) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=longest
        ) as streams_of_it,
    ):
        try:
            yield streams_of_it
        except BaseException as problem:
            # Any: tasks raise groups of whatever it is.
            found = first_error(problem, MCPError)
            if last is not None and found is not None and str(found) in _SAYS_NOTHING:
                last.raise_for_status()
            raise


@asynccontextmanager
async def over_sse(server: SseServer, longest: int) -> "AsyncIterator[TransportStreams]":
    """Connect by server-sent events: read one stream of them, and post our messages.

    Not the client of the SDK: it limits events to 1 MiB whatever `mcp_message` says, logs
    addresses with their secrets, does not report a failed post, and waits for each post to end
    before the next, so a server that asks something before it answers is never answered.
    """
    import anyio
    import httpx2

    home = httpx2.URL(server.url)

    async def asking(request: httpx2.Request) -> None:
        if _origin(request.url) != _origin(home):
            raise SatchelError("leads to another address, to which nothing is sent")

    heard, read = anyio.create_memory_object_stream[Any](0)
    write, to_send = anyio.create_memory_object_stream[Any](0)
    with heard, read, write, to_send:
        async with (
            _client(server, longest, asking) as client,
            client.sse(home, follow_redirects=True, max_event_size=longest) as events,
            anyio.create_task_group() as pipes,
        ):
            address = await pipes.start(_hear, events, heard, longest)
            pipes.start_soon(_say, client, home.join(address), to_send)
            try:
                yield read, write
            finally:
                pipes.cancel_scope.cancel()


def _origin(url: "httpx2.URL") -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _hear(
    events: "httpx2.EventSource", heard: Any, longest: int, *, task_status: Any
) -> None:
    """Hand on the messages of a server; the first event tells where it hears ours."""
    import httpx2

    events.response.raise_for_status()
    if not _is_stream(events.response):
        raise SatchelError("answered with no stream of events")
    with heard, suppress(httpx2.TransportError):  # it is gone
        try:
            async for event in events:
                if event.event == "endpoint":
                    task_status.started(event.data)
                elif event.event == "message" and event.data:
                    await heard.send(message_of(event.data))
        except httpx2.SSEError:
            raise too_long(longest) from None


async def _say(client: "httpx2.AsyncClient", url: "httpx2.URL", to_send: Any) -> None:
    import anyio
    from mcp_types import JSONRPCRequest

    async def post(message: Any) -> None:
        said = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        (await client.post(url, json=said)).raise_for_status()

    async with anyio.create_task_group() as posts:
        async for item in to_send:
            if isinstance(item.message, JSONRPCRequest):
                # Some servers take it only once they have answered it.
                posts.start_soon(post, item.message)
            else:
                await post(item.message)


def _client(
    server: HttpServer | SseServer, longest: int, asking: Any, *noting: Any
) -> "httpx2.AsyncClient":
    """Make a client for one server, none of whose answers is longer than it may be."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """An answer that breaks off where it gets too long."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = longest
            async for part in self._stream:
                left -= len(part)
                if left < 0:
                    raise too_long(longest)
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def answered(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            # What is small may unfold without measure.
            raise SatchelError("sent a packed answer, which it was asked not to do")
        # A stream of events has no end; there each event is measured.
        if not _is_stream(response):
            response.stream = Bounded(response.stream)

    # Answers and streams of notices may be silent for long: calls have their own time limit.
    return httpx2.AsyncClient(
        headers={**(server.headers or {}), "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_WAIT, read=None),
        event_hooks={"request": [asking], "response": [answered, *noting]},
    )


def _is_stream(response: "httpx2.Response") -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0]
    return bool(kind.strip().lower() == _EVENTS)
