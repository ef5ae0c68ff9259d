"""MCP over streamable HTTP: `/mcp` shows what the server shows, `/mcp/GROUP` one group of it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from satchel.mcp.auth_middleware import CREDENTIAL, AuthMiddleware, TrustedHosts
from satchel.mcp.bearer_tokens import BearerTokens, Credential
from satchel.mcp.listen_address import Address, origin_of
from satchel.mcp.mcp_server import SatchelServer
from satchel.mcp.principals import Principal
from satchel.mcp.served_selection import ServedSelection
from satchel.names import BASIC_GROUP
from satchel.satchel import Satchel

PATH = "/mcp"
MOST_CONNECTIONS = 1_000
"""How many connections may be open at once; most systems let a process have so many files."""
_FIRST_WORDS = 10
"""Seconds in which whoever connects, or has got an answer, has to say what it wants."""
_LAST_WORDS = 1
"""Seconds that requests get to end when the server does."""
_LOOKS_AGAIN = 1.0
"""Seconds until what a withdrawn token has opened ends."""


class Endpoints:
    """Leads a request to the server of its path and its credential, made when it is first needed.

    Whoever bears a token with groups finds those only, at whichever path.
    """

    def __init__(
        self,
        satchel: Satchel,
        choice: ServedSelection,
        *,
        local: bool,
        tokens: BearerTokens | None = None,
    ) -> None:
        self._satchel, self._choice, self._is_local, self._tokens = satchel, choice, local, tokens
        self._servings: dict[ServedSelection, SatchelServer] = {}
        self._guests: dict[Credential | None, Principal] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        credential = scope.get(CREDENTIAL)
        choice = self._choice_for(scope["path"], credential)
        if choice is None:
            await PlainTextResponse("Not found", 404)(scope, receive, send)
            return
        if (guest := self._guests.get(credential)) is None:
            guest = self._guests[credential] = Principal(
                self._serving, partial(self._counts, credential)
            )
        await guest.serve(choice, scope, receive, send)

    def _counts(self, credential: Credential | None) -> bool:
        return not (self._tokens and credential) or self._tokens.counts(credential)

    def _choice_for(self, path: str, credential: Credential | None) -> ServedSelection | None:
        """Return what is shown there, `None` if there is nothing."""
        choice = self._choice
        if credential is not None and credential.groups is not None:
            choice = choice.only(credential.groups)
        group = path.rstrip("/").removeprefix(PATH)
        if not group:
            return choice if path.startswith(PATH) else None
        name = group.removeprefix("/")
        is_there = group.startswith("/") and path.startswith(PATH)
        if not is_there or name not in self._satchel.catalog.groups:
            return None
        if choice.is_fixed and name not in {*choice.groups, BASIC_GROUP}:
            return None
        return choice.only([name])

    def _serving(self, choice: ServedSelection) -> SatchelServer:
        """Return what serves a choice, which all guests share who see the same."""
        if (known := self._servings.get(choice)) is None:
            known = self._servings[choice] = SatchelServer(
                self._satchel, choice, local=self._is_local
            )
        return known

    async def _keep_watch(self) -> None:
        """End what was opened with a token once it counts no more, or for other groups."""
        while True:
            await asyncio.sleep(_LOOKS_AGAIN)
            for credential in [one for one in self._guests if not self._counts(one)]:
                await self._guests.pop(credential).end()

    def say_goodbye(self) -> None:
        """End the streams on which clients listen, as the protocol wants it."""
        for serving in self._servings.values():
            serving.audience.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close every server at the end of the block."""
        watching = asyncio.create_task(self._keep_watch())
        try:
            yield
        finally:
            watching.cancel()
            for guest in self._guests.values():
                await guest.end()


class _Connection(H11Protocol):
    """A connection that is closed if nothing is asked on it, at the beginning or afterwards."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may have come already."""
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        # Not by what waits in uvicorn, which is content with the first letter of a request.
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(_FIRST_WORDS, self._require_request, self.cycle)

    def _require_request(self, last: object) -> None:
        if self.cycle is last:
            self.transport.close()


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(
    satchel: Satchel,
    choice: ServedSelection,
    listening: socket.socket,
    address: Address,
    *,
    tokens: BearerTokens | None = None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    per_second: float = 0,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until it is cancelled, on a socket that listens at an address."""
    # With tokens or further names, a proxy on this machine may speak for clients elsewhere.
    is_local = address.is_loopback and tokens is None and not hosts
    endpoints = Endpoints(satchel, choice, local=is_local, tokens=tokens)
    app: ASGIApp = AuthMiddleware(endpoints, tokens=tokens, per_second=per_second)
    if origins:  # before the gate: a browser asks without a token whether it may send one
        app = CORSMiddleware(
            app,
            allow_origins=[origin_of(page) for page in origins],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "mcp-protocol-version", "www-authenticate"],
        )
    config = uvicorn.Config(
        TrustedHosts(app, address, hosts=hosts, origins=origins),
        http=_Connection,
        limit_concurrency=MOST_CONNECTIONS,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_LAST_WORDS,
    )
    server = _Uvicorn(config)
    async with endpoints.open():
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
