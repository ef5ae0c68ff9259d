"""The worker's side: run the calls that hosts send, with the same versions of plugins."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from copy import deepcopy
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from docket import Docket, Worker

from satchel.catalog import Catalog, ToolEntry
from satchel.remote.docket_json import open_docket
from satchel.remote.remote_keys import CALL, INBOX_LENGTH, ITEM, RESULT_TTL, TASK, RemoteKeys
from satchel.remote.signed_envelope import EnvelopeError, checked_key, open_sealed, seal
from satchel.runtime.call_pipeline import prepare_call
from satchel.satchel import Satchel
from satchel.settings import Limits
from satchel.tools import Tool, ToolCall, ToolContext, ToolResult, failure
from satchel.workers.codec import changes_of, encode_chunk

_log = logging.getLogger("satchel.remote")

_REDELIVERY = 5.0
"""Seconds without a sign of life of a worker after which its calls are given to another one."""
_POLL = 0.02


class ToolWorker:
    """Runs the tools of one satchel for hosts, each version of a plugin from a queue of its own.

    `url`, `key` and `name` are those of the hosts' `RemoteRunner`. With `groups`, only tools of
    these groups are run. At most `concurrency` calls of one plugin run at once, within `limits`.
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
        limits: Limits | None = None,
    ) -> None:
        self._satchel, self._url, self._key = satchel, url, checked_key(key)
        self._name, self._groups, self._concurrency = name, frozenset(groups), concurrency
        self._limits = limits or Limits()
        self._services: dict[str, asyncio.Task[None]] = {}
        self._known: set[str] = set()  # to hosts
        self.ready = asyncio.Event()
        """Set once every plugin of the first catalog has its queue."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The versions of plugins that hosts can send calls for."""
        return tuple(digest for digest in self._services if digest in self._known)

    async def run(self) -> None:
        """Run calls until cancelled; after an edit the old version still ends its calls."""
        try:
            async with self._satchel.watch() as changes:
                await self._bring_up_to_date()
                self.ready.set()
                async for _ in changes:
                    await self._bring_up_to_date()
        finally:
            for task in self._services.values():
                task.cancel()
            await asyncio.gather(*self._services.values(), return_exceptions=True)

    async def _bring_up_to_date(self) -> None:
        catalog = self._satchel.catalog
        tools: dict[str, dict[str, ToolEntry]] = {}
        for entry in catalog.tools.values():
            if entry.tool is not None and (not self._groups or self._groups & set(entry.groups)):
                digest = catalog.plugin_digest_of(entry.name)
                tools.setdefault(digest, {})[entry.name] = entry
        tools.pop("", None)  # tools of the host's own code have no version
        for digest in self._services.keys() - tools.keys():
            self._services.pop(digest).cancel()
        for digest in tools.keys() - self._services.keys():
            service = PluginService(
                catalog, tools[digest], self._limits, self._key, RemoteKeys(self._name)
            )
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(
                service.serve(
                    open_docket(self._url, self._name, digest), self._concurrency, started
                )
            )
            self._services[digest] = task
            await asyncio.wait({started, task}, return_when=asyncio.FIRST_COMPLETED)
            self._known.add(digest)
            _log.info("runs %s", ", ".join(sorted(tools[digest])))


