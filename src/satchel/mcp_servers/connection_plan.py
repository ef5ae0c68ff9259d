"""Choose how the next connection to a server is made, by what happened to the earlier ones."""

from satchel.mcp_servers.connection_errors import SlowStartError, StartLimit, is_refused, reason
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    WorkerServer,
)
from satchel.mcp_servers.server_connection import ProtocolMode
from satchel.mcp_servers.server_options import ServerOptions
from satchel.settings import Limits

_LONGEST_START = 600.0
"""Seconds to which the time for a start grows."""


class ConnectionPlan:
    """The protocol mode, the transport and the time limit of the next connection."""

    def __init__(self, server: RemoteServer, limits: Limits, options: ServerOptions) -> None:
        self._server, self._options = server, options
        self.mode: ProtocolMode = options.protocol
        self.transport: RemoteServer = server
        """How it is reached: over HTTP, or over SSE after it refused that."""
        self._refusal = ""
        """The error of HTTP while SSE is tried."""
        self._late_starts = 0
        self._seconds, self._setting = _first_limit(server, limits, options.startup_timeout)

    @property
    def start_limit(self) -> StartLimit:
        """The time limit of the next start; it doubles after each start that took too long."""
        seconds = self._seconds
        if not isinstance(self._server, WorkerServer):
            longest = max(seconds, _LONGEST_START)
            seconds = min(seconds * 2.0 ** min(self._late_starts, 30), longest)
        return StartLimit(seconds, self._setting)

    def allow_longer_start(self) -> None:
        """Allow more time for the next start."""
        self._late_starts += 1

    def worked(self, mode: ProtocolMode) -> None:
        """Connect in this mode from now on."""
        self.mode, self._late_starts = mode, 0

    def allow_questions(self) -> None:
        """Connect in the older protocol from now on, in which a server can ask during a call."""
        self.mode = "legacy"

    def switch_transport(self, problem: BaseException) -> bool:
        """Use SSE for the next attempt if the server refused HTTP. Return whether it did."""
        server = self.transport
        if not isinstance(server, HttpServer) or not server.or_sse or not is_refused(problem):
            return False
        self._refusal = reason(problem)
        self.transport = SseServer(server.url, server.headers, server.oauth)
        return True

    def failed(self, problem: BaseException) -> str:
        """Plan the next attempt. Return why this one failed."""
        # Some older servers never answer a request that they do not know.
        is_late = isinstance(problem, SlowStartError)
        self.mode = "legacy" if is_late and self.mode == "auto" else self._options.protocol
        if self.transport is self._server:
            return reason(problem)
        # Neither works; what it said to the newer transport is more useful.
        self.transport = self._server
        return self._refusal


def _first_limit(
    server: RemoteServer, limits: Limits, startup_timeout: float | None
) -> tuple[float, str]:
    """Return how many seconds the first start may take, and the setting of that."""
    if startup_timeout is not None:
        return startup_timeout, "startup-timeout"
    if isinstance(server, StdioServer) and not isinstance(server, WorkerServer):
        return limits.mcp_startup, "limit mcp_startup"
    return limits.mcp_connect, "limit mcp_connect"
