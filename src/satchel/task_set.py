"""Tasks in the background that end with their owner."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class TaskSet:
    """Tasks that run until they end or their owner cancels them; an event loop holds none."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work in a task of its own."""
        return self.add(asyncio.create_task(work))

    def add(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Keep a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until all tasks have ended, at most so many seconds. Return whether they have."""
        return not self._tasks or not (await asyncio.wait(self._tasks, timeout=seconds))[1]
