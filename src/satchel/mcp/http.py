"""MCP over streamable HTTP: `/mcp` shows what the server shows, `/mcp/GROUP` one group of it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from satchel.mcp.address import Address
from satchel.mcp.choosing import Choice
from satchel.mcp.gate import CREDENTIAL, Gate
from satchel.mcp.serving import Serving
from satchel.mcp.tokens import Credential, Tokens
from satchel.names import BASIC_GROUP
from satchel.satchel import Satchel
from satchel.settings import MIB

PATH = "/mcp"
LARGEST_BODY = 4 * MIB
MOST_SESSIONS = 1_000
"""How many clients with a handshake may be there at once, at each endpoint."""
_LAST_WORDS = 1
"""Seconds that requests get to end when the server does."""


class Endpoints:
    """Leads a request to the server of its path and its credential, made when it is first needed.

    Whoever bears a token with groups finds those only, at whichever path.
    """

    def __init__(self, bag: Satchel, choice: Choice, *, local: bool) -> None:
        self._bag, self._choice, self._is_local = bag, choice, local
        self._open: dict[Choice, asyncio.Future[StreamableHTTPASGIApp]] = {}
        self._servings: list[Serving] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        choice = self._choice_for(scope["path"], scope.get(CREDENTIAL))
        app: ASGIApp = PlainTextResponse("Not found", 404)
        if choice is not None:
            app = await self._app(choice)
        await app(scope, receive, send)

    def _choice_for(self, path: str, credential: Credential | None) -> Choice | None:
        """Return what is shown there, `None` if there is nothing."""
        choice = self._choice
        if credential is not None and credential.groups is not None:
            choice = choice.only(credential.groups)
        group = path.rstrip("/").removeprefix(PATH)
        if not group:
            return choice if path.startswith(PATH) else None
        name = group.removeprefix("/")
        is_there = group.startswith("/") and path.startswith(PATH)
        if not is_there or name not in self._bag.catalog.groups:
            return None
        if choice.is_fixed and name not in {*choice.groups, BASIC_GROUP}:
            return None
        return choice.only([name])

    async def _app(self, choice: Choice) -> StreamableHTTPASGIApp:
        if (known := self._open.get(choice)) is None:
            known = self._open[choice] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._hold(choice, known))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(known)

    async def _hold(self, choice: Choice, ready: asyncio.Future[StreamableHTTPASGIApp]) -> None:
        """Keep one server open until the end."""
        try:
            serving = Serving(self._bag, choice, local=self._is_local)
            manager = StreamableHTTPSessionManager(
                serving.server, max_request_body_size=LARGEST_BODY, max_sessions=MOST_SESSIONS
            )
            async with manager.run():
                self._servings.append(serving)
                ready.set_result(StreamableHTTPASGIApp(manager))
                await asyncio.Event().wait()
        except Exception as problem:
            del self._open[choice]  # the next request tries anew
            if ready.done():
                raise
            ready.set_exception(problem)

    def say_goodbye(self) -> None:
        """End the streams on which clients listen, as the protocol wants it."""
        for serving in self._servings:
            serving.audience.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close every server at the end of the block."""
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(
    bag: Satchel,
    choice: Choice,
    listening: socket.socket,
    address: Address,
    *,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    per_second: float = 0,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until it is cancelled, on a socket that listens at an address."""
    # With tokens or further names, a proxy on this machine may speak for clients elsewhere.
    is_local = address.is_loopback and tokens is None and not hosts
    endpoints = Endpoints(bag, choice, local=is_local)
    app: ASGIApp = Gate(
        endpoints, address, tokens=tokens, hosts=hosts, origins=origins, per_second=per_second
    )
    if origins:  # outermost: a browser asks without a token whether it may send one
        app = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id"],
        )
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_LAST_WORDS,
    )
    server = _Uvicorn(config)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(endpoints.open())
        running = asyncio.create_task(server.serve([listening]))
        ready()
        try:
            await asyncio.shield(running)
        finally:
            endpoints.say_goodbye()
            server.should_exit = True
            await running


def listen(address: Address) -> socket.socket:
    """Listen at an address. Raises `OSError` if that cannot be."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # The protocol is said: of others asyncio would not have small answers sent at once.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening
