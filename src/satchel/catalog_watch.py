"""The watch of one satchel: one thread, shared by all blocks that watch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.files.watch_targets import WatchTargets
    from satchel.files.watcher import ChangeEvent
    from satchel.reconciler import Reconciler
    from satchel.watch_thread import WatchThread


class CatalogWatch:
    """Runs a pass for each change on disk, while at least one block watches."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler = reconciler
        self._thread: WatchThread | None = None
        self._users = 0

    @property
    def is_running(self) -> bool:
        """Whether a block watches now."""
        return self._thread is not None

    def start(self) -> WatchThread:
        """Start the watch thread, or share the running one."""
        from satchel.watch_thread import WatchThread  # lazy: needed only by a watch

        with self._reconciler.lock:
            self._reconciler.require_open()
            self._users += 1
            if self._thread is None:
                self._thread = WatchThread(self.events, self._on_event)
                self._thread.start()
                self._reconciler.start_import_retry()
            return self._thread

    def stop(self) -> None:
        """Stop the thread if no other block uses it."""
        with self._reconciler.lock:
            self._users -= 1
            if self._users or self._thread is None:
                return
            thread, self._thread = self._thread, None
            self._reconciler.stop_import_retry()
        thread.stop()

    def events(self, stop: threading.Event) -> Iterable[ChangeEvent]:
        """Yield an event for each change, until `stop` is set."""
        from satchel.files.watcher import change_events  # lazy: needed only by a watch

        lock, settings = self._reconciler.config.lock, self._reconciler.settings
        if lock is not None and lock.is_frozen:
            from satchel.files.watcher import no_events  # lazy: as above

            return no_events(stop)
        polling = settings.polling or bool(os.environ.get("WATCHFILES_FORCE_POLLING"))
        return change_events(self._targets, stop, settings.pace, polling=polling)

    def _targets(self) -> WatchTargets:
        return self._reconciler.cache.watch_targets()  # each time those of the newest pass

    def _on_event(self, event: ChangeEvent) -> None:
        self._reconciler.refresh_in_background(
            event.paths, debounce=True, diagnostics=event.diagnostics
        )
