"""Pass changes of the resources of servers on to the clients that subscribed to them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp.notifier import Notifier
from satchel.mcp.served_client import ServedClient
from satchel.mcp.view_cache import ClientView
from satchel.mcp_servers.server_offers import RemoteResource

_PATIENCE = 10.0
"""Seconds that a server may take to confirm a subscription."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedUpdate:
    """Notifies one client, or with `None` those without a connection, of a change."""

    notifier: Notifier
    uri: str
    client: ServedClient | None
    loop: asyncio.AbstractEventLoop

    def __call__(self) -> None:
        """Notify soon; any thread may call this."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.notifier.updated, self.uri, self.client)


async def follow_resource(
    view: ClientView, uri: str, notifier: Notifier, client: ServedClient | None
) -> Callable[[], None]:
    """Follow a resource if it is that of a server; return what ends that.

    Raises `ToolError` if the server does not report its changes.
    """
    offered = view.offers.find(uri)
    if offered is None or not isinstance(offered[0], RemoteResource):
        return lambda: None
    on_update = PassedUpdate(
        notifier=notifier, uri=uri, client=client, loop=asyncio.get_running_loop()
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            return await offered[0].follow(uri, on_update)
    except TimeoutError:
        raise ToolError("its server did not confirm it in time") from None


@asynccontextmanager
async def following(
    view: ClientView, uris: Iterable[str], notifier: Notifier
) -> AsyncIterator[None]:
    """Follow the resources of servers among some, for clients without a connection."""
    with ExitStack() as ends:

        async def follow(uri: str) -> None:
            # A resource that cannot be followed never changes, as far as its client sees.
            with suppress(ToolError):
                ends.callback(await follow_resource(view, uri, notifier, None))

        await asyncio.gather(*map(follow, uris))
        yield
