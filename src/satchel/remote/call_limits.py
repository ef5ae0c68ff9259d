"""Limits of calls: turns of sessions in a host, slots of groups in a worker or in all hosts."""

import asyncio
import random
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping
from contextlib import asynccontextmanager

from docket import Docket

from satchel.remote.fleet_registry import ALIVE_FOR, RedisClock
from satchel.remote.remote_keys import BACKOFF, UNREACHABLE, RemoteKeys

LimitNames = tuple[Hashable, ...]


class FairSemaphore:
    """Lets calls through as long as no limit is reached; those that wait take turns by session.

    A call needs a slot of each of its `limits`; `capacity_of` returns how many slots a limit has.
    """

    def __init__(self, capacity_of: Callable[[Hashable], int]) -> None:
        self._capacity_of = capacity_of
        self._used: Counter[Hashable] = Counter()
        # By limits first, so that no call waits behind one that needs another limit.
        self._waiting: dict[LimitNames, dict[Hashable, deque[asyncio.Future[None]]]] = {}
        self.waiting = 0
        """How many calls wait."""

    async def acquire(self, session: Hashable, limits: Collection[Hashable]) -> None:
        """Wait for a slot of each limit; call `release` with the same limits afterwards."""
        limits = tuple(limits)
        if limits not in self._waiting and self._has_slot(limits):
            self._used.update(limits)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(limits, {}).setdefault(session, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(limits)  # it was let through in the same moment
            raise
        finally:
            self.waiting -= 1

    def release(self, limits: Collection[Hashable]) -> None:
        """Give the slots back."""
        self._used.subtract(limits)
        self.admit()

    def admit(self) -> None:
        """Let calls through that have a slot of each limit; call it when a limit has grown."""
        for limits in tuple(self._waiting):
            sessions = self._waiting[limits]
            has_moved = False
            while sessions and self._has_slot(limits):
                session = next(iter(sessions))
                turns = sessions.pop(session)
                turn = turns.popleft()
                if not turn.done():  # else its caller has left
                    turn.set_result(None)
                    self._used.update(limits)
                    has_moved = True
                if turns:
                    sessions[session] = turns  # behind the others
            if has_moved or not sessions:
                # To the end, so that other sets of limits come first next time.
                del self._waiting[limits]
                if sessions:
                    self._waiting[limits] = sessions

    def _has_slot(self, limits: LimitNames) -> bool:
        return all(self._used[limit] < self._capacity_of(limit) for limit in limits)


class GroupLimiter:
    """Limits the calls of each group on one worker, for all plugins together; hosts take turns."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._semaphore = FairSemaphore(lambda group: limits[str(group)])

    @asynccontextmanager
    async def acquired(self, host: str, groups: Collection[str]) -> AsyncIterator[None]:
        """Wait for a slot of each of the groups that have a limit, and hold them inside."""
        limits = tuple(group for group in groups if group in self._limits)
        await self._semaphore.acquire(host, limits)
        try:
            yield
        finally:
            self._semaphore.release(limits)


_POLL = 0.1
"""Seconds between two tries to get a slot."""
_FORGOTTEN_AFTER = 60


class FleetLimiter:
    """The slots that the calls of one host have in limited groups."""

    def __init__(self, keys: RemoteKeys, clock: RedisClock, limits: Mapping[str, int]) -> None:
        self._keys, self._clock, self._limits = keys, clock, limits
        self._held: defaultdict[str, set[str]] = defaultdict(set)

    async def acquire(self, docket: Docket, call: str, groups: Collection[str]) -> None:
        """Wait for a slot of each group; also if this raises, call `release` afterwards."""
        for group in sorted(groups):  # in one order, so that no two calls wait for each other
            self._held[group].add(call)
            while not await self._has_acquired(docket, call, group):  # noqa: ASYNC110
                await asyncio.sleep(_POLL * random.uniform(0.5, 1.5))  # noqa: S311

    async def release(self, docket: Docket, call: str, groups: Collection[str]) -> None:
        """Give the slots of a call back; without redis they are free after a while."""
        for group in groups:
            self._held[group].discard(call)
        try:
            async with docket.redis() as redis:
                for group in groups:
                    await redis.zrem(self._keys.slots(group), call)
        except UNREACHABLE:
            pass

    async def renew(self, docket: Docket) -> None:
        """Renew all slots; call it about once a second."""
        for group, calls in self._held.items():
            if calls:
                async with docket.redis() as redis:
                    now = await self._clock.ask(redis)
                    await redis.zadd(self._keys.slots(group), dict.fromkeys(calls, now), xx=True)

    async def _has_acquired(self, docket: Docket, call: str, group: str) -> bool:
        key = self._keys.slots(group)
        try:
            async with docket.redis() as redis:
                now = await self._clock.ask(redis)
                async with redis.pipeline() as pipeline:
                    pipeline.zremrangebyscore(key, 0, now - ALIVE_FOR)
                    pipeline.zadd(key, {call: now})
                    pipeline.zcard(key)
                    pipeline.expire(key, _FORGOTTEN_AFTER)
                    _, _, count, _ = await pipeline.execute()
                # Two that try at once may both fail, and never both succeed.
                if count > self._limits[group]:
                    await redis.zrem(key, call)
                    return False
        except UNREACHABLE:
            await asyncio.sleep(BACKOFF)
            return False
        return True
