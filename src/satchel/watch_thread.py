"""The thread that keeps a `Satchel` current, and the stream of its changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_changes import Change
    from satchel.files.watcher import ChangeEvent

_log = logging.getLogger("satchel.watch_thread")

BACKLOG = 10_000
"""How many changes a reader may lag behind before the oldest are dropped."""

# Seconds before a failed watch starts again.
_RESTART_DELAY = 0.5

# Seconds that stopping a watch waits for a running pass.
_LINGER = 2.0


# Seconds until imports that took too long are tried again; each time it takes twice as long.
_FIRST_RETRY = 10.0
_MOST_RETRIES = 6


class ImportRetry:
    """Calls `retry` in a thread some time after imports took too long, a few times."""

    def __init__(self, retry: Callable[[], None]) -> None:
        self._retry, self._number = retry, 0
        self._timer: threading.Timer | None = None

    def update(self, *, is_late: bool) -> None:
        """Begin to wait if an import took too long, unless it waits already."""
        if not is_late:
            self.stop()
            self._number = 0
        elif self._timer is None and self._number < _MOST_RETRIES:
            self._timer = threading.Timer(_FIRST_RETRY * 2.0**self._number, self._begin)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Wait no longer."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _begin(self) -> None:
        self._number, self._timer = self._number + 1, None
        self._retry()


class WatchThread:
    """A worker thread that runs a reconcile pass for each change event."""

    def __init__(
        self,
        events: Callable[[threading.Event], Iterable[ChangeEvent]],
        handle: Callable[[ChangeEvent], None],
    ) -> None:
        self._events, self._handle = events, handle
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="satchel-watch", daemon=True)

    def start(self) -> None:
        """Start the thread; `wait_until_ready` returns when no change can be missed any more."""
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the watches are set up and everything was compared once after that."""
        self._ready.wait()

    def stop(self) -> None:
        """Stop the watch and wait for its thread, but not for a plugin that hangs in it."""
        self._stop.set()
        self._ready.set()
        self._thread.join(_LINGER)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception:
                # An internal error must not end the watch; it restarts and compares everything.
                _log.exception("scanning the sources failed")
                self._ready.set()
                self._stop.wait(_RESTART_DELAY)

    def _follow(self) -> None:
        for event in self._events(self._stop):
            self._handle(event)
            self._ready.set()


class Changes:
    """The changes of one watch, in order, as an async iterator that ends with the watch.

    A reader that lags too far behind loses the oldest changes; `dropped` counts them. The catalog
    is complete in any case.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Change] = deque()
        self._has_news = asyncio.Event()
        self._closed = False
        self.dropped = 0

    def put(self, change: Change) -> None:
        """Add a change from any thread."""
        with suppress(RuntimeError):  # The loop is closed, so there is no reader.
            self._loop.call_soon_threadsafe(self._add, change)

    def close(self) -> None:
        """End the iteration after the remaining changes."""
        self._closed = True
        self._has_news.set()

    def _add(self, change: Change) -> None:
        if len(self._waiting) >= BACKLOG:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(change)
        self._has_news.set()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._has_news.clear()
            await self._has_news.wait()
        return self._waiting.popleft()


@contextmanager
def calling_on_catalog(
    subscribe: Callable[[Callable[[Catalog], object]], Callable[[], None]],
    function: Callable[[], None],
) -> Iterator[None]:
    """Call a function on this event loop after each new catalog."""
    loop = asyncio.get_running_loop()

    def on_catalog(_catalog: Catalog) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(function)

    unsubscribe = subscribe(on_catalog)
    try:
        yield
    finally:
        unsubscribe()
