"""The host's side: send a call to a worker, and receive its chunks and its result."""

import asyncio
import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal
from uuid import uuid4
from weakref import WeakKeyDictionary

from docket import Docket
from redis.exceptions import RedisError

from satchel.remote.docket_json import open_docket
from satchel.remote.remote_keys import (
    CALL,
    INBOX_LENGTH,
    ITEM,
    RESULT_TTL,
    TASK,
    RemoteKeys,
)
from satchel.remote.signed_envelope import EnvelopeError, checked_key, open_sealed, seal
from satchel.tools import ToolCall, ToolChunk, ToolResult, failure
from satchel.tools.runner import Runner
from satchel.tools.tool_results import FinalResult
from satchel.workers.codec import apply_changes, decode_chunk, exact_part, to_json_value

_log = logging.getLogger("satchel.remote")

Otherwise = Literal["here", "wait", "refuse"]

_UNREACHABLE = (RedisError, OSError)
_BLOCK = 1_000
"""Milliseconds that one read of the inbox waits."""
_LOOK = 2.0
"""Seconds without news after which a kept result is looked for: a message may have been lost."""
_KNOWN_FOR = 1.0
"""Seconds that the workers of a version are remembered."""
_COUNTED_FOR = 0.1
"""Seconds that the length of a queue is remembered."""
_CONNECTIONS = 16
"""Connections that calls use at once; the pool of docket has a limit and does not wait."""
_BACKOFF = 0.5
"""Seconds between two tries to reach redis."""


class RemoteRunner(Runner):
    """Runs the tools of plugins on workers that have the same version of the plugin.

    `url` is that of redis (`redis://`, `rediss://`, or `memory://` for tests), and `key` is shared
    with the workers. `name` separates several applications on one redis. Without a worker of that
    version a call runs `"here"`, may `"wait"` for one as long as its time limit, or is refused.
    With `queue` calls waiting, a new one is refused. Pass it to `Satchel.register_runner`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str,
        name: str = "satchel",
        otherwise: Otherwise = "here",
        queue: int = 1_000,
    ) -> None:
        self._url, self._key, self._keys = url, checked_key(key), RemoteKeys(name)
        self._name, self._otherwise, self._queue = name, otherwise, queue
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, HostLine] = WeakKeyDictionary()

    async def run(self, call: ToolCall) -> Any:
        """Run a call on a worker; return the stream of its chunks, which ends with the result."""
        assert call.tool is not None
        line = self._line()
        try:
            queue = await line.queue_of(call.plugin_digest)
            if not await line.has_worker(queue):
                if self._otherwise == "here":
                    return await call.tool.runner.run(call)
                if self._otherwise == "refuse":
                    return _refused("no_worker", f"no worker can run {call.name} now")
            if await line.waiting(queue) >= self._queue:
                return _refused("busy", f"too many calls wait for {call.name}")
            return line.sent(queue, call)
        except _UNREACHABLE as problem:
            _log.warning("redis cannot be reached: %s", type(problem).__name__)
            if self._otherwise == "here":
                return await call.tool.runner.run(call)
            return _refused("no_worker", f"the workers of {call.name} cannot be reached now")

    async def aclose(self) -> None:
        """Close the connections of this event loop; calls that still wait are not cancelled."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.close()

    def _line(self) -> "HostLine":
        # A connection belongs to an event loop, and a host may have several.
        return self._lines.setdefault(
            asyncio.get_running_loop(), HostLine(self._url, self._name, self._key, self._keys)
        )


