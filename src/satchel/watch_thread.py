"""Watching: the thread that brings a satchel up to date, and the stream of what changed."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from satchel.catalog import Change
from satchel.sources import ChangeEvent

_log = logging.getLogger("satchel.watch_thread")

BACKLOG = 10_000
"""How many changes a reader may lag behind before the oldest are dropped."""

# Seconds before a watch that failed begins anew.
_AFTER_A_FAULT = 0.5

# Seconds that the end of a watch waits for a look that is under way.
_LINGER = 2.0


class WatchThread:
    """One worker: it takes a hint, has the look taken, and waits for the next hint."""

    def __init__(
        self,
        hints: Callable[[threading.Event], Iterable[ChangeEvent]],
        take: Callable[[ChangeEvent], None],
    ) -> None:
        self._hints, self._take = hints, take
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="satchel-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch; `wait_until_ready` returns when no change can be missed any more."""
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the watches stand and everything has been compared once since."""
        self._ready.wait()

    def stop(self) -> None:
        """End the watch and wait for its thread, but not for a plugin that hangs in it."""
        self._stop.set()
        self._ready.set()
        self._thread.join(_LINGER)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception:
                # A fault of ours must not end the watch; it begins anew and compares everything.
                _log.exception("looking at the sources failed")
                self._ready.set()
                self._stop.wait(_AFTER_A_FAULT)

    def _follow(self) -> None:
        for hint in self._hints(self._stop):
            self._take(hint)
            self._ready.set()


class Changes:
    """The changes of one watch, in order, as an async iterator that ends with the watch.

    A reader that lags too far behind loses the oldest changes and finds their number in
    `dropped`; the catalog is complete all the same.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Change] = deque()
        self._news = asyncio.Event()
        self._closed = False
        self.dropped = 0

    def put(self, change: Change) -> None:
        """Add a change from any thread."""
        with suppress(RuntimeError):  # The loop is closed: nobody reads any more.
            self._loop.call_soon_threadsafe(self._add, change)

    def close(self) -> None:
        """End the iteration once everything was read."""
        self._closed = True
        self._news.set()

    def _add(self, change: Change) -> None:
        if len(self._waiting) >= BACKLOG:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(change)
        self._news.set()

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
