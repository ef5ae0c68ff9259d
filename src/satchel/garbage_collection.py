"""Let garbage wait while many objects are made that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect nothing inside: the collector would visit the new objects many times.

    It counts for the whole process, so no code of a plugin should run inside.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