class HostLine:
    """The connections of one event loop, with one reader for all of its calls."""

    def __init__(self, url: str, name: str, key: bytes, keys: RemoteKeys) -> None:
        self._url, self._name, self._key, self._keys = url, name, key, keys
        self._host = uuid4().hex
        self._queues: dict[str, Docket] = {}
        self._known: dict[str, tuple[float, bool]] = {}
        self._waiting: dict[str, tuple[float, int]] = {}
        self._calls: dict[str, _SentCall] = {}
        self._reader: asyncio.Task[None] | None = None
        self._lock, self._gate = asyncio.Lock(), asyncio.Semaphore(_CONNECTIONS)

    async def queue_of(self, digest: str) -> Docket:
        """Return the queue of a version, and connect to it if this is its first call."""
        async with self._lock:
            if digest not in self._queues:
                queue = open_docket(self._url, self._name, digest)
                await queue.__aenter__()
                self._queues[digest] = queue
            return self._queues[digest]

    async def has_worker(self, queue: Docket) -> bool:
        """Return whether a worker of that version is alive."""
        at, has_one = self._known.get(queue.name, (0.0, False))
        if time.monotonic() - at > _KNOWN_FOR or not has_one:
            async with self._gate:
                has_one = bool(await queue.workers())
            self._known[queue.name] = (time.monotonic(), has_one)
        return has_one

    async def waiting(self, queue: Docket) -> int:
        """Return how many calls waited or ran a moment ago."""
        at, number = self._waiting.get(queue.name, (0.0, 0))
        if time.monotonic() - at > _COUNTED_FOR:
            async with self._gate, queue.redis() as redis:
                number = await redis.xlen(queue.stream_key)
            self._waiting[queue.name] = (time.monotonic(), number)
        return number

    def sent(self, queue: Docket, call: ToolCall) -> AsyncIterator[Any]:
        """Send a call; return its chunks, and last its result."""
        sent = _SentCall(call, self._keys)
        body = {
            "id": sent.id,
            "call": {**call.to_dict(), "arguments": _arguments(call)},
            "digest": call.plugin_digest,
            "inbox": self._keys.inbox(self._host),
            "context": _context(call),
        }
        message = seal(self._key, CALL, body)
        return self._received(queue, sent, message)

    async def _received(self, queue: Docket, sent: "_SentCall", message: str) -> AsyncIterator[Any]:
        self._calls[sent.id] = sent
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(queue))
        is_over = False
        try:
            async with self._gate:
                await queue.add(TASK, key=sent.id)(message)
            while not is_over:
                item = await sent.next(lambda: self._kept(queue, sent))
                is_over = isinstance(item, ToolResult)
                yield item
        finally:
            del self._calls[sent.id]
            if not is_over:
                await _shielded(self._cancel(queue, sent))

    async def _kept(self, queue: Docket, sent: "_SentCall") -> None:
        """Take the result that a worker keeps, if there is one."""
        async with self._gate, queue.redis() as redis:
            message = await redis.get(self._keys.result(sent.id))
        if message is not None:
            self._take(message)

    async def _cancel(self, queue: Docket, sent: "_SentCall") -> None:
        with suppress(*_UNREACHABLE):
            async with self._gate:
                await queue.cancel(sent.id)

    async def _read(self, queue: Docket) -> None:
        """Read the inbox, and give each item to its call."""
        inbox, last = self._keys.inbox(self._host), "0"
        while True:
            try:
                async with queue.redis() as redis:
                    for _, messages in await redis.xread({inbox: last}, INBOX_LENGTH, _BLOCK) or ():
                        for entry, fields in messages:
                            last = entry.decode()
                            self._take(fields[b"item"])
                        await redis.xtrim(inbox, minid=last, approximate=True)
                    await redis.expire(inbox, RESULT_TTL)  # for when this host is gone
            except _UNREACHABLE as problem:
                _log.warning("redis cannot be reached: %s; trying again", type(problem).__name__)
                await asyncio.sleep(_BACKOFF)

    def _take(self, message: bytes) -> None:
        try:
            item = open_sealed(self._key, ITEM, message)
        except EnvelopeError as problem:
            _log.warning("a message was refused: %s", problem)
            return
        if (sent := self._calls.get(str(item.get("id")))) is not None:
            sent.take(item)

    async def close(self) -> None:
        """End the reader and close the connections."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        for queue in self._queues.values():
            await queue.__aexit__(None, None, None)


class _SentCall:
    """One call that a worker runs, with the items that have come and were not read yet."""

    def __init__(self, call: ToolCall, keys: RemoteKeys) -> None:
        self.id = _id_of(call)
        self._call, self._keys = call, keys
        self._items: deque[dict[str, Any]] = deque(maxlen=INBOX_LENGTH)
        self._has_item = asyncio.Event()
        self._count = 0

    def take(self, item: dict[str, Any]) -> None:
        """Keep an item, unless it came before: a call that is run again repeats its chunks."""
        if "chunk" in item:
            if item["count"] <= self._count:
                return
            self._count = item["count"]
        self._items.append(item)
        self._has_item.set()

    async def next(self, look: Callable[[], Coroutine[Any, Any, None]]) -> ToolChunk | FinalResult:
        """Return the next item; `look` for a result that did not come by itself."""
        while not self._items:
            try:
                await asyncio.wait_for(self._has_item.wait(), _LOOK)
            except TimeoutError:
                with suppress(*_UNREACHABLE):
                    await look()
            self._has_item.clear()
        item = self._items.popleft()
        if "chunk" in item:
            return decode_chunk(item["chunk"])
        apply_changes(self._call.context.state, item.get("changes") or {})
        return FinalResult(**vars(ToolResult.from_dict(item["result"])))


def _id_of(call: ToolCall) -> str:
    """Return the id of a run.

    A host that names its run gets the same answer for the same call again. Without a name the ids
    of two conversations may be equal, and one must not get the answer of the other.
    """
    run = call.context.run_id
    if not (run and call.id):
        return uuid4().hex
    parts = [run, call.id, call.name, _arguments(call), call.plugin_digest]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _arguments(call: ToolCall) -> Any:
    assert not isinstance(call.arguments, str)
    return to_json_value(dict(call.arguments), f"an argument of {call.name}")


def _context(call: ToolCall) -> dict[str, Any]:
    """Return what a tool may know of its call. Configuration stays: the worker has its own."""
    context = call.context
    return {
        "state": exact_part(context.state),
        "metadata": exact_part(context.metadata),
        "preapproved": list(context.preapproved),
        "agent_id": context.agent_id,
        "run_id": context.run_id,
        "iteration": context.iteration,
        "call_id": call.id,
    }


def _refused(code: str, text: str) -> FinalResult:
    return FinalResult(**vars(failure(code, f"{text}; try again later, or do without it")))


async def _shielded(work: Coroutine[Any, Any, None]) -> None:
    """Finish a short piece of work also while the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
