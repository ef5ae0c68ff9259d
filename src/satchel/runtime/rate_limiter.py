"""Rate limits: when a call may start, if only some may start per second.

`asyncio` is imported where it is used: it takes longer to import than this whole package.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from satchel.errors import DefinitionError

if TYPE_CHECKING:
    import asyncio


async def pause(seconds: float) -> None:
    """Sleep as `asyncio.sleep` does."""
    import asyncio

    await asyncio.sleep(seconds)


class RateLimiter:
    """Gives turns by name: `per_second` for each name, and up to `burst` at once after a pause.

    Rates may be given by name; a name without one has the rate of `"*"`, or no limit. The caller
    that waits longest is next, within one event loop. Several loops share the turns, also those
    of several threads.
    """

    __slots__ = ("_burst", "_clock", "_guard", "_intervals", "_lines", "_sleep", "_spent_until")

    def __init__(
        self,
        per_second: float | Mapping[str, float],
        burst: int = 1,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[object]] = pause,
    ) -> None:
        rates = per_second if isinstance(per_second, Mapping) else {"*": per_second}
        for name, rate in rates.items():
            if not rate > 0:  # not "<= 0": that would let NaN pass
                raise DefinitionError(f"a rate of {rate} per second would never let {name!r} start")
        if burst < 1:
            raise DefinitionError(f"a burst of {burst} would never let anything start")
        self._intervals = {name: 1 / rate for name, rate in rates.items()}
        self._burst, self._clock, self._sleep = burst, clock, sleep
        self._guard = Lock()
        # The time from which a whole burst is free again; each turn moves it by one interval.
        self._spent_until: OrderedDict[str, float] = OrderedDict()
        # A line exists while a call waits. Ordered, and no deque: a call that stops waiting
        # leaves from the middle.
        self._lines: dict[
            tuple[asyncio.AbstractEventLoop, str], OrderedDict[asyncio.Future[None], None]
        ] = {}

    def take(self, name: str) -> bool:
        """Take a turn if one is free now and no call waits for it; return whether it was."""
        import asyncio

        if (asyncio.get_running_loop(), name) in self._lines:
            return False
        return not self._spend(name)

    async def wait(self, name: str) -> None:
        """Wait for a turn, and take it; a call that is cancelled meanwhile loses no turn."""
        if self.take(name):
            return
        import asyncio

        loop = asyncio.get_running_loop()
        me: asyncio.Future[None] = loop.create_future()
        line = self._lines.setdefault((loop, name), OrderedDict())
        line[me] = None
        try:
            if next(iter(line)) is not me:
                await me
            while seconds := self._spend(name):
                await self._sleep(seconds)
        finally:
            del line[me]
            if not line:
                del self._lines[loop, name]
            elif not (first := next(iter(line))).done():
                first.set_result(None)

    def _spend(self, name: str) -> float:
        """Take a turn and return 0, or return the seconds until one may be free."""
        interval = self._intervals.get(name, self._intervals.get("*", 0.0))
        if not interval:
            return 0.0
        with self._guard:
            now = self._clock()
            spent_until = self._spent_until.get(name, now)
            free_at = spent_until - (self._burst - 1) * interval
            if free_at > now:
                return free_at - now
            self._spent_until[name] = max(spent_until, now) + interval
            self._spent_until.move_to_end(name)
            self._forget(now)
            return 0.0

    def _forget(self, now: float) -> None:
        """Drop names whose whole burst is free: a model may make up any number of names."""
        while self._spent_until and next(iter(self._spent_until.values())) <= now:
            self._spent_until.popitem(last=False)
