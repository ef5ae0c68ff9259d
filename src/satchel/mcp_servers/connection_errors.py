"""Why a server cannot be reached, in words for people."""

import asyncio
from typing import TypeVar

from satchel.errors import SatchelError
from satchel.text import one_line, shorten

E = TypeVar("E", bound=BaseException)

GONE = "went away"
_CLOSED = "Connection closed"
"""What the SDK says, whatever was asked just then."""


def first_error(problem: BaseException, kind: type[E]) -> E | None:
    """Return the first error of a kind among those that tasks raised together."""
    if isinstance(problem, kind):
        return problem
    inside = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return next((found for item in inside if (found := first_error(item, kind))), None)


def reason(problem: BaseException) -> str:
    """Say why a server cannot be reached, without texts of others that may hold secrets."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    match problem:
        case SatchelError():
            return problem.message
        case asyncio.CancelledError():
            return GONE
        case FileNotFoundError():
            return "cannot be started: there is no such program or folder"
        case ImportError():
            return "cannot be reached without the extra mcp: pip install 'satchel[mcp]'"
        case _:
            return _reason_of_others(problem)


def _reason_of_others(problem: BaseException) -> str:
    from httpx2 import HTTPStatusError
    from mcp import MCPError

    match problem:
        case HTTPStatusError():
            return f"answered with status {problem.response.status_code}"
        case MCPError() if str(problem) == _CLOSED:
            return GONE
        case RuntimeError() if "protocol version" in str(problem):  # so says the SDK
            return "speaks a version of the protocol that is not known here"
        case OSError() | MCPError():
            said = f": {shorten(one_line(str(problem)), 200)}"
        case _:
            said = ""
    return f"cannot be reached: {type(problem).__name__}{said}"
