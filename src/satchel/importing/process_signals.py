"""The umask and the signal handlers of the process, read without changing them."""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from satchel.lazy_dataclass import dataclass

_STATUS = "/proc/self/status"
_MASKS = ("SigIgn:", "SigCgt:")


@dataclass(frozen=True, slots=True)
class SignalState:
    """The umask and the signal handlers at one moment."""

    umask: int | None
    handlers: Mapping[int, Any]
    masks: tuple[str, ...]
    """The ignored and the caught signals as the kernel knows them: code in C may set them, too."""

    @classmethod
    def now(cls) -> "SignalState":
        """Capture the current state."""
        status = _status()
        handlers = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
        masks = tuple(status.get(name, "") for name in _MASKS)
        return cls(_umask(status), handlers, masks)

    def put_umask_back(self) -> None:
        """Restore the umask."""
        if self.umask is not None:
            os.umask(self.umask)

    def changed_signals(self, now: "SignalState", *, alone: bool) -> list[int]:
        """Return the signals that are handled in another way now.

        Plugins are loaded in other threads than the main one, so only their code in C can set
        handlers. Unless the main thread waits here, and `alone`, the host may have set handlers.
        """
        by_python = {
            number
            for number, handler in self.handlers.items()
            if now.handlers.get(number) is not handler
        }
        changed = set(by_python)
        for before, after in zip(self.masks, now.masks, strict=True):
            bits = int(before or "0", 16) ^ int(after or "0", 16)
            changed |= {bit + 1 for bit in range(bits.bit_length()) if bits >> bit & 1}
        changed -= set() if alone and _is_main_thread() else by_python
        return sorted(changed.intersection(self.handlers))  # without those of the C library

    def put_signals_back(self, numbers: list[int]) -> bool:
        """Restore the handlers of these signals; only the main thread can, and only known ones."""
        if not _is_main_thread():
            return False
        for number in numbers:
            handler = self.handlers.get(number)
            if handler is not None:
                with suppress(OSError, ValueError):
                    # Twice: an unchanged handler would not be set again in the kernel.
                    signal.signal(number, signal.SIG_DFL)
                    signal.signal(number, handler)
        return True


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGINT`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _status() -> dict[str, str]:
    """Return the fields of the process; `{}` where the system has no such file."""
    if not sys.platform.startswith("linux"):
        return {}
    try:
        with open(_STATUS, encoding="ascii", errors="replace") as file:
            fields = (line.partition("\t") for line in file)
            return {name: value.strip() for name, _, value in fields}
    except OSError:
        return {}


def _umask(status: Mapping[str, str]) -> int | None:
    if (text := status.get("Umask:")) is not None:
        return int(text, 8)
    if not _is_main_thread():
        return None  # Elsewhere it can only be read by setting it, while others may create files.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
