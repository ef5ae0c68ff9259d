"""Connect to servers over streamable HTTP, or over the older server-sent events (SSE)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from satchel.errors import SatchelError
from satchel.mcp_servers.connection_errors import SESSION_EXPIRED, first_error
from satchel.mcp_servers.server_addresses import HttpServer, SseServer
from satchel.mcp_servers.server_process import message_of, too_long
from satchel.mcp_servers.tame_json import readable

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_WAIT = 10.0
"""Seconds to wait for a connection; reading a response has no limit here."""

_EVENTS = "text/event-stream"
_FIELD_NAME = 64
"""Bytes of a line of an event besides its data."""

OF_LOGIN = "satchel-login"
"""The extension that marks requests to an authorization server."""

_STATUS_ONLY = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
"""The SDK's messages for a response with an error status; they do not say which."""

_STATUS = "HTTP status "
"""How our messages for such a response begin."""
_NOT_FOUND, _TOO_MANY, _FAILED = 404, 429, 500
_SESSION = "mcp-session-id"


@asynccontextmanager
async def over_http(
    server: HttpServer, longest: int, on_gap: Callable[[], None], auth: Any = None
) -> "AsyncIterator[TransportStreams]":
    """Connect by streamable HTTP; `on_gap` is called when notifications may have been missed."""
    from mcp import MCPError
    from mcp.client.streamable_http import streamable_http_client

    # SDKs before 2.3 limit an event to 1 MiB, whatever `mcp_message` is.
    has_limit = "max_sse_event_size" in signature(streamable_http_client).parameters
    event_limit: dict[str, Any] = {"max_sse_event_size": longest} if has_limit else {}
    streams = 0
    last: httpx2.Response | None = None

    async def on_request(request: "httpx2.Request") -> None:
        nonlocal streams
        if OF_LOGIN in request.extensions:
            return
        if request.method == "GET":  # the notification stream; a second one is a reconnection
            streams += 1
            if streams > 1:
                on_gap()

    async def on_response(response: "httpx2.Response") -> None:
        nonlocal last
        # Servers may refuse the notification stream.
        if response.request.method == "POST" and OF_LOGIN not in response.request.extensions:
            last = response

    async with (
        _closed_at_the_end(_client(server, longest, auth, on_request, on_response)) as client,
        streamable_http_client(server.url, http_client=client, **event_limit) as transport,
    ):
        try:
            yield transport
        except BaseException as problem:
            # Any: task groups raise groups of all errors.
            error = first_error(problem, MCPError)
            message = "" if error is None else str(error)
            is_status = message in _STATUS_ONLY or message.startswith(_STATUS)
            if last is not None and is_status:
                last.raise_for_status()
            raise


@asynccontextmanager
async def over_sse(
    server: SseServer, longest: int, auth: Any = None
) -> "AsyncIterator[TransportStreams]":
    """Connect by server-sent events: read one stream of events, and post our messages.

    The SDK's client limits events to 1 MiB whatever `mcp_message` is, logs URLs with their
    secrets and does not report a failed post. It also waits for each post before the next, so
    it blocks if a server sends a request before it responds.
    """
    import anyio
    import httpx2

    base_url = httpx2.URL(server.url)

    async def on_request(request: httpx2.Request) -> None:
        if OF_LOGIN not in request.extensions and _origin(request.url) != _origin(base_url):
            raise SatchelError("redirects to another host, to which nothing is sent")

    received, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)
    with received, read, write, outgoing:
        async with (
            _closed_at_the_end(_client(server, longest, auth, on_request)) as client,
            client.sse(base_url, follow_redirects=True, max_event_size=longest) as events,
            anyio.create_task_group() as pipes,
        ):
            address = await pipes.start(_receive, events, received, longest)
            pipes.start_soon(_send, client, base_url.join(address), outgoing)
            try:
                yield read, write
            finally:
                pipes.cancel_scope.cancel()


def _origin(url: "httpx2.URL") -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _receive(
    events: "httpx2.EventSource", received: Any, longest: int, *, task_status: Any
) -> None:
    """Receive messages; the first event is the URL for ours."""
    import httpx2

    events.response.raise_for_status()
    if not _is_stream(events.response):
        raise SatchelError("did not respond with an event stream")
    with received, suppress(httpx2.TransportError):  # disconnected
        try:
            async for event in events:
                if event.event == "endpoint":
                    task_status.started(event.data)
                elif event.event == "message" and event.data:
                    await received.send(message_of(event.data.encode()))
        except httpx2.SSEError:
            raise too_long(longest) from None