class PluginService:
    """The calls of one version of a plugin. It holds the catalog, so the version stays loaded."""

    def __init__(
        self,
        catalog: Catalog,
        tools: Mapping[str, ToolEntry],
        limits: Limits,
        key: bytes,
        keys: RemoteKeys,
    ) -> None:
        self._catalog, self._tools, self._limits = catalog, tools, limits
        self._key, self._keys = key, keys

    async def serve(self, queue: Docket, concurrency: int, started: "asyncio.Future[None]") -> None:
        """Run calls of the queue until cancelled; calls that run are then ended in order."""
        async with queue:

            async def satchel_call(message: str) -> None:
                await self.run(queue, message)

            queue.register(satchel_call, names=[TASK])
            worker = Worker(
                queue,
                concurrency=concurrency,
                redelivery_timeout=timedelta(seconds=_REDELIVERY),
                minimum_check_interval=timedelta(seconds=_POLL),
                schedule_automatic_tasks=False,
            )
            async with worker, asyncio.TaskGroup() as group:
                group.create_task(worker.run_forever())
                # Docket has no event for the first heartbeat, from which on hosts know the worker.
                while not await queue.workers():  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)
                started.set_result(None)

    async def run(self, queue: Docket, message: str) -> None:
        """Run one call: keep its result, and send it with its chunks to the host."""
        try:
            body = open_sealed(self._key, CALL, message)
            call = ToolCall.from_dict(body["call"])
            call = call.changed(context=_context(body["context"], call))
            call_id, inbox = str(body["id"]), str(body["inbox"])
        except (EnvelopeError, KeyError, TypeError, ValueError) as problem:
            _log.warning("a call was refused: %s", problem)
            return
        async with queue.redis() as redis:
            outbox = Outbox(redis, inbox, self._key, call_id)
            started = self._keys.started(call_id)
            is_first = bool(await redis.set(started, "1", nx=True, ex=RESULT_TTL))
            kept = None if is_first else await redis.get(self._keys.result(call_id))
            if kept is None:
                try:
                    answer = await self._answer(call, outbox, is_first=is_first)
                except Exception:  # the host waits for an answer
                    _log.exception("a call of %s could not be run", call.name)
                    answer = _failed("worker_failed", f"the worker of {call.name} failed")
                kept = outbox.sealed(answer)
                # Kept before docket acknowledges the call: a repeated call gets the same answer.
                await redis.set(self._keys.result(call_id), kept, ex=RESULT_TTL)
            await outbox.send(kept)

    async def _answer(self, call: ToolCall, outbox: "Outbox", *, is_first: bool) -> dict[str, Any]:
        entry = self._tools.get(call.name)
        if entry is None or entry.tool is None:
            return _failed("no_worker", f"the workers have no tool {call.name}; do without it")
        if not is_first and not _may_run_again(entry.tool):
            return _failed(
                "may_have_run",
                f"{call.name} may have run: its worker was lost before it answered; "
                "find out whether it did before you call it again",
            )
        state, count = call.context.state, 0
        before = deepcopy(dict(state))
        call = call.changed(tool=entry.tool, groups=entry.groups)
        run = prepare_call(call, entry.tool, self._limits)
        try:
            while not isinstance(item := await run.next(), ToolResult):
                count += 1
                await outbox.send(outbox.sealed({"count": count, "chunk": encode_chunk(item)}))
        finally:
            await run.close()
        return {"result": item.to_dict(), "changes": changes_of(before, state)}


class Outbox:
    """Sends the items of one call to its host."""

    def __init__(self, redis: Any, inbox: str, key: bytes, call_id: str) -> None:
        self._redis, self._inbox, self._key, self._call_id = redis, inbox, key, call_id

    def sealed(self, item: dict[str, Any]) -> bytes:
        """Return an item as a signed message."""
        return seal(self._key, ITEM, {"id": self._call_id, **item}).encode()

    async def send(self, message: bytes) -> None:
        """Send a message."""
        await self._redis.xadd(self._inbox, {"item": message}, maxlen=INBOX_LENGTH)


def _context(given: Mapping[str, Any], call: ToolCall) -> ToolContext:
    return ToolContext(
        state=dict(given["state"]),
        metadata=MappingProxyType(dict(given["metadata"])),
        preapproved=tuple(given["preapproved"]),
        agent_id=str(given["agent_id"]),
        run_id=str(given["run_id"]),
        iteration=given["iteration"],
        call_id=str(given["call_id"]),
        tool=call.name,
    )


def _may_run_again(tool: Tool) -> bool:
    hints = tool.annotations or {}
    is_harmless = bool(hints.get("idempotentHint") or hints.get("readOnlyHint"))
    return tool.idempotent or (is_harmless and not tool.is_remote)


def _failed(code: str, text: str) -> dict[str, Any]:
    return {"result": failure(code, text).to_dict()}
