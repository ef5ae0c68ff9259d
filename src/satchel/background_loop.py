"""An event loop in a thread for hosts without one; asyncio is loaded with its first use."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.runtime.event_loop_thread import EventLoopThread


class LazyEventLoop:
    """An event loop in a thread that starts with the first use, and once in each process."""

    def __init__(self, name: str, patience: float) -> None:
        self._name, self._patience = name, patience
        self._lock = threading.Lock()
        self._thread: EventLoopThread | None = None

    def get(self) -> EventLoopThread:
        """Return the running loop."""
        from satchel.runtime.event_loop_thread import EventLoopThread  # lazy: it loads asyncio

        with self._lock:
            if self._thread is None or self._thread.is_elsewhere:
                self._thread = EventLoopThread(self._name)
                weakref.finalize(self, self._thread.stop, self._patience)
            return self._thread

    def stop(self) -> None:
        """Cancel what still runs there, and end the thread if there is one."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(self._patience)
