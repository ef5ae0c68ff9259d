"""The host's connections: send calls, and read all that comes back from one stream."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Hashable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from docket import Docket

from satchel.lazy_dataclass import dataclass
from satchel.remote.call_limits import FairSemaphore, FleetLimiter, LimitNames
from satchel.remote.docket_json import json_only, open_docket
from satchel.remote.fleet_registry import FleetRegistry, RedisClock, WorkerCapacity
from satchel.remote.remote_faults import RemoteFaults
from satchel.remote.remote_keys import (
    BACKOFF,
    CALL,
    ITEM,
    RESULT_TTL,
    TASK,
    TRIES,
    UNREACHABLE,
    RemoteKeys,
    loop_time,
)
from satchel.remote.sealed_envelope import EnvelopeError, as_text, mark_of, open_sealed, seal
from satchel.remote.sent_call import (
    BUSY,
    MAY_HAVE_RUN,
    NO_WORKER,
    SentCall,
    arguments_of,
    may_run_again,
    queue_name_of,
    unknown_outcome,
)
from satchel.task_set import TaskSet
from satchel.tools import ToolCall, failure
from satchel.tools.runner import RunnerSignal
from satchel.tools.tool_results import FinalResult
from satchel.workers.codec import encode_context

NoWorkerPolicy = Literal["here", "wait", "refuse"]
"""What becomes of a call while no worker has its version."""

_READ_TIMEOUT = 1_000
"""Milliseconds that one read of the inbox waits."""
_SILENCE = 3.0
"""Seconds after which a read that has not ended is reported: redis may be paused."""
_BATCH_SIZE = 200
"""Messages that one read of the inbox takes."""
_CHECK_AFTER = 2.0
"""Seconds without news after which redis is asked for a call: a message may have been lost."""
_MAX_MISSES = 3
_CAPACITY_TTL = 1.0
"""Seconds that the workers of a version are remembered."""
_CONNECTIONS = 16
"""Connections that calls use at once; the pool of docket has a limit and does not wait."""
_QUEUES = 32
"""Versions with an open queue; beyond that, idle ones are closed."""
_CANCEL_TIMEOUT = 0.5
"""Seconds that a cancelled call waits until redis has its cancellation.

