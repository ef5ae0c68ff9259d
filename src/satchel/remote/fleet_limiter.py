"""Limits of groups among all hosts: a slot is a lease in redis, which its host renews."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Mapping

from docket import Docket

from satchel.remote.fleet_registry import ALIVE_FOR, RedisClock
from satchel.remote.remote_keys import BACKOFF, UNREACHABLE, RemoteKeys

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
