import asyncio
import gc
from contextlib import asynccontextmanager

from satchel.mcp_servers import server_supervisor
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
