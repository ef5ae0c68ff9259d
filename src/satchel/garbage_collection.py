"""Let garbage wait while many objects are made that stay."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 5_000
"""So many new objects would take the collector milliseconds."""


class _Collector:
    """The collector of this process, and who lets it wait: several satchels may at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_on = False
        """Whether it was on when the first pause began, so that the last one switches it on."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, step: int) -> None:
        with self._lock:
            if not self._pauses:
                self._was_on = gc.isenabled()
                gc.disable()
            self._pauses += step
            if not self._pauses:
                self._end()

    def _end(self) -> None:
        if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            # The new objects become old ones unvisited: they stay anyway.
            gc.freeze()
            gc.unfreeze()
        if self._was_on:  # Else leave it: the host may have switched it on meanwhile.
            gc.enable()
        self._was_on = False

    def is_wanted(self) -> bool:
        with self._lock:
            return self._was_on or gc.isenabled()

    def want(self, is_wanted: bool) -> None:
        with self._lock:
            self._was_on = is_wanted and self._pauses > 0
            (gc.enable if is_wanted and not self._pauses else gc.disable)()


_collector = _Collector()

paused_collector = _collector.paused
"""Collect nothing inside a block: the collector would visit the new objects many times.

It counts for the whole process, so no code of a plugin should run inside.
"""
is_collecting = _collector.is_wanted
"""Return whether the process collects garbage, but for such blocks."""
set_collecting = _collector.want
"""Switch the collection on or off, from the end of such blocks on."""
