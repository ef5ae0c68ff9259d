"""The thread on whose event loop all servers of a satchel, or of one client, live."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """One event loop in one thread of its own, whatever loops the host has."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="satchel-mcp", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Tell whether this code runs on it, where nobody may wait for it."""
        return threading.current_thread() is self._thread

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin some work there; cancelling the future cancels it. From any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, call: Any, *arguments: Any) -> None:
        """Have something called there. From any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self, patience: float) -> None:
        """End the loop and wait for its thread; what still runs there is cancelled."""
        self.soon(self._loop.stop)
        if not self.is_here:
            self._thread.join(patience)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
