"""Limit the sessions and requests of each HTTP principal, and end them with its token."""

import asyncio
import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satchel.mcp.mcp_server import SatchelServer
from satchel.mcp.served_selection import ServedSelection
from satchel.settings import MIB
from satchel.task_set import TaskSet

LARGEST_BODY = 4 * MIB
MOST_SESSIONS = 1_000
"""Open sessions of one principal at each endpoint."""
IDLE_SESSION = 15 * 60.0
"""Seconds after which a session ends that has no open request; clients begin a new one."""
MOST_REQUESTS = 500
"""Open requests of one principal; a notification stream counts as one."""


def session_limit() -> dict[str, Any]:
    """Return the limit of open sessions; SDKs before 2.2 have none, only the time limit."""
    parameters = signature(StreamableHTTPSessionManager.__init__).parameters
    return {"max_sessions": MOST_SESSIONS} if "max_sessions" in parameters else {}


class Principal:
    """All clients that use one token, or all clients if there are no tokens."""

    def __init__(
        self,
        serving: Callable[[ServedSelection], SatchelServer],
        counts: Callable[[], bool] = lambda: True,
    ) -> None:
        self._serving, self._counts = serving, counts
        self._open: dict[ServedSelection, asyncio.Future[ASGIApp]] = {}
        self._tasks = TaskSet()
        self._requests: set[anyio.CancelScope] = set()

    async def serve(
        self, choice: ServedSelection, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve one request."""
        if len(self._requests) >= MOST_REQUESTS:
            refusal = PlainTextResponse("Too many open requests", 503, {"Retry-After": "1"})
            await refusal(scope, receive, send)
            return
        with anyio.CancelScope() as request:
            answer = _Answer(send, self._counts, request.cancel)
            self._requests.add(request)
            try:
                app = await self._app(choice)
                await app(scope, receive, answer)
            finally:
                self._requests.discard(request)
        if request.cancelled_caught:
            await answer.end(scope, receive)

    async def end(self) -> None:
        """End every session and every request."""
        for request in tuple(self._requests):
            request.cancel()
        self._tasks.cancel()
        await self._tasks.wait()

    async def _app(self, choice: ServedSelection) -> ASGIApp:
        if (app := self._open.get(choice)) is None:
            app = self._open[choice] = asyncio.get_running_loop().create_future()
            self._tasks.start(self._hold(choice, app))
        return await asyncio.shield(app)

    async def _hold(self, choice: ServedSelection, ready: asyncio.Future[ASGIApp]) -> None:
        """Run the session manager of one endpoint until it is cancelled."""
        try:
            manager = _Sessions(
                self._serving(choice).server,
                max_request_body_size=LARGEST_BODY,
                session_idle_timeout=IDLE_SESSION,
                **session_limit(),
            )
            async with manager.run():
                ready.set_result(StreamableHTTPASGIApp(manager))
                await asyncio.Event().wait()
        except Exception as problem:
            del self._open[choice]  # the next request tries again
            if ready.done():
                raise
            ready.set_exception(problem)


class _Sessions(StreamableHTTPSessionManager):
    """Ends the session that was idle for the longest time when there is no room for a new one."""

    def _admit_session(self, requestor: Any) -> Any:
        # Private, as the SDK has no other way to make room: it refuses everybody until the idle
        # sessions of one principal end.
        if len(self._server_instances) >= MOST_SESSIONS:
            idle = [
                (transport.idle_scope.deadline, session)
                for session, transport in self._server_instances.items()
                if transport.idle_scope is not None and transport.idle_scope.deadline < math.inf
            ]
            if idle:
                _, oldest = min(idle)
                scope = self._server_instances.pop(oldest).idle_scope
                self._session_owners.pop(oldest, None)
                if scope is not None:
                    scope.cancel()
        return super()._admit_session(requestor)


class _Answer:
    """Sends a response while its token is valid."""

    def __init__(self, send: Send, counts: Callable[[], bool], give_up: Callable[[], None]) -> None:
        self._send, self._counts, self._give_up = send, counts, give_up
        self._has_begun = self._has_ended = False

    async def __call__(self, message: Message) -> None:
        if not self._counts():
            self._give_up()
            await anyio.lowlevel.checkpoint()
        self._has_begun = True
        self._has_ended = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def end(self, scope: Scope, receive: Receive) -> None:
        """Complete the response of a cancelled request."""
        if not self._has_begun:
            await PlainTextResponse("The token is not valid any more", 401)(
                scope, receive, self._send
            )
        elif not self._has_ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
