"""The worker's side: run the calls that hosts send, with the same versions of plugins."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from docket import Docket, Worker

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import ToolEntry
from satchel.remote.call_limits import GroupLimiter
from satchel.remote.docket_json import checked_url, json_only, open_docket
from satchel.remote.fleet_registry import HEARTBEAT, FleetRegistry, RedisClock
from satchel.remote.remote_faults import RemoteFaults
from satchel.remote.remote_keys import (
    BACKOFF,
    CALL,
    LONGEST_WAIT,
    TASK,
    UNREACHABLE,
    RemoteKeys,
    queue_name_for,
)
from satchel.remote.remote_run import CallAddress, RemoteRun, Start
from satchel.remote.sealed_envelope import EnvelopeError, checked_key, mark_of, open_sealed
from satchel.remote.sent_call import NO_WORKER, WORKER_FAILED, may_run_again, unknown_outcome
from satchel.runtime.call_task import CallTask, prepare_call
from satchel.runtime.event_loop_thread import EventLoopThread
from satchel.satchel import Satchel
from satchel.settings import Limits
from satchel.tools import ToolCall, ToolResult, failure
from satchel.workers.codec import changes_of, decode_context, encode_chunk

_log = logging.getLogger("satchel.remote")

_REDELIVERY = 5.0
"""Seconds without a heartbeat of a worker after which its calls are given to another one."""
_POLL = 0.02
_GRACE = 2.0
"""Seconds that a call which may have run is waited for."""
_CANCEL_TIMEOUT = 2.0
"""Seconds that cancelled tools have to end."""


class ServedVersion(NamedTuple):
    """A version of a plugin that a worker serves from one queue."""

    requested: str
    """The digest that hosts ask for."""
    queue_name: str
    own: str
    """The digest of the version that answers; it is compatible with the requested one."""


class ToolWorker:
    """Runs the tools of one satchel for hosts, each version of a plugin from a queue of its own.

    `url`, `key` and `name` are those of the hosts' `RemoteRunner`. With `groups`, only tools of
    these groups are run. `limits` are those of each call.

    `concurrency` limits the calls of each queue at once. A queue has the tools of one version of a
    plugin that are in the same groups. `group_limits` limits the calls of a group over all plugins.
    """

    def __init__(
        self,
        satchel: Satchel,
        url: str,
        *,
        key: str,
        name: str = "satchel",
        groups: Collection[str] = (),
        concurrency: int = 10,
        group_limits: Mapping[str, int] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._satchel, self._url, self._key = satchel, checked_url(url), checked_key(key)
        self._name, self._groups, self._concurrency = name, frozenset(groups), concurrency
        self._limits, self._faults = limits or Limits(), RemoteFaults(name)
        self._limiter = GroupLimiter(group_limits or {})
        self._tools_loop: EventLoopThread | None = None
        self._services: dict[ServedVersion, asyncio.Task[None]] = {}
        self._announced: set[ServedVersion] = set()
        """Those that hosts can see in redis."""
        self.ready = asyncio.Event()
        """Set once every plugin of the first catalog has its queue."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The versions of plugins that hosts can send calls for."""
        digests = (version.requested for version in self._services if version in self._announced)
        return tuple(dict.fromkeys(digests))

    async def run(self) -> None:
        """Run calls until cancelled; after an edit the old version still ends its calls."""
        # The group cancels each service once, which lets it end its calls; again ends them at once.
        self._tools_loop = EventLoopThread("satchel-tools")
        try:
            async with asyncio.TaskGroup() as group, self._satchel.watch() as changes:
                await self._bring_up_to_date(group)
                self.ready.set()
                async for _ in changes:
                    await self._bring_up_to_date(group)
        finally:
            self._tools_loop.stop(_CANCEL_TIMEOUT)

    async def _bring_up_to_date(self, group: asyncio.TaskGroup) -> None:
        catalog = self._satchel.catalog
        tools: dict[ServedVersion, dict[str, ToolEntry]] = {}
        for entry in catalog.tools.values():
            own = catalog.plugin_digest_of(entry.name)  # tools of the host's own code have none
            if entry.tool is None or not own or not self._may_run(entry):
                continue
            for digest in (own, *catalog.compatible_digests_of(entry.name)):
                version = ServedVersion(digest, queue_name_for(digest, entry.groups), own)
                tools.setdefault(version, {})[entry.name] = entry
        for version in self._services.keys() - tools.keys():
            self._services.pop(version).cancel()
        for version in tools.keys() - self._services.keys():
            service = PluginService(
                catalog,
                queue_name=version.queue_name,
                tools=tools[version],
                limits=self._limits,
                limiter=self._limiter,
                key=self._key,
                keys=RemoteKeys(self._name),
                faults=self._faults,
                tools_loop=self._tools_loop,
            )
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue = open_docket(self._url, self._name, mark_of(self._key, version.queue_name))
            task = group.create_task(service.serve(queue, self._concurrency, started))
            self._services[version] = task
            await asyncio.wait({started, task}, return_when=asyncio.FIRST_COMPLETED)
            self._announced.add(version)
            is_own = version.requested == version.own
            other = "" if is_own else f" for version {version.requested[:12]}"
            _log.info("runs %s%s", ", ".join(sorted(tools[version])), other)

    def _may_run(self, entry: ToolEntry) -> bool:
        return not self._groups or bool(self._groups & set(entry.groups))


