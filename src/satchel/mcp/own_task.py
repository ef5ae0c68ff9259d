"""Run plugin code in its own task so that it cannot cancel ours."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from satchel.errors import ToolError

T = TypeVar("T")


async def run_in_task(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine. Raises `ToolError` if it cancels itself."""
    task = asyncio.create_task(work)
    try:
        return await task
    except asyncio.CancelledError:
        waiting = asyncio.current_task()
        if waiting is None or waiting.cancelling():
            raise
        raise ToolError("It failed: it has cancelled itself.") from None
