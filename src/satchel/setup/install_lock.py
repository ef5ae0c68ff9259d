"""Lock the folder of a plugin while it is installed or removed."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from satchel.errors import SatchelError
from satchel.files.file_reader import reason_of
from satchel.setup.folder_placement import repair_placement

if sys.platform != "win32":
    import fcntl

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def exclusive_change(target: str, report: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of the plugin at `target`. Raises `SatchelError` if another process has it.

    Repairs what a killed process left, and passes a message about it to `report`. SIGTERM and
    SIGHUP interrupt the block.
    """
    with ending_in_order(), _locked(target):
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


@contextmanager
def _locked(target: str) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    folder, name = os.path.split(target)
    path = os.path.join(folder, f".{name}.lock")
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = _lock(path)
    except BlockingIOError:
        message = "is being installed or removed by another process"
        fix = "wait until it ends, then try again"
        raise SatchelError(message, where=target, fix=fix) from None
    except OSError as problem:
        raise SatchelError(f"cannot change: {reason_of(problem)}", where=target) from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _lock(path: str) -> int:
    """Return a descriptor that holds the lock. Raises `BlockingIOError` if it is taken."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:
            return descriptor  # the file system does not support locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # the former owner deleted the file in between
