"""What a worker writes into redis of one call: that it began, its chunks, and its result."""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from typing import Any
from uuid import uuid4

from docket import Docket

from satchel.lazy_dataclass import dataclass
from satchel.remote.remote_keys import (
    BACKOFF,
    INBOX_LENGTH,
    ITEM,
    RESULT_TTL,
    TRIES,
    UNREACHABLE,
    RemoteKeys,
    loop_time,
)
from satchel.remote.sealed_envelope import seal

_log = logging.getLogger("satchel.remote")

_LARGE = 256 * 1_024
"""Bytes from which a result is not sent: the host fetches it, so redis holds it only once."""


class Start(Enum):
    """Whether a call was begun before."""

    FIRST = "first"
    AGAIN = "again"
    SPENT = "spent"
    """Again, and after all its tries."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CallAddress:
    """Where the answers of a call go, and the version that gives them."""

    call: str
    inbox: str
    digest: str


class RemoteRun:
    """What a worker writes of one run of a call. While redis is away, it tries again."""

    def __init__(self, queue: Docket, keys: RemoteKeys, key: bytes, address: CallAddress) -> None:
        self._queue, self._keys, self._key = queue, keys, key
        self.id, self._inbox, self._digest = address.call, address.inbox, address.digest
        self._run = uuid4().hex

    async def begin(self) -> tuple[Start, bytes | None]:
        """Mark a call as begun; return whether it was begun before, and its stored result."""
        mark, run = self._keys.started(self.id), self._run.encode()
        state, tries = self._queue.runs_key(self.id), self._keys.tries(self.id)

        def write(pipeline: Any) -> None:
            pipeline.set(mark, run, nx=True, ex=RESULT_TTL)
            pipeline.get(mark)
            pipeline.get(self._keys.result(self.id))
            pipeline.hget(state, "state")
            pipeline.zadd(tries, {self._run: 0})  # a set, since this may be written twice
            pipeline.zcard(tries)
            pipeline.expire(tries, RESULT_TTL)
            self._enqueue(pipeline, self._sealed({"started": self._run}))
            pipeline.expire(self._inbox, RESULT_TTL)

        _, by, result, state_now, _, count, *_ = await self._written(write)
        if state_now == b"cancelled":
            return Start.CANCELLED, None
        if result:
            return Start.AGAIN, bytes(result)
        if by == run:
            return Start.FIRST, None
        return (Start.SPENT if count > TRIES else Start.AGAIN), None

    async def chunk(self, count: int, chunk: str) -> None:
        """Send a chunk."""
        message = self._sealed({"run": self._run, "count": count, "chunk": chunk})
        await self._written(lambda pipeline: self._enqueue(pipeline, message))

    async def finish(self, answer: dict[str, Any]) -> None:
        """Keep a result, unless one is kept, and send it.

        Docket acknowledges the call later, so a call that comes again gets the same result.
        """
        message = self._sealed(answer)
        news = message if len(message) < _LARGE else self._sealed({"kept": True})

        def write(pipeline: Any) -> None:
            pipeline.set(self._keys.result(self.id), message, nx=True, ex=RESULT_TTL)
            self._enqueue(pipeline, news)

        await self._written(write)

    async def send(self, message: bytes) -> None:
        """Send a result that was kept."""
        await self._written(lambda pipeline: self._enqueue(pipeline, message))

    async def stored_result_within(self, seconds: float) -> bytes | None:
        """Wait a while for the result of another worker; return it, or `None`."""
        until, key = loop_time() + seconds, self._keys.result(self.id)
        while loop_time() < until:
            (result,) = await self._written(lambda pipeline: pipeline.get(key))
            if result is not None:
                return bytes(result)
            await asyncio.sleep(seconds / 10)
        return None

    def _sealed(self, item: dict[str, Any]) -> bytes:
        return seal(self._key, ITEM, {"id": self.id, "digest": self._digest, **item})

    def _enqueue(self, pipeline: Any, message: bytes) -> None:
        pipeline.xadd(self._inbox, {"item": message}, maxlen=INBOX_LENGTH)

    async def _written(self, write: Callable[[Any], object]) -> list[Any]:
        """Send commands in one message to redis, as one transaction; try until it answers."""
        is_new = True
        while True:
            try:
                async with self._queue.redis() as redis, redis.pipeline() as pipeline:
                    write(pipeline)
                    return list(await pipeline.execute())
            except UNREACHABLE as problem:
                if is_new:
                    _log.warning("redis cannot be reached: %s", type(problem).__name__)
                is_new = False
                await asyncio.sleep(BACKOFF)
