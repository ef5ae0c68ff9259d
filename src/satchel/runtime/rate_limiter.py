"""Turns: who may begin when, if only so many may begin in a second.

`asyncio` is imported where it is used: it takes longer to import than all of this room.
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
    """Hands out turns by name, `per_second` of each, and up to `burst` at once after a rest.

    The rates may be given by name; a name without one has that of `"*"`, or else no limit.
    Whoever waits longest is next, within one event loop; several loops, also those of several
    threads, share the turns.
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
                raise DefinitionError(f"a rate of {rate} per second would never let {name!r} go")
        if burst < 1:
            raise DefinitionError(f"a burst of {burst} would never let anything go")
        self._intervals = {name: 1 / rate for name, rate in rates.items()}
        self._burst, self._clock, self._sleep = burst, clock, sleep
        self._guard = Lock()
        # Each turn moves the moment from which a whole burst may be had again by one interval.
        self._spent_until: OrderedDict[str, float] = OrderedDict()
        # A line is there as long as somebody waits. Ordered, and no deque: one who stops waiting
        # leaves from the middle.
        self._lines: dict[
            tuple[asyncio.AbstractEventLoop, str], OrderedDict[asyncio.Future[None], None]
        ] = {}

    def take(self, name: str) -> bool:
        """Take a turn if one can be had at once and nobody waits for it, and tell whether."""
        import asyncio

        if (asyncio.get_running_loop(), name) in self._lines:
            return False
        return not self._spend(name)

    async def wait(self, name: str) -> None:
        """Wait for a turn, and take it; one who is cancelled meanwhile leaves no gap."""
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
        """Take a turn and return 0, or return the seconds until there may be one."""
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
        """Drop what has recovered, the longest unused first: a model may make up any name."""
        while self._spent_until and next(iter(self._spent_until.values())) <= now:
            self._spent_until.popitem(last=False)
