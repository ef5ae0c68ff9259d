"""Explain why a server cannot be reached."""

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError, ToolError, install_hint
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer
from satchel.runtime.redaction import redacted
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.mcp_servers.server_process import StderrBuffer

E = TypeVar("E", bound=BaseException)


class HeldProgramError(SatchelError):
    """The program of a server must not be started; `diagnostic` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message, fix=diagnostic.fix)
        self.diagnostic = diagnostic


class CannotAskError(ToolError):
    """A server had a question in the middle of a call, and this connection does not allow it."""


class SessionExpiredError(ToolError):
    """A server does not know the session of a request any more, so it did nothing."""


class StartLimit(NamedTuple):
    """How long a server may take to start or to be reached, and the setting of that."""

    seconds: float
    setting: str


class SlowStartError(SatchelError):
    """A server did not answer in the time that it may take to start."""

    def __init__(self, limit: StartLimit) -> None:
        super().__init__(f"did not respond within {limit.seconds:g} s ({limit.setting})")


_NO_PROGRAM = "cannot be started: the program or its working folder does not exist"
_NO_EXTRA = "cannot be reached without the extra mcp"
GONE = "disconnected"
_CLOSED = "Connection closed"
"""The SDK's message for every request that was open when the connection closed."""
_STREAM = "SSE stream "
"""How the SDK's messages begin for a request whose response stream ended without the response."""


def first_error(problem: BaseException, kind: type[E]) -> E | None:
    """Return the first error of a kind in an exception group, at any depth."""
    if isinstance(problem, kind):
        return problem
    nested = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return next((error for item in nested if (error := first_error(item, kind))), None)


def is_connection_closed(problem: Any) -> bool:
    """Return whether an `MCPError` means that the connection closed."""
    from mcp_types import CONNECTION_CLOSED

    # Servers use the code for other errors, too.
    message = problem.message
    is_ours = message == _CLOSED or message.startswith(_STREAM)
    return bool(problem.code == CONNECTION_CLOSED and is_ours)


def unsent_question(problem: Any) -> str | None:
    """Return the method of the question that a server could not send, if an `MCPError` says so.

    In the newer protocol there are no questions in the middle of a call.
    """
    from mcp_types import INVALID_REQUEST

    # So do servers of the Python SDK; for other servers the message stays what it is.
    message = problem.message
    if problem.code != INVALID_REQUEST or "no back-channel" not in message:
        return None
    return str(message.partition("'")[2].partition("'")[0])


def is_expired(problem: Any) -> bool:
    """Return whether an `MCPError` means that the HTTP session is unknown: nothing was done."""
    return bool(getattr(problem, "message", "") == SESSION_EXPIRED)


SESSION_EXPIRED = "the HTTP session is unknown to the server"
"""The message that our HTTP transport gives to the status 404 for a request of a session."""

_UNREADABLE = (
    "Failed to parse JSON response: ",
    "Failed to parse SSE message: ",
    "Unexpected content type: ",
)
"""How the SDK's messages begin for a response that cannot be read."""


def is_unreadable(problem: Any) -> bool:
    """Return whether an `MCPError` means that a response came and could not be read."""
    return bool(problem.message.startswith(_UNREADABLE))


_NOT_THE_TRANSPORT = frozenset({401, 403, 407, 408, 425, 429, 451})
"""Statuses of 4xx that a server of the right transport sends, too."""


def is_refused(problem: BaseException) -> bool:
    """Return whether a server refused streamable HTTP itself, as one with only SSE does."""
    if first_error(problem, ImportError) is not None:  # the extra is missing, and httpx2 with it
        return False
    from httpx2 import HTTPStatusError

    error = first_error(problem, HTTPStatusError)
    if error is None:
        return False
    status = error.response.status_code
    return status // 100 == 4 and status not in _NOT_THE_TRANSPORT  # noqa: PLR2004 - 4xx


def reason(problem: BaseException) -> str:
    """Explain an error, without texts of other libraries that may contain secrets."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    match problem:
        case SatchelError():
            return problem.message
        case asyncio.CancelledError():
            return GONE
        case FileNotFoundError():
            return _NO_PROGRAM
        case ImportError():
            return f"{_NO_EXTRA}: {install_hint('mcp')}"
        case _:
            return _library_reason(problem)


def _library_reason(problem: BaseException) -> str:
    from httpx2 import HTTPStatusError
    from mcp import MCPError

    match problem:
        case HTTPStatusError():
            return f"answered with HTTP status {problem.response.status_code}"
        case MCPError() if str(problem) == _CLOSED:
            return GONE
        case RuntimeError() if "protocol version" in str(problem):  # the SDK's message
            return "speaks an unsupported version of the protocol"
        case OSError() | MCPError():
            detail = f": {shorten(one_line(str(problem)), 200)}"
        case _:
            detail = ""
    return f"cannot be reached: {type(problem).__name__}{detail}"


def starting_diagnostic(name: str, server: RemoteServer) -> Diagnostic:
    """Return the diagnostic for a server that was never connected."""
    if isinstance(server, WorkerServer):
        return _down(name, server, "is not connected yet")
    return make_diagnostic(
        "mcp-server-starting",
        Where(str(server)),
        f"MCP server {name!r} is starting; its tools come when it is connected",
        "wait until it is connected, or reports why it is not",
    )


def down_diagnostic(
    name: str, server: RemoteServer, why: str, output: "StderrBuffer"
) -> Diagnostic:
    """Return the diagnostic for a server that is down, with what its process printed last."""
    last_line = shorten(one_line(output.last_line), 200)
    why += f"; its last line on stderr: {last_line}" if last_line else ""
    printed = shorten(one_line(output.printed), 200)
    why += f"; on stdout it printed, in place of MCP messages: {printed}" if printed else ""
    return _down(name, server, redacted(why, {"": server.secrets}))


def _down(name: str, server: RemoteServer, why: str) -> Diagnostic:
    if isinstance(server, WorkerServer):
        return make_diagnostic(
            "plugin-worker-down",
            Where(str(server)),
            f"the process of plugin {name!r} {why}",
            "fix its code; it is restarted automatically",
        )
    where, message = Where(str(server)), f"MCP server {name!r} {why}"
    if why.startswith(_NO_EXTRA):
        fix = "install the extra, then start again"
        return make_diagnostic("mcp-server-down", where, message, fix)
    fix = "start or fix the server; it is reconnected automatically"
    if why.startswith(_NO_PROGRAM) and " " in getattr(server, "command", ""):
        fix = "write only the program in 'command', and its arguments in 'args'"
    return make_diagnostic("mcp-server-down", where, f"{message}; its tools are revoked", fix)
