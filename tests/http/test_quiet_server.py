"""The HTTP server inside an event loop: how it ends."""

import asyncio

from satchel.http.listen_address import Address
from satchel.http.quiet_server import QuietServer, listen

PATIENCE = 20


async def _connections_after_stop(application, request):
    """Stop the server while its application answers a client that does not read."""
    listening, address = listen(Address("127.0.0.1", 0))
    server = QuietServer(application)
    serving = asyncio.create_task(server.serve([listening]))
    _reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    async with asyncio.timeout(PATIENCE):
        writer.write(request)
        while not server.server_state.tasks:
            await asyncio.sleep(0)
        server.stop()
        await serving
    writer.close()
    return len(server.server_state.connections)


async def _waiting(scope, receive, send):
    await asyncio.Event().wait()


async def _streaming(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})


def test_a_stopped_server_has_closed_a_connection_whose_request_is_not_complete():
    request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n"
    assert asyncio.run(_connections_after_stop(_waiting, request)) == 0


def test_a_stopped_server_has_closed_the_connection_of_a_client_that_does_not_read():
    request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    assert asyncio.run(_connections_after_stop(_streaming, request)) == 0
