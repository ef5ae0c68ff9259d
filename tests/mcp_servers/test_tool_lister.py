import asyncio
import itertools
from types import SimpleNamespace

import pytest

from satchel.errors import SatchelError
from satchel.mcp_servers.server_addresses import HttpServer
from satchel.mcp_servers.tool_lister import ToolLister
from satchel.settings import Limits

SERVER = HttpServer("https://a.org")


class Endless:
    """A client of a server whose pages come quickly and never end."""

    server_capabilities = SimpleNamespace(tools=object())

    def __init__(self):
        self.numbers = itertools.count()

    async def list_tools(self, cursor, meta):
        await asyncio.sleep(0.01)
        return SimpleNamespace(tools=[], ttl_ms=0, meta=None, next_cursor=str(next(self.numbers)))


async def test_all_pages_together_have_one_limit_of_time():
    client = Endless()
    with pytest.raises(SatchelError, match=r"not complete within 0.2 s"):
        await ToolLister(client, SERVER, Limits(mcp_connect=0.2)).listing()
    assert next(client.numbers) > 1
