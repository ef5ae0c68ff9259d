"""An event loop in a daemon thread, for coroutines of code that has no loop.

Not anyio's `BlockingPortal`: that blocks the calling thread, which may be a host's event loop,
until the other loop has started the work; and it ends only when all its work has ended.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoopThread:
    """One event loop in one thread; `prepare` runs there first."""

    def __init__(self, name: str, prepare: Callable[[], object] = lambda: None) -> None:
        self._loop, self._prepare = asyncio.new_event_loop(), prepare
        self._lock, self._is_open = threading.Lock(), True
        self._ready, self._process = threading.Event(), os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in another process, of which this one is a fork."""
        return os.getpid() != self._process

    @property
    def is_here(self) -> bool:
        """Whether this code runs in that thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine there; cancelling the future cancels it. Thread-safe.

        Raises `RuntimeError` if the thread has ended. Do not call it in a forked process.
        """
        with self._lock:
            if self._is_open:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise RuntimeError("the thread has ended")

    def wait_until_ready(self) -> None:
        """Wait until `prepare` has returned."""
        self._ready.wait()

    def soon(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call a function there, unless the thread has ended or is elsewhere. Thread-safe."""
        if self.is_elsewhere:
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self, patience: float) -> None:
        """Cancel the work that still runs; wait up to `patience` seconds for the thread to end."""
        self.soon(self._loop.stop)
        if not self.is_here:
            self._thread.join(patience)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with suppress(Exception):  # the work that needs it reports the failure
            self._prepare()
        self._ready.set()
        try:
            self._loop.run_forever()
            with self._lock:
                self._is_open = False
            # One round, so that all work that was started has its task.
            self._loop.run_until_complete(asyncio.sleep(0))
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
