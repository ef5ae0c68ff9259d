"""Serve MCP over streamable HTTP: everything at `/mcp`, one group at `/mcp/GROUP`."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from satchel.http.listen_address import Address, origin_of
from satchel.http.quiet_server import QuietServer
from satchel.http.trusted_hosts import TrustedHosts
from satchel.mcp.auth_middleware import CREDENTIAL, AuthMiddleware
from satchel.mcp.bearer_tokens import BearerTokens, Credential
from satchel.mcp.mcp_server import SatchelServer, StartWait
from satchel.mcp.principals import Principal
from satchel.mcp.served_selection import ServedSelection
from satchel.names import BASIC_GROUP
from satchel.satchel import Satchel

PATH = "/mcp"
MOST_CONNECTIONS = 1_000
"""Open connections; most systems let a process open as many files."""
_IDLE_TIMEOUT = 10
"""Seconds in which a client must send a request after it connects or gets a response."""
_BODY_TIMEOUT = 20
"""Further seconds in which the whole request must have arrived."""
_CHECK_INTERVAL = 1.0
"""Seconds until the sessions of a revoked token are closed."""


class Endpoints:
    """Routes a request to the server for its path and credential; servers start on first use.

    A token with groups shows only these groups, at every path.
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
        # Of all servers, so that a server that hangs delays no later client.
        self._start_wait = StartWait.from_now()
        self._servers: dict[ServedSelection, SatchelServer] = {}
        self._principals: dict[Credential | None, Principal] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        credential = scope.get(CREDENTIAL)
        choice = self._choice_for(scope["path"], credential)
        if choice is None:
            await PlainTextResponse("Not found", 404)(scope, receive, send)
            return
        if (principal := self._principals.get(credential)) is None:
            principal = self._principals[credential] = Principal(
                self._server, partial(self._is_valid, credential)
            )
        await principal.serve(choice, scope, receive, send)

    def _is_valid(self, credential: Credential | None) -> bool:
        return not (self._tokens and credential) or self._tokens.counts(credential)

    def _choice_for(self, path: str, credential: Credential | None) -> ServedSelection | None:
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

    def _server(self, choice: ServedSelection) -> SatchelServer:
        """Return the server of a selection; principals with the same selection share it."""
        if (server := self._servers.get(choice)) is None:
            server = self._servers[choice] = SatchelServer(
                self._satchel, choice, local=self._is_local, start_wait=self._start_wait
            )
        return server

    async def _close_revoked(self) -> None:
        """Close the sessions of a token that was revoked or got other groups."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            for credential in [one for one in self._principals if not self._is_valid(one)]:
                await self._principals.pop(credential).end()

    def say_goodbye(self) -> None:
        """Close the notification streams of clients, as the protocol requires."""
        for serving in self._servers.values():
            serving.notifier.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close every server at the end of the block."""
        watching = asyncio.create_task(self._close_revoked())
        try:
            yield
        finally:
            watching.cancel()
            for principal in self._principals.values():
                await principal.end()


class _Connection(H11Protocol):
    """A connection that is closed when it is idle, and when a request does not arrive in time."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the idle timer for the first request."""
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self) -> None:
        """Restart the idle timer; the next request may have come already."""
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        # uvicorn's own timer stops at the first byte of a request.
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(_IDLE_TIMEOUT, self._require_request, self.cycle)

    def _require_request(self, last: object) -> None:
        if self.cycle is last:
            self.transport.close()
        elif self.cycle.more_body:
            self._waiting = self.loop.call_later(_BODY_TIMEOUT, self._require_body, self.cycle)

    def _require_body(self, request: RequestResponseCycle) -> None:
        if self.cycle is request and request.more_body:
            self.transport.close()


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
    # With tokens or further host names, a proxy here may forward clients of other machines.
    is_local = address.is_loopback and tokens is None and not hosts
    endpoints = Endpoints(satchel, choice, local=is_local, tokens=tokens)
    app: ASGIApp = AuthMiddleware(endpoints, tokens=tokens, per_second=per_second)
    if origins:  # before authentication: a browser's preflight request has no token
        app = CORSMiddleware(
            app,
            allow_origins=[origin_of(page) for page in origins],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "mcp-protocol-version", "www-authenticate"],
        )
    server = QuietServer(
        TrustedHosts(app, address, hosts=hosts, origins=origins),
        http=_Connection,
        limit_concurrency=MOST_CONNECTIONS,
    )
    async with endpoints.open():
        running = asyncio.create_task(server.serve([listening]))
        ready()
        try:
            await asyncio.shield(running)
        finally:
            endpoints.say_goodbye()
            server.stop()
            await running
