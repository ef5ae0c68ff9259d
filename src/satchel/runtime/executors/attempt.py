"""Running one call so that nothing but a cancellation comes out of it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from satchel.tools import ToolCall, ToolResult, failure

Told = TypeVar("Told")


async def attempt(run: Callable[[ToolCall], Awaitable[Told]], call: ToolCall) -> Told | ToolResult:
    """Run a call, and turn what `run` raises against its promise into a result."""
    try:
        return await run(call)
    except Exception:
        # Any: one bad call must not take the others of its step with it.
        import logging

        logging.getLogger("satchel.runtime").exception("running %r failed", call.name)
        return failure("tool_failed", "tool failed", call.id or None)
