"""A server of HTTP that runs inside an event loop of ours."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from satchel.http.listen_address import Address


class QuietServer(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at an address. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With an explicit protocol, asyncio sets TCP_NODELAY, so small responses are sent at once.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening
