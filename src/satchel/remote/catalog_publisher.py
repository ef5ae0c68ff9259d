"""Publish which versions all hosts and workers are to serve, and see who serves them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from satchel.catalog.catalog import Catalog
from satchel.remote.docket_json import checked_url, json_only, open_docket
from satchel.remote.fleet_registry import (
    HEARTBEAT,
    FleetRegistry,
    PublishedCatalog,
    RedisClock,
    digest_of,
    plugins_of,
    queues_of,
)
from satchel.remote.remote_keys import UNREACHABLE, RemoteKeys
from satchel.remote.sealed_envelope import checked_key, mark_of

if TYPE_CHECKING:
    from satchel.satchel import Satchel


class CatalogPublisher:
    """The catalog that several hosts and workers agree on, with its generation and digest.

    `url`, `key` and `name` are those of the hosts' `RemoteRunner`. Use it in `async with`. One
    process publishes at a time; the generation grows with each new set of versions.
    """

    def __init__(self, url: str, *, key: str, name: str = "satchel") -> None:
        secret = checked_key(key)
        self._queue = open_docket(checked_url(url), name, mark_of(secret, "catalog"))
        self._registry = FleetRegistry(RemoteKeys(name), secret, RedisClock())

    async def __aenter__(self) -> Self:
        with json_only():
            await self._queue.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._queue.__aexit__(None, None, None)

    async def publish(self, catalog: Catalog) -> PublishedCatalog:
        """Publish the versions of a catalog as those that all are to serve."""
        async with self._queue.redis() as redis:
            return await self._registry.publish(redis, plugins_of(catalog), queues_of(catalog))

    async def published(self) -> PublishedCatalog | None:
        """Return the published catalog. Raises `EnvelopeError` for one of others."""
        async with self._queue.redis() as redis:
            return await self._registry.published(redis)

    async def slots(self, catalog: PublishedCatalog) -> Mapping[str, int]:
        """Return how many calls of each plugin the workers with its version run at once.

        If its tools are in different groups, the smallest number of them counts.
        """
        async with self._queue.redis() as redis:
            return {
                plugin: min([(await self._registry.capacity(redis, name)).slots for name in queues])
                for plugin, queues in catalog.queues.items()
            }

    async def hosts(self) -> Mapping[str, int]:
        """Return how many hosts serve each catalog now, by its digest."""
        async with self._queue.redis() as redis:
            return await self._registry.hosts(redis)

    @asynccontextmanager
    async def announcing(self, satchel: "Satchel") -> AsyncIterator[None]:
        """Announce the catalog that a host serves, again and again, also after its changes."""
        host = uuid4().hex

        async def announce() -> None:
            while True:
                with suppress(*UNREACHABLE):
                    async with self._queue.redis() as redis:
                        digest = digest_of(plugins_of(satchel.catalog))
                        await self._registry.heartbeat_of_host(redis, host, digest)
                await asyncio.sleep(HEARTBEAT)

        task = asyncio.create_task(announce())
        try:
            yield
        finally:
            task.cancel()
