"""Serve the pages of `satchel dev` until it is cancelled."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

from satchel.errors import SatchelError
from satchel.files.atomic_write import write_atomic
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.files.state_files import state_folder
from satchel.http.listen_address import Address
from satchel.http.quiet_server import QuietServer
from satchel.web.dev_app import dev_app
from satchel.web.page_security import PageKeys
from satchel.web.workbench import Workbench

SHORTEST_TOKEN = 16
_TOKEN_BYTES = 32


def kept_token(port: int) -> str:
    """Return the random token of a port; the next start there has the same.

    So a page that is open finds the server again. Only the user can read its file. Port 0 stands
    for any port, so its token is not kept.
    """
    if not port:
        return secrets.token_urlsafe(_TOKEN_BYTES)
    path = f"{state_folder()}/dev/{port}.token"
    with suppress(UnreadableFileError, UnicodeDecodeError):
        token = read_regular(path, 1_000)[0].decode().strip()
        if len(token) >= SHORTEST_TOKEN:
            return token
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with suppress(SatchelError):  # then the next start has another one
        write_atomic(path, token.encode(), private=True)
    return token


async def serve_dev(
    workbench: Workbench,
    listening: socket.socket,
    address: Address,
    token: str,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve on a socket that listens at an address, and follow the sources."""
    keys = PageKeys(token, address.port)
    server = QuietServer(dev_app(workbench, keys, address))
    following = asyncio.create_task(workbench.follow())
    running = asyncio.create_task(server.serve([listening]))
    ready()
    try:
        await asyncio.wait((asyncio.shield(running), following), return_when="FIRST_COMPLETED")
    finally:
        workbench.stream.close()
        server.stop()
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await running