class PluginService:
    """The calls of one queue. It holds the catalog, so the version of the plugin stays loaded."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        queue_name: str,
        tools: Mapping[str, ToolEntry],
        limits: Limits,
        limiter: GroupLimiter,
        key: bytes,
        keys: RemoteKeys,
        faults: RemoteFaults,
        tools_loop: EventLoopThread | None = None,
    ) -> None:
        self._catalog, self._queue_name, self._tools = catalog, queue_name, tools
        self._limits, self._key, self._keys = limits, key, keys
        self._registry, self._faults = FleetRegistry(keys, key, RedisClock()), faults
        self._limiter, self._tools_loop = limiter, tools_loop
        self._running: dict[str, asyncio.Event] = {}
        self._begun: dict[str, float] = {}
        """Calls that were begun here, with the time after which their hosts have given up."""
        self._refused = ""

    async def serve(self, queue: Docket, concurrency: int, started: "asyncio.Future[None]") -> None:
        """Run calls of the queue until cancelled; calls that run are then ended in order."""
        worker_id = uuid4().hex
        worker = Worker(
            queue,
            name=worker_id,
            concurrency=concurrency,
            redelivery_timeout=timedelta(seconds=_REDELIVERY),
            reconnection_delay=timedelta(seconds=BACKOFF),
            minimum_check_interval=timedelta(seconds=_POLL),
            schedule_automatic_tasks=False,
        )

        async def satchel_call(message: str = "") -> None:
            with json_only(is_ours=False):  # tools may use docket, too
                await self.run(queue, message)

        queue.register(satchel_call, names=[TASK])
        with json_only():
            async with queue, worker:
                heartbeats = asyncio.create_task(
                    self._send_heartbeats(queue, worker_id, concurrency, started)
                )
                try:
                    await worker.run_forever()
                finally:
                    heartbeats.cancel()

    async def _send_heartbeats(
        self, queue: Docket, worker_id: str, slots: int, started: "asyncio.Future[None]"
    ) -> None:
        try:
            while True:
                try:
                    if not started.done():
                        await _listen(queue)
                    async with queue.redis() as redis:
                        await self._registry.heartbeat(redis, self._queue_name, worker_id, slots)
                except UNREACHABLE as problem:
                    self._faults.unreachable(problem)
                else:
                    self._faults.reachable()
                    if not started.done():
                        started.set_result(None)
                await asyncio.sleep(HEARTBEAT)
        finally:
            with suppress(*UNREACHABLE):
                async with queue.redis() as redis:
                    await self._registry.leave(redis, self._queue_name, worker_id, slots)

    async def run(self, queue: Docket, message: str) -> None:
        """Run one call: keep its result, and send it with its chunks to the host."""
        try:
            body = open_sealed(self._key, CALL, message)
            call = ToolCall.from_dict(body["call"])
            call = call.changed(context=replace(decode_context(body["context"]), tool=call.name))
            address = CallAddress(
                call=str(body["id"]), inbox=str(body["inbox"]), digest=self._queue_name
            )
            until = body["sent"] + body["wait"] + HEARTBEAT
            reason = self._reason_to_refuse(body)
        except (EnvelopeError, KeyError, TypeError, ValueError) as problem:
            reason = str(problem)
        if reason:
            if reason != self._refused:  # else a wrong key would fill the log
                _log.warning("a call was refused: %s", reason)
            self._refused = reason
            return
        if (end := self._running.get(address.call)) is not None:
            await end.wait()  # it still runs here: redis delivered it again after an outage
            return
        entry = self._tools.get(call.name)
        self._running[address.call] = asyncio.Event()
        try:
            async with self._limiter.acquired(address.inbox, entry.groups if entry else ()):
                if not self._reason_to_refuse(body):  # else it waited too long
                    await self._run(RemoteRun(queue, self._keys, self._key, address), call, until)
        finally:
            self._running.pop(address.call).set()

    def _reason_to_refuse(self, body: Mapping[str, Any]) -> str:
        if body["digest"] != self._queue_name:
            return "it is for another version"
        age = self._registry.clock.now() - body["sent"]
        return "it is too old" if age > LONGEST_WAIT else ""

    def _has_lost_its_mark(self, call: str, until: float) -> bool:
        """Return whether the mark of a begun call is missing.

        Anybody who can write to redis could delete it, so that the call runs twice.
        """
        now = self._registry.clock.now()
        while self._begun and self._begun[oldest := next(iter(self._begun))] < now:
            del self._begun[oldest]
        has_lost_it = call in self._begun or now > until
        self._begun[call] = until
        return has_lost_it

    async def _run(self, run: RemoteRun, call: ToolCall, until: float) -> None:
        """Run a call. Its host gives up at `until`, a time of redis, if no worker has begun it."""
        entry = self._tools.get(call.name)
        tool = entry.tool if entry is not None else None
        start, stored_result = await run.begin()
        if start is Start.CANCELLED:
            return
        is_harmless = tool is None or may_run_again(tool)
        if start is Start.FIRST and self._has_lost_its_mark(run.id, until) and not is_harmless:
            start = Start.AGAIN
        must_not_run = start is Start.SPENT or (start is Start.AGAIN and not is_harmless)
        if must_not_run and stored_result is None:
            # The first worker may only have been slow, or without redis.
            stored_result = await run.stored_result_within(_GRACE)
        if stored_result is not None:
            await run.send(stored_result)
        elif entry is None or tool is None:
            await run.finish(_failed(NO_WORKER, f"the workers have no tool {call.name}"))
        elif must_not_run:
            _log.warning("a call of %s is not run again: its worker has ended", call.name)
            await run.finish({"result": unknown_outcome(call).to_dict()})
        else:
            await run.finish(await self._answer(call.changed(tool=tool, groups=entry.groups), run))

    async def _answer(self, call: ToolCall, run: RemoteRun) -> dict[str, Any]:
        """Run a call on the loop of the tools, so our heartbeats continue if one blocks it."""
        assert call.tool is not None
        task = prepare_call(call, call.tool, self._limits)
        if self._tools_loop is None:
            return await self._run_tool(task, run.chunk)
        here = asyncio.get_running_loop()

        async def send(count: int, chunk: str) -> None:
            sending = asyncio.run_coroutine_threadsafe(run.chunk(count, chunk), here)
            await asyncio.wrap_future(sending)

        answer = asyncio.wrap_future(self._tools_loop.begin(self._run_tool(task, send)))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            # Its slot is free once the tool has cleaned up, or its loop is blocked.
            task.interrupt()
            await asyncio.wait({answer}, timeout=self._limits.cancel_grace + _CANCEL_TIMEOUT)
            raise

    async def _run_tool(
        self, run: CallTask, send: Callable[[int, str], Awaitable[None]]
    ) -> dict[str, Any]:
        call, state, count = run.call, run.call.context.state, 0
        before = deepcopy(dict(state))
        try:
            while not isinstance(item := await run.next(), ToolResult):
                count += 1
                await send(count, encode_chunk(item))
            return {"result": item.to_dict(), "changes": changes_of(before, state)}
        except Exception:  # the host waits for an answer
            _log.exception("a call of %s could not be run", call.name)
            return _failed(WORKER_FAILED, f"the worker of {call.name} failed")
        finally:
            await run.aclose()


async def _listen(queue: Docket) -> None:
    """Raise if redis refuses to report cancelled calls; docket itself would wait silently."""
    async with queue._pubsub() as channel:  # noqa: SLF001 - docket has no public way
        await channel.psubscribe(queue.key("cancel:*"))
        await channel.get_message(timeout=HEARTBEAT)


def _failed(code: str, text: str) -> dict[str, Any]:
    return {"result": failure(code, f"{text}; do without it").to_dict()}
