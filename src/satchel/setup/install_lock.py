"""Lock the folder of installed plugins or skills while one of them is changed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from satchel.files.atomic_write import file_lock
from satchel.setup.folder_placement import repair_placement

_BUSY = "another process installs or removes something here"


@contextmanager
def exclusive_change(target: str, report: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of the folder around `target`. Raises `SatchelError` if it is taken.

    Repairs what a killed process left, and passes a message about it to `report`. SIGTERM and
    SIGHUP interrupt the block.
    """
    # Not `target`: that may be a link to somewhere else.
    in_folder = os.path.join(os.path.dirname(target), "any")
    with ending_in_order(), file_lock(in_folder, busy=_BUSY):
        for line in repair_placement(target):
            report(line)
        yield


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the block like Ctrl-C, so that it can undo its changes.

    Only the first signal interrupts; a second one would interrupt the undo. Signals that the
    program handles or ignores are left alone. Outside the main thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_ending = False

    def interrupt(_number: int, _frame: Any) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    default = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in default:
            signal.signal(number, interrupt)
        yield
    finally:
        for number in default:
            signal.signal(number, signal.SIG_DFL)
