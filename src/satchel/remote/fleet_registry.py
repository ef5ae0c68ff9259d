"""The running workers of each version, the hosts, and the published catalog.

Only the clock of redis counts, so the clocks of the machines may differ.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from satchel.catalog.catalog import Catalog
from satchel.lazy_dataclass import dataclass
from satchel.remote.remote_keys import CATALOG, RemoteKeys, loop_time, queue_name_for
from satchel.remote.sealed_envelope import mark_of, open_sealed, seal

HEARTBEAT = 1.0
"""Seconds between two heartbeats."""
ALIVE_FOR = 4.0
"""Seconds without a heartbeat after which a worker or a host counts as gone."""
_FORGOTTEN_AFTER = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCatalog:
    """The catalog for hosts and workers: its number, digest, and plugin versions."""

    generation: int
    digest: str
    plugins: Mapping[str, str]
    queues: Mapping[str, Collection[str]]
    """The names of the queues of each plugin."""


@dataclass(frozen=True, slots=True)
class WorkerCapacity:
    """The workers of one version: how many calls they run at once; `others` have another key."""

    slots: int
    others: int
    """Workers that have another key, so they cannot read our calls."""


class RedisClock:
    """The time of redis, in seconds; it is asked once a heartbeat and kept in between."""

    def __init__(self) -> None:
        self._offset = 0.0

    async def ask(self, redis: Any) -> float:
        """Ask redis, and return the time."""
        if hasattr(redis, "time"):  # the redis in memory has none, and is in this process
            seconds, micros = await redis.time()
            self._offset = seconds + micros / 1e6 - loop_time()
        return self.now()

    def now(self) -> float:
        """Return the time of redis as it was when last asked."""
        return loop_time() + self._offset


class FleetRegistry:
    """Reads and writes who is there. The caller passes a client of redis, or one like it."""

    def __init__(self, keys: RemoteKeys, key: bytes, clock: RedisClock) -> None:
        self._keys, self._key, self.clock = keys, key, clock

    async def heartbeat(self, redis: Any, digest: str, worker: str, slots: int) -> None:
        """Record a heartbeat of a worker that runs so many calls of a version at once."""
        member = self._marked(f"{worker}:{slots}")
        await self._record_heartbeat(redis, self._keys.workers(digest), member)

    async def leave(self, redis: Any, digest: str, worker: str, slots: int) -> None:
        """Take a worker out: it gets no new calls."""
        await redis.zrem(self._keys.workers(digest), self._marked(f"{worker}:{slots}"))

    async def capacity(self, redis: Any, digest: str) -> WorkerCapacity:
        """Return who runs a version: workers with our key, and others."""
        alive = await self._alive(redis, self._keys.workers(digest))
        ours = [entry for item in alive if self._marked(entry := item.rpartition(":")[0]) == item]
        slots = sum(int(entry.rpartition(":")[2]) for entry in ours)
        return WorkerCapacity(slots, len(alive) - len(ours))

    async def heartbeat_of_host(self, redis: Any, host: str, digest: str) -> None:
        """Record a heartbeat of a host that serves a catalog."""
        await self._record_heartbeat(redis, self._keys.hosts, f"{host}:{digest}")

    async def hosts(self, redis: Any) -> Mapping[str, int]:
        """Return how many hosts serve each catalog, by its digest."""
        alive = await self._alive(redis, self._keys.hosts)
        return Counter(item.rpartition(":")[2] for item in alive)

    async def publish(
        self, redis: Any, plugins: Mapping[str, str], queues: Mapping[str, Collection[str]]
    ) -> PublishedCatalog:
        """Publish the versions for all hosts and workers, as the next generation."""
        last = await self.published(redis)
        digest = digest_of(plugins)
        if last is not None and last.digest == digest:
            return last
        generation = last.generation + 1 if last else 1
        new = PublishedCatalog(
            generation=generation, digest=digest, plugins=dict(plugins), queues=dict(queues)
        )
        await redis.set(self._keys.catalog, seal(self._key, CATALOG, asdict(new)))
        return new

    async def published(self, redis: Any) -> PublishedCatalog | None:
        """Return the published catalog. Raises `EnvelopeError` for one of others."""
        message = await redis.get(self._keys.catalog)
        if message is None:
            return None
        return PublishedCatalog(**open_sealed(self._key, CATALOG, message))

    def _marked(self, entry: str) -> str:
        return f"{entry}:{mark_of(self._key, entry)}"

    async def _record_heartbeat(self, redis: Any, key: str, member: str) -> None:
        now = await self.clock.ask(redis)
        await redis.zadd(key, {member: now})
        await redis.zremrangebyscore(key, 0, now - ALIVE_FOR)
        await redis.expire(key, _FORGOTTEN_AFTER)

    async def _alive(self, redis: Any, key: str) -> list[str]:
        now = await self.clock.ask(redis)
        members = await redis.zrangebyscore(key, now - ALIVE_FOR, "+inf")
        return [item.decode() if isinstance(item, bytes) else item for item in members]


def plugins_of(catalog: Catalog) -> dict[str, str]:
    """Return the version of each plugin that a catalog serves."""
    return {
        name: plugin.contribution.digest
        for name, plugin in catalog.plugins.items()
        if plugin.contribution.digest
    }


def queues_of(catalog: Catalog) -> dict[str, list[str]]:
    """Return the names of the queues of each plugin that a catalog serves."""
    queues: dict[str, set[str]] = {}
    for name, tool in catalog.tools.items():
        if digest := catalog.plugin_digest_of(name):
            queues.setdefault(tool.source, set()).add(queue_name_for(digest, tool.groups))
    return {plugin: sorted(names) for plugin, names in queues.items()}


def digest_of(plugins: Mapping[str, str]) -> str:
    """Return the digest of a set of versions."""
    import hashlib

    return hashlib.sha256(json.dumps(sorted(plugins.items())).encode()).hexdigest()
