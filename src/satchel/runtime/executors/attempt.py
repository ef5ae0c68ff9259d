"""Run one call so that it raises nothing except a cancellation."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from satchel.tools import ToolCall, ToolResult, failure

Outcome = TypeVar("Outcome")


async def attempt(
    run: Callable[[ToolCall], Awaitable[Outcome]], call: ToolCall
) -> Outcome | ToolResult:
    """Run a call; turn an exception, which `run` should not raise, into a result."""
    try:
        return await run(call)
    except Exception:
        # Any: one bad call must not end the other calls of its step.
        import logging

        logging.getLogger("satchel.runtime").exception("running %r failed", call.name)
        return failure("tool_failed", "tool failed", call.id or None)
