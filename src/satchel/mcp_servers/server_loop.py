"""The thread on whose event loop all servers of a satchel, or of one client, live."""

import asyncio
import os
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
        self._lock, self._is_open = threading.Lock(), True
        self._ready, self._process = threading.Event(), os.getpid()
        self._thread = threading.Thread(target=self._run, name="satchel-mcp", daemon=True)
        self._thread.start()

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether it runs in another process, of which this one is a fork."""
        return os.getpid() != self._process

    @property
    def is_here(self) -> bool:
        """Tell whether this code runs on it, where nobody may wait for it."""
        return threading.current_thread() is self._thread

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin some work there; cancelling the future cancels it. From any thread.

        Raises `RuntimeError` once it has ended. Not for a thread that is elsewhere.
        """
        with self._lock:
            if self._is_open:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise RuntimeError("the thread has ended")

    def wait_until_ready(self) -> None:
        """Wait until servers can be reached: loading the SDK takes a second, or some."""
        self._ready.wait()

    def soon(self, call: Any, *arguments: Any) -> None:
        """Have something called there, unless it has ended or is elsewhere. From any thread."""
        if self.is_elsewhere:
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self, patience: float) -> None:
        """End the loop and wait for its thread; what still runs there is cancelled."""
        self.soon(self._loop.stop)
        if not self.is_here:
            self._thread.join(patience)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with suppress(Exception):  # whatever is wrong with it is told of whoever is to be reached
            import mcp.client.streamable_http  # noqa: F401 - before any time limit runs
        self._ready.set()
        try:
            self._loop.run_forever()
            with self._lock:
                self._is_open = False
            # What was begun until now is a task after this round.
            self._loop.run_until_complete(asyncio.sleep(0))
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
