"""Changing the place of a plugin: one at a time, and to the end."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from satchel.errors import SatchelError
from satchel.setup.folder_placement import repair_placement
from satchel.sources.file_reader import reason_of

if sys.platform != "win32":
    import fcntl

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def exclusive_change(target: str, tell: Callable[[str], object]) -> Iterator[None]:
    """Let nobody else install or remove the plugin at `target` meanwhile.

    What one that was killed left there is put in order first, and told. A signal that ends the
    program interrupts the block. Raises `SatchelError` if somebody else is at it.
    """
    with ending_in_order(), _locked(target):
        for line in repair_placement(target):
            tell(line)
        yield


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the block as Ctrl-C does, so that it can put things back.

    Only the first one does: those that follow would interrupt the putting back. What the program
    handles itself or ignores stays so, and outside the main thread nothing can be done.
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
    ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, interrupt)
        yield
    finally:
        for number in ours:
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
        fault = "is being installed or removed by somebody else"
        raise SatchelError(
            fault, where=target, fix="wait for their end, and say it again"
        ) from None
    except OSError as problem:
        raise SatchelError(f"cannot be changed: {reason_of(problem)}", where=target) from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _lock(path: str) -> int:
    """Return a descriptor that holds the lock. Raises `BlockingIOError` if somebody has it."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:
            return descriptor  # a file system that knows no locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # whoever had it took it away in between
