"""Let garbage wait while many objects are made that stay."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 5_000
"""So many new objects would take the collector milliseconds."""
_FEW = 1_000
"""More than the immortal objects that Python 3.12 freezes itself, and fewer than a host would."""
_NEVER = 2_000_000_011
"""No block makes so many objects, and no host sets this threshold itself."""


class _Collector:
    """The collector of this process, which several satchels may let wait at once.

    It is paused by its threshold: the host may switch it on and off meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._thresholds = gc.get_threshold()
        """Those of the host."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                self._begin()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses:
                    self._end()

    def _begin(self) -> None:
        thresholds = gc.get_threshold()
        # A host that read it in a pause may have set it again after that.
        if thresholds[0] != _NEVER:
            self._thresholds = thresholds
        gc.set_threshold(_NEVER, *thresholds[1:])

    def _end(self) -> None:
        if gc.get_count()[0] > _MANY and gc.get_freeze_count() < _FEW:
            # The new objects become old ones unvisited: they stay anyway.
            gc.freeze()
            gc.unfreeze()
        if gc.get_threshold()[0] == _NEVER:  # Else the host changed it meanwhile.
            gc.set_threshold(*self._thresholds)


_collector = _Collector()

paused_collector = _collector.paused
"""Collect nothing inside a block: the collector would visit the new objects many times.

It counts for the whole process, so no code of a plugin should run inside.
"""
