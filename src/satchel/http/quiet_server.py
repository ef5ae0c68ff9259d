"""An HTTP server that runs inside our event loop."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from satchel.errors import SatchelError
from satchel.http.listen_address import Address

_SHUTDOWN_TIMEOUT = 1
_TICK = 1.0
"""Seconds between two looks at the clock, which answers have in their header `Date`."""


class QuietServer(uvicorn.Server):
    """A server of one application that writes no log and leaves signals to its caller."""

    def __init__(self, app: "ASGIApp", **options: Any) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
            **options,
        )
        super().__init__(config)
        self._is_stopped = asyncio.Event()

    def stop(self) -> None:
        """Let `serve` end."""
        self.should_exit = True
        self._is_stopped.set()

    async def main_loop(self) -> None:
        """Wait until it is stopped; uvicorn would look ten times a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_stopped.wait(), _TICK)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close every connection, also one whose client does not read."""
        await super().shutdown(sockets)
        # uvicorn cancels these tasks and does not wait.
        if cancelled := tuple(self.server_state.tasks):
            await asyncio.wait(cancelled, timeout=_SHUTDOWN_TIMEOUT)
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # so that the loop closes the sockets

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def listen(address: Address) -> tuple[socket.socket, Address]:
    """Return a socket that listens at an address, and the address with its port.

    Raises `SatchelError`.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With an explicit protocol, asyncio sets TCP_NODELAY, so small responses are sent at once.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(128)
    except OSError as problem:
        listening.close()
        where = address.root_url.partition("://")[2]
        fix = "give another port with --port (dev) or --http (serve), or 0 for any"
        raise SatchelError(f"cannot listen: {problem.strerror}", where=where, fix=fix) from None
    return listening, replace(address, port=listening.getsockname()[1])
