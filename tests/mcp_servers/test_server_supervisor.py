import asyncio
import gc
import sys
from contextlib import asynccontextmanager

import pytest

from satchel.mcp_servers import server_supervisor
from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_supervisor import ServerSupervisor
from satchel.settings import Limits


async def test_a_server_that_fails_while_it_is_given_up_is_no_unread_exception(monkeypatch, plain):
    has_begun = asyncio.Event()

    @asynccontextmanager
    async def connect(*_arguments, **_options):
        has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ExceptionGroup("lost", [OSError("no network")]) from None
        yield

    monkeypatch.setattr(server_supervisor, "connect", connect)
    unread = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))
    supervisor = ServerSupervisor(ServerConfig(name="s", server=plain()), Limits(), lambda: None)
    task = asyncio.create_task(supervisor.run())
    await has_begun.wait()
    supervisor.end(task)
    await asyncio.wait([task])
    del task  # its traceback holds the connection's task
    gc.collect()
    assert unread == []


@pytest.mark.parametrize(
    "server",
    [
        StdioServer(command="run"),
        HttpServer("http://127.0.0.1:9/mcp", or_sse=True),
        HttpServer("http://127.0.0.1:9/mcp"),
        SseServer("http://127.0.0.1:9/sse"),
    ],
)
async def test_without_the_extra_every_server_says_at_once_how_to_install_it(monkeypatch, server):
    for module in ("mcp", "mcp_types", "httpx2"):
        monkeypatch.setitem(sys.modules, module, None)
    has_changed = asyncio.Event()
    supervisor = ServerSupervisor(ServerConfig(name="s", server=server), Limits(), has_changed.set)
    task = asyncio.create_task(supervisor.run())
    try:
        async with asyncio.timeout(10):
            await has_changed.wait()
        assert "cannot be reached without the extra mcp" in supervisor.snapshot.outage.message
    finally:
        supervisor.end(task)
        await asyncio.wait([task])