async def _send(client: "httpx2.AsyncClient", url: "httpx2.URL", outgoing: Any) -> None:
    import anyio
    from mcp_types import JSONRPCRequest

    async def post(item: Any) -> None:
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        headers = getattr(item.metadata, "headers", None)
        (await client.post(url, json=body, headers=headers)).raise_for_status()

    async with anyio.create_task_group() as posts:
        async for item in outgoing:
            if isinstance(item.message, JSONRPCRequest):
                # Some servers end the post only after they sent the response.
                posts.start_soon(post, item)
            else:
                await post(item)


@asynccontextmanager
async def _closed_at_the_end(client: "httpx2.AsyncClient") -> "AsyncIterator[httpx2.AsyncClient]":
    """Close all connections at the end, even if a cancellation comes meanwhile."""
    import anyio

    try:
        yield client
    finally:
        # The client shields closing from a cancellation by anyio, but not from one by asyncio.
        with anyio.CancelScope(shield=True):
            closing = asyncio.ensure_future(client.aclose())
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await asyncio.wait([closing])
                raise


def _client(
    server: HttpServer | SseServer, longest: int, auth: Any, on_request: Any, *on_response: Any
) -> "httpx2.AsyncClient":
    """Create an HTTP client that limits each response, and makes its JSON readable."""
    import httpx2

    class Rewritten(httpx2.AsyncByteStream):
        """A response body whose parts come from a function of the received ones."""

        def __init__(self, stream: Any, rewrite: Callable[..., AsyncIterator[bytes]]) -> None:
            self._stream, self._parts = stream, rewrite(stream, longest)

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._parts

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def check_response(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            # A small body may decompress to any size.
            raise SatchelError("sent a compressed response, which the request did not allow")
        # An event stream has no end; the limit is for each event.
        rewrite: Any = _readable_lines if _is_stream(response) else _readable_body
        status, request = response.status_code, response.request
        has_failed = status == _TOO_MANY or status >= _FAILED
        is_post = request.method == "POST" and OF_LOGIN not in request.extensions
        if is_post and status == _NOT_FOUND and _SESSION in request.headers:
            # So the protocol says it; a proxy that finds no server sends the same.
            rewrite = partial(_or_error, message=SESSION_EXPIRED, is_kept=_is_other_error)
            response.headers["content-type"] = "application/json"
        elif is_post and has_failed:
            # The SDK does not say which status it was.
            rewrite = partial(_or_error, message=_reason_of(response), is_kept=_is_of_protocol)
            response.headers["content-type"] = "application/json"
        response.stream = Rewritten(response.stream, rewrite)

    # No read timeout: calls have their own, and notification streams may be silent for long.
    return httpx2.AsyncClient(
        headers={**(server.headers or {}), "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_WAIT, read=None),
        auth=auth,
        event_hooks={"request": [on_request], "response": [check_response, *on_response]},
    )


async def _readable_body(parts: AsyncIterator[bytes], longest: int) -> AsyncIterator[bytes]:
    body = b""
    async for part in parts:
        body += part
        if len(body) > longest:
            raise too_long(longest)
    yield readable(body)


def _reason_of(response: "httpx2.Response") -> str:
    """Return what a caller has to know of a response with an error status."""
    seconds = response.headers.get("retry-after", "")
    reason = f"{_STATUS}{response.status_code}"
    if seconds.isdecimal():
        reason += f"; try again after {int(seconds[:9])} seconds"
    elif response.status_code >= _FAILED:
        reason += "; the call may or may not have been done"
    return reason


async def _or_error(
    parts: AsyncIterator[bytes], longest: int, message: str, is_kept: Callable[[bytes], bool]
) -> AsyncIterator[bytes]:
    """Yield a response with an error status if it is kept, else an error with the message."""
    body = b"".join([part async for part in _readable_body(parts, longest)])
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": message}}
    yield body if is_kept(body) else json.dumps(error).encode()


def _is_of_protocol(body: bytes) -> bool:
    return b'"jsonrpc"' in body


def _is_other_error(body: bytes) -> bool:
    """Return whether a body is a JSON-RPC error that responds to a request it has read."""
    try:
        response = json.loads(body)
        has_id = response["id"] is not None
        return has_id and "session" not in str(response["error"]["message"]).lower()
    except (ValueError, TypeError, LookupError, RecursionError):
        return False


async def _readable_lines(parts: AsyncIterator[bytes], longest: int) -> AsyncIterator[bytes]:
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            name, _, data = line.partition(b":")
            yield (b"data:" + readable(data) if name == b"data" else line) + b"\n"
        if b"\r" in rest[:-1]:  # lines may end so, and are then left as they are
            yield rest
            rest = b""
        if len(rest) > longest + _FIELD_NAME:
            raise too_long(longest)
    yield rest


def _is_stream(response: "httpx2.Response") -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0]
    return bool(kind.strip().lower() == _EVENTS)