After that, the cancellation is sent in the background.
"""


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """What a host does with calls that cannot be sent at once."""

    when_no_worker: NoWorkerPolicy
    queue: int
    """How many calls may wait; more are refused."""
    limits: Mapping[str, int]
    """How many calls of a group may be under way."""


@dataclass(slots=True, kw_only=True)
class VersionQueue:
    """The queue of one version of a plugin, and what was last known of it."""

    docket: Docket
    known_at: float = 0.0
    """When `capacity` and `length` were read."""
    capacity: WorkerCapacity
    length: int = 0
    """How many calls waited or ran."""
    used: int = 0
    """How many calls of this host are under way."""

    @property
    def slots(self) -> int:
        """How many calls its workers run at once; 0 without a worker."""
        return self.capacity.slots


class HostConnection:
    """The connections of one event loop, with one reader for all of its calls."""

    def __init__(
        self,
        url: str,
        keys: RemoteKeys,
        key: bytes,
        faults: RemoteFaults,
        policy: RoutingPolicy,
    ) -> None:
        self._url, self._keys, self._key, self._faults = url, keys, key, faults
        self._limits, self._when_no_worker = policy.limits, policy.when_no_worker
        self._inbox = keys.inbox(uuid4().hex)
        self._queues: dict[str, VersionQueue] = {}
        self._calls: dict[str, list[SentCall]] = {}
        self._tasks = TaskSet()
        self._reader: asyncio.Task[None] | None = None
        self._registry = FleetRegistry(keys, key, RedisClock())
        self._fleet = FleetLimiter(keys, self._registry.clock, policy.limits)
        self._lock, self._connections = asyncio.Lock(), asyncio.Semaphore(_CONNECTIONS)
        self.semaphore = FairSemaphore(self._capacity_of)

    # ---- the queue of a version ---------------------------------------------------------------

    async def queue_of(self, digest: str) -> VersionQueue:
        """Return the queue of a version, with what is known of it now."""
        queue = self._queues.get(digest)
        if queue is not None and loop_time() - queue.known_at < _CAPACITY_TTL and queue.slots:
            return queue
        async with self._lock:
            queue = self._queues.get(digest) or await self._opened(digest)
            if loop_time() - queue.known_at >= _CAPACITY_TTL or not queue.slots:
                async with queue.docket.redis() as redis:
                    queue.capacity = await self._registry.capacity(redis, digest)
                    queue.length = await redis.xlen(queue.docket.stream_key)
                queue.known_at = loop_time()
                self.semaphore.admit()
        return queue

    async def _opened(self, digest: str) -> VersionQueue:
        for other in [name for name, it in self._queues.items() if not it.used]:
            if len(self._queues) >= _QUEUES:
                await self._queues.pop(other).docket.__aexit__(None, None, None)
        docket = open_docket(self._url, self._keys.name, mark_of(self._key, digest))
        with json_only():
            await docket.__aenter__()
        self._queues[digest] = VersionQueue(docket=docket, capacity=WorkerCapacity(0, 0))
        return self._queues[digest]

    def _capacity_of(self, limit: Hashable) -> int:
        """Return how many calls of this host may be sent: of a version, or of a group."""
        if isinstance(limit, str):
            return self._limits[limit]
        assert isinstance(limit, tuple)
        queue = self._queues.get(limit[0])
        # Twice as many as run, so that a worker that is done has the next one at hand.
        return 2 * queue.slots if queue and queue.slots else 20

    # ---- one call -----------------------------------------------------------------------------

    def without_worker(self, call: ToolCall) -> RunnerSignal | FinalResult:
        """Return what becomes of a call that no worker can run, unless it waits for one."""
        self._report_no_worker(call)
        if self._when_no_worker == "here":
            return RunnerSignal.HERE
        return refusal(NO_WORKER, f"no worker can run {call.name} now")

    def _report_no_worker(self, call: ToolCall) -> None:
        queue = self._queues.get(queue_name_of(call))
        if queue is not None and queue.capacity.others and not queue.slots:
            self._faults.other_key(call)
        else:
            self._faults.no_worker(call)

    async def run(self, queue: VersionQueue, call: ToolCall, wait: float) -> AsyncGenerator[Any]:
        """Send a call; yield that it has started, its chunks, and last its result.

        Yield only `RunnerSignal.HERE` if the call must run in this process.
        """
        until = asyncio.get_running_loop().time() + wait
        sent = SentCall(call, wait)
        groups = [group for group in call.groups if group in self._limits]
        limits = ((sent.queue_name,), *groups)
        queue.used += 1
        try:
            try:
                async with asyncio.timeout_at(until):
                    await self.semaphore.acquire(call.session_key, limits)
            except TimeoutError:
                yield refusal(BUSY, f"too many calls wait for {call.name}")
                return
            try:
                if not await self._has_slot(queue, sent, groups, until):
                    yield refusal(BUSY, f"too many calls wait for {call.name}")
                elif await self._has_lost_workers(call):
                    yield self.without_worker(call)
                else:
                    async with aclosing(self._items_of(queue, sent, until)) as items:
                        async for item in items:
                            yield item
            finally:
                if groups:
                    self._tasks.start(self._leave(queue, sent, groups, limits))
                else:
                    self.semaphore.release(limits)
        finally:
            queue.used -= 1

    async def _has_slot(
        self, queue: VersionQueue, sent: SentCall, groups: Collection[str], until: float
    ) -> bool:
        """Wait for slots among all hosts; return whether the call got them in time."""
        try:
            async with asyncio.timeout_at(until):
                await self._fleet.acquire(queue.docket, sent.slot, groups)
        except TimeoutError:
            return False
        return True

    async def _leave(
        self, queue: VersionQueue, sent: SentCall, groups: Collection[str], limits: LimitNames
    ) -> None:
        """Give the slots back, first to the other hosts, so that the next call finds them."""
        queue.used += 1
        try:
            await self._fleet.release(queue.docket, sent.slot, groups)
        finally:
            self.semaphore.release(limits)
            queue.used -= 1

    async def _has_lost_workers(self, call: ToolCall) -> bool:
        """Return whether the workers of a call have left while it waited for its turn."""
        if self._when_no_worker != "wait":
            with suppress(*UNREACHABLE):  # then it waits for redis
                return not (await self.queue_of(queue_name_of(call))).slots
        return False

    async def _items_of(
        self, queue: VersionQueue, sent: SentCall, until: float
    ) -> AsyncGenerator[Any]:
        self._calls.setdefault(sent.id, []).append(sent)
        if self._reader is None:
            queue.used += 1  # the reader uses its connections
            self._reader = asyncio.create_task(self._read(queue.docket))
        timer = asyncio.get_running_loop().call_at(
            until, lambda: self._tasks.start(self._give_up(queue, sent, is_late=True))
        )
        is_over = False
        try:
            await self._add(queue, sent)
            while not is_over:
                item = await sent.next()
                is_over = isinstance(item, FinalResult) or item is RunnerSignal.HERE
                if isinstance(item, FinalResult) and item.error_code == MAY_HAVE_RUN:
                    self._faults.may_have_run(sent.call)
                if sent.lost_state:
                    self._faults.state_lost(sent.call, sent.lost_state)
                yield item
        finally:
            timer.cancel()
            self._calls[sent.id].remove(sent)
            if not self._calls[sent.id]:
                del self._calls[sent.id]
                if not is_over:
                    # Also while the caller is cancelled, and not longer than it can wait.
                    await asyncio.wait(
                        {self._tasks.start(self._cancel(queue, sent))}, timeout=_CANCEL_TIMEOUT
                    )

    async def _add(self, queue: VersionQueue, sent: SentCall) -> None:
        """Put a call into the queue; try until redis answers.

        Docket ignores a key that it already has, so a second try is safe.
        """
        call = sent.call
        body = {
            "id": sent.id,
            "call": {**call.to_dict(), "arguments": arguments_of(call)},
            "digest": sent.queue_name,
            "inbox": self._inbox,
            "sent": self._registry.clock.now(),
            "wait": sent.wait,
            # Configuration stays: the worker has its own.
            "context": {
                **encode_context(replace(call.context, config={}, state={}, call_id=call.id)),
                "state": sent.state,
            },
        }
        message = as_text(seal(self._key, CALL, body))
        while not sent.has_ended:
            try:
                async with self._connections:
                    with json_only():
                        await queue.docket.add(TASK, key=sent.id)(message)
            except UNREACHABLE as problem:
                self._faults.unreachable(problem)
                await asyncio.sleep(BACKOFF)
            else:
                sent.queue = queue
                return

    async def _cancel(self, queue: VersionQueue, sent: SentCall) -> bool | None:
        """Cancel a call; return whether a worker had begun it, or `None` if redis is away."""
        with suppress(*UNREACHABLE):
            async with self._connections:
                await queue.docket.cancel(sent.id)
                async with queue.docket.redis() as redis:
                    return bool(await redis.exists(self._keys.started(sent.id)))
        return None

    async def _give_up(self, queue: VersionQueue, sent: SentCall, *, is_late: bool) -> None:
        """End a call that no worker began in time, or whose workers have left."""
        if sent.is_started or sent.has_ended:
            return
        has_begun = await self._cancel(queue, sent)
        if has_begun or (has_begun is None and not may_run_again(sent.call.tool)):
            sent.end(unknown_outcome(sent.call))
        elif is_late:
            self._report_no_worker(sent.call)
            sent.end(refusal(NO_WORKER, f"no worker began {sent.call.name} in time"))
        else:
            sent.end(self.without_worker(sent.call))

    # ---- what comes back ----------------------------------------------------------------------

    async def _read(self, docket: Docket) -> None:
        """Read the inbox, and give each item to its call."""
        last, tidied_at = "0", 0.0
        loop = asyncio.get_running_loop()
        while True:
            silence = loop.call_later(_SILENCE, self._faults.unreachable, TimeoutError())
            try:
                async with docket.redis() as redis:
                    answer = await redis.xread({self._inbox: last}, _BATCH_SIZE, _READ_TIMEOUT)
                    silence.cancel()
                    self._faults.reachable()
                    for _, messages in answer or ():
                        for entry, fields in messages:
                            last = entry.decode()
                            self._take(fields.get(b"item", b""))
                    if loop_time() - tidied_at > 1:
                        tidied_at = loop_time()
                        await redis.xtrim(self._inbox, minid=last, approximate=True)
                        await redis.expire(self._inbox, RESULT_TTL)  # for when this host is gone
                        await self._fleet.renew(docket)
                        await self._check(self._quiet_calls())
            except UNREACHABLE as problem:
                self._faults.unreachable(problem)
                await asyncio.sleep(BACKOFF)
            finally:
                silence.cancel()

    def _take(self, message: bytes) -> None:
        try:
            item = open_sealed(self._key, ITEM, message)
            for sent in self._calls.get(item["id"], ()):
                if item["digest"] != sent.queue_name:
                    self._faults.refused(f"an answer of another version for {sent.call.name}")
                elif "kept" in item:  # too large to be sent here: it is read from its key
                    self._tasks.start(self._check([sent]))
                else:
                    sent.take(item)
        except (EnvelopeError, KeyError, TypeError, ValueError) as problem:
            self._faults.refused(str(problem))

    def _quiet_calls(self) -> list[SentCall]:
        since = loop_time() - _CHECK_AFTER
        calls = (sent for waiting in self._calls.values() for sent in waiting)
        return [sent for sent in calls if sent.queue is not None and sent.news_at < since]

    async def _check(self, calls: list[SentCall]) -> None:
        """Ask redis for calls without news: a message, or all that redis had, may be lost."""
        for sent in calls:
            sent.news_at = loop_time()
            queue = sent.queue
            assert queue is not None
            with suppress(*UNREACHABLE):
                async with (
                    self._connections,
                    queue.docket.redis() as redis,
                    redis.pipeline() as pipeline,
                ):
                    pipeline.get(self._keys.result(sent.id))
                    pipeline.hget(queue.docket.runs_key(sent.id), "state")
                    pipeline.zcard(self._keys.tries(sent.id))
                    message, state, tries = await pipeline.execute()
                is_last = tries >= TRIES or not may_run_again(sent.call.tool)
                if message is not None:
                    self._take(message)
                elif sent.is_started and is_last and await self._has_lost_all_workers(sent):
                    sent.end(unknown_outcome(sent.call))
                elif self._may_give_up(sent) and await self._has_lost_all_workers(sent):
                    await self._give_up(queue, sent, is_late=False)
                elif state not in {b"queued", b"running", b"scheduled"}:
                    await self._decide_missing(queue, sent, is_known=state is not None)

    def _may_give_up(self, sent: SentCall) -> bool:
        return not sent.is_started and self._when_no_worker != "wait"

    async def _has_lost_all_workers(self, sent: SentCall) -> bool:
        """Return whether no worker is left, twice in a row: redis itself may have been away."""
        queue = await self.queue_of(sent.queue_name)
        had_none, sent.had_no_workers = sent.had_no_workers, not queue.slots
        return had_none and sent.had_no_workers

    async def _decide_missing(self, queue: VersionQueue, sent: SentCall, *, is_known: bool) -> None:
        """Decide on a call that is not in redis as waiting, running or ended."""
        sent.misses += 1
        if sent.misses < _MAX_MISSES:
            return  # it may be missing for a moment, between waiting and running
        self._faults.lost(sent.call)
        if may_run_again(sent.call.tool) and not is_known:
            sent.misses = 0
            await self._add(queue, sent)
        elif is_known or not sent.is_started:
            sent.end(unknown_outcome(sent.call))
        # Otherwise its worker still runs it and will answer; the time limit of the call applies.

    def close_soon(self) -> None:
        """Begin to close; the runner of this connection is gone."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self.close())
        limit = loop.call_later(60, task.cancel)  # a timer also keeps the task from being collected
        task.add_done_callback(lambda _: limit.cancel())

    async def close(self) -> None:
        """End the reader and close the connections."""
        await self._tasks.wait(_CANCEL_TIMEOUT)
        if self._reader is not None:
            self._tasks.add(self._reader)
        self._tasks.cancel()
        await self._tasks.wait()
        for queue in self._queues.values():
            await queue.docket.__aexit__(None, None, None)


def refusal(code: str, text: str) -> FinalResult:
    """Return the result of a call that was not run."""
    return FinalResult(**vars(failure(code, f"{text}; try again later, or do without it")))
