"""Send list-changed notifications to connected clients."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from satchel.mcp.served_client import ServedClient, events_between, send
from satchel.mcp.view_cache import ClientView
from satchel.satchel import Satchel
from satchel.task_set import TaskSet
from satchel.watch_thread import calling_on_catalog

_PATIENCE = 5.0
"""Seconds to wait for a client that does not read; the newest state is sent after that."""


class Notifier:
    """Notifies clients when what they would see now differs from what they saw.

    `newest` returns the view of clients without a connection, and `shown_to` that of one client
    with a connection.
    """

    def __init__(
        self,
        app: Satchel,
        newest: Callable[[], ClientView],
        shown_to: Callable[[ServedClient], ClientView],
    ) -> None:
        self._app, self._newest, self._shown_to = app, newest, shown_to
        self._bus = InMemorySubscriptionBus()
        self.listening = ListenHandler(self._bus)
        """Handles the streams of clients without a connection."""
        self._compared, self._published = app.catalog, newest()
        self._talks: set[ServedClient] = set()
        self._tasks = TaskSet()
        self._runs = 0

    def __len__(self) -> int:
        """Return the number of clients with a connection."""
        return len(self._talks)

    def join(self, client: ServedClient) -> None:
        """Notify a client of changes until its connection ends."""
        client.shown = self._shown_to(client)
        self._talks.add(client)
        if client.connection is not None:
            client.connection.exit_stack.callback(self._talks.discard, client)

    def check(self, client: ServedClient, before: ClientView) -> None:
        """Notify a client if it switched groups since it saw a view."""
        if client in self._talks and frozenset(client.session.active_groups) != before.active:
            self._tasks.start(self._tell(client))

    def updated(self, uri: str, client: ServedClient | None) -> None:
        """Notify a client, or those without a connection, that a resource of a server changed."""
        if client is None:
            self._tasks.start(self._bus.publish(ResourceUpdated(uri)))
        else:
            client.updated.add(uri)
            self._tasks.start(self._tell(client))

    def close(self) -> None:
        """Close the streams of clients without a connection."""
        self.listening.close()

    @asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[None]:
        """Notify clients while a server runs; several may run at once."""
        self._runs += 1
        with calling_on_catalog(self._app.subscribe_catalogs, self._compare):
            try:
                yield
            finally:
                self._runs -= 1
                if not self._runs:
                    self.close()
                    self._tasks.cancel()

    def _compare(self) -> None:
        if self._compared is self._app.catalog:  # an earlier call handled this change, too
            return
        self._compared = self._app.catalog
        for client in self._talks:
            self._tasks.start(self._tell(client))
        self._tasks.start(self._publish())

    async def _publish(self) -> None:
        before, self._published = self._published, self._newest()
        for event in events_between(before, self._published):
            await self._bus.publish(event)

    async def _tell(self, client: ServedClient) -> None:
        """Notify one client; one that does not read is notified when it does."""
        client.has_news = True
        if client.shown is None or client.is_being_notified:
            return
        client.is_being_notified = True
        try:
            while client.has_news and client in self._talks:
                client.has_news, now = False, self._shown_to(client)
                updated, client.updated = client.updated, set()
                try:
                    async with asyncio.timeout(_PATIENCE):
                        for event in events_between(client.shown, now):
                            await send(event, client)
                        for uri in updated:
                            await send(ResourceUpdated(uri), client)
                except TimeoutError:
                    client.has_news = True
                    client.updated |= updated
                else:
                    client.shown = now
        finally:
            client.is_being_notified = False
