"""The time limits of the functions that run in one event loop; all of them share a timer.

Nearly every function ends long before its limit, and a timer for each would cost too much.
"""

import asyncio
from contextlib import suppress
from math import inf
from typing import Protocol

_ATTRIBUTE = "_satchel_clock"


class Timed(Protocol):
    """Something that ends at its time limit."""

    def time_out(self) -> None:
        """End it."""


class CallClock:
    """Ends each function that reaches its time limit."""

    def __init__(self) -> None:
        self._limits: dict[Timed, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next_check = inf

    def start(self, timed: Timed, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """Time something until it is stopped, or until it has taken that long."""
        self._limits[timed] = limit = loop.time() + seconds
        if limit < self._next_check:
            if self._timer is not None:
                self._timer.cancel()
            self._check_at(limit, loop)

    def stop(self, timed: Timed) -> float:
        """Stop timing something, and return when it would have ended, by the clock of the loop."""
        return self._limits.pop(timed, 0.0)

    def _check_at(self, when: float, loop: asyncio.AbstractEventLoop) -> None:
        self._next_check, self._timer = when, loop.call_at(when, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_check, self._timer = inf, None
        now = loop.time()
        for timed in [timed for timed, limit in self._limits.items() if limit <= now]:
            del self._limits[timed]
            timed.time_out()
        if self._limits:
            self._check_at(min(self._limits.values()), loop)


def clock_of(loop: asyncio.AbstractEventLoop) -> CallClock:
    """Return the clock of an event loop; create it if there is none."""
    clock: CallClock | None = getattr(loop, _ATTRIBUTE, None)
    if clock is None:
        clock = CallClock()
        with suppress(AttributeError):  # a loop without attributes: then each call has its own
            setattr(loop, _ATTRIBUTE, clock)
    return clock
