"""Explain why a server cannot be reached."""

import asyncio
from typing import Any, TypeVar

from satchel.diagnostics import Diagnostic
from satchel.errors import SatchelError, install_hint
from satchel.text import one_line, shorten

E = TypeVar("E", bound=BaseException)


class HeldProgramError(SatchelError):
    """The program of a server must not be started; `diagnostic` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message, fix=diagnostic.fix)
        self.diagnostic = diagnostic


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


_NOT_THE_TRANSPORT = frozenset({401, 403, 407, 408, 425, 429, 451})
"""Statuses of 4xx that a server of the right transport sends, too."""


def is_refused(problem: BaseException) -> bool:
    """Return whether a server refused streamable HTTP itself, as one with only SSE does."""
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
            return "cannot be started: the program or its working folder does not exist"
        case ImportError():
            return f"cannot be reached without the extra mcp: {install_hint('mcp')}"
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
