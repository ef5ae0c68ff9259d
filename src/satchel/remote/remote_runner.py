"""The host's side: which calls go to a worker, and which run here, wait or are refused."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping, MutableMapping
from contextlib import aclosing, suppress
from typing import Any, get_args
from weakref import WeakKeyDictionary

from satchel.diagnostics import Diagnostic
from satchel.errors import DefinitionError
from satchel.remote.docket_json import checked_url
from satchel.remote.host_connection import (
    HostConnection,
    NoWorkerPolicy,
    RoutingPolicy,
    VersionQueue,
    refusal,
)
from satchel.remote.remote_faults import RemoteFaults
from satchel.remote.remote_keys import BACKOFF, LONGEST_WAIT, UNREACHABLE, RemoteKeys
from satchel.remote.sealed_envelope import checked_key
from satchel.remote.sent_call import BUSY, NO_WORKER, queue_name_of
from satchel.tools import ToolCall
from satchel.tools.runner import Runner, RunnerSignal


class RemoteRunner(Runner):
    """Runs the tools of plugins on workers that have the same version of the plugin.

    `url` is that of redis (`redis://`, `rediss://`, or `memory://` for tests), and `key` is shared
    with the workers. `name` separates several applications on one redis. `otherwise` decides
    what a call does without such a worker: run `"here"`, `"wait"` for one, or `"refuse"`. A call
    that no worker has begun after `wait` seconds is refused, and so is a new one while `queue`
    calls wait. Sessions take turns. `limits` is the number of calls of a group that run at once,
    over all hosts of this `name`. Pass the runner to `Satchel.register_runner`.
    """

    waits = True

    def __init__(
        self,
        url: str,
        *,
        key: str,
        name: str = "satchel",
        otherwise: NoWorkerPolicy = "here",
        wait: float = 60.0,
        queue: int = 1_000,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        if not 0 < wait <= LONGEST_WAIT:
            raise DefinitionError(f"wait is {wait:g}", fix=f"choose 1 to {LONGEST_WAIT:g} seconds")
        if otherwise not in get_args(NoWorkerPolicy):
            fix = f"choose one of: {', '.join(get_args(NoWorkerPolicy))}"
            raise DefinitionError(f"otherwise is {otherwise!r}", fix=fix)
        limits = dict(limits or {})
        sizes = {"queue": queue, **{f"the limit of {group!r}": limits[group] for group in limits}}
        for label, number in sizes.items():
            if number < 1:
                raise DefinitionError(f"{label} is {number}", fix="choose 1 or more")
        self._url, self._key, self._keys = checked_url(url), checked_key(key), RemoteKeys(name)
        self._wait, self._policy = wait, RoutingPolicy(otherwise, queue, limits)
        self._faults = RemoteFaults(name)
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, HostConnection] = (
            WeakKeyDictionary()
        )
        weakref.finalize(self, _close_all, self._connections).atexit = False

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What went wrong with redis and the workers, the newest of each kind."""
        return self._faults.diagnostics

    async def run(self, call: ToolCall) -> Any:
        """Run a call on a worker; return the stream of its chunks, which ends with the result."""
        assert call.tool is not None
        connection = self._connection()
        try:
            queue = await self._queue(connection, call)
        except UNREACHABLE as problem:
            self._faults.unreachable(problem)
            if self._policy.when_no_worker == "here":
                return RunnerSignal.HERE
            return refusal(NO_WORKER, f"the workers of {call.name} cannot be reached now")
        if not queue.slots and self._policy.when_no_worker != "wait":
            return connection.without_worker(call)
        if connection.semaphore.waiting + queue.length >= self._policy.queue:
            return refusal(BUSY, f"too many calls wait for {call.name}")
        items = connection.run(queue, call, self._wait)
        first = await anext(items)
        if first is RunnerSignal.STARTED:
            return _prepended(first, items)
        await items.aclose()
        return first

    async def aclose(self) -> None:
        """Close the connections of this event loop; calls that still wait are not cancelled."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    def _connection(self) -> HostConnection:
        # A connection belongs to an event loop, and a host may have several.
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            self._connections[loop] = HostConnection(
                self._url, self._keys, self._key, self._faults, self._policy
            )
        return self._connections[loop]

    async def _queue(self, connection: HostConnection, call: ToolCall) -> VersionQueue:
        """Return the queue of a call's version; if calls wait for workers, also for redis."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait
        while True:
            try:
                return await connection.queue_of(queue_name_of(call))
            except UNREACHABLE as problem:
                if self._policy.when_no_worker != "wait" or loop.time() > until:
                    raise
                self._faults.unreachable(problem)
                await asyncio.sleep(BACKOFF)


def _close_all(connections: MutableMapping[asyncio.AbstractEventLoop, HostConnection]) -> None:
    """Close the connections of a runner that was dropped; asyncio would complain."""
    for loop, connection in tuple(connections.items()):
        with suppress(RuntimeError):  # the loop is closed, and its connections with it
            loop.call_soon_threadsafe(connection.close_soon)


async def _prepended(first: Any, items: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    async with aclosing(items):
        yield first
        async for item in items:
            yield item
