"""Streams of changes that break."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost

from satchel.mcp_servers.resource_subscriptions import keep_listening


class BreakingClient:
    """Its first stream raises an error before the server acknowledges it."""

    def __init__(self, error):
        self.errors = [error]

    @asynccontextmanager
    async def listen(self, **_):
        if self.errors:
            raise self.errors.pop()

        async def notices():
            await asyncio.Event().wait()
            yield

        yield notices()


async def test_a_stream_that_breaks_before_it_is_acknowledged_is_opened_again():
    has_begun = asyncio.Event()
    client = BreakingClient(SubscriptionLost("lost"))
    listening = asyncio.create_task(keep_listening(client, has_begun.set))
    begun = asyncio.create_task(has_begun.wait())
    try:
        await asyncio.wait({begun, listening}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert has_begun.is_set()
    finally:
        begun.cancel()
        listening.cancel()


async def test_a_stream_that_the_server_refuses_is_not_opened_again():
    with pytest.raises(MCPError):
        await keep_listening(BreakingClient(MCPError(-32601, "no")), lambda: None)
