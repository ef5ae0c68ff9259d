"""Foreign code in a task of its own, so that what it does to its task is nobody else's affair."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from satchel.errors import ToolError

T = TypeVar("T")


async def run_in_task(work: Coroutine[Any, Any, T]) -> T:
    """Wait for some work. Raises `ToolError` if nobody but itself has cancelled it."""
    task = asyncio.create_task(work)
    try:
        return await task
    except asyncio.CancelledError:
        waiting = asyncio.current_task()
        if waiting is None or waiting.cancelling():
            raise
        raise ToolError("It failed: it has cancelled itself.") from None
