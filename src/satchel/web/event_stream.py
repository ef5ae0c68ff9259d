"""Notify open pages that something changed, by server-sent events."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Scope, Send

_RETRY = b"retry: 500\n\n"
"""Milliseconds after which a browser connects again."""


class EventStream:
    """The newest state of the server; a page that reads too slowly misses only older ones."""

    def __init__(
        self,
        describe: Callable[[], Mapping[str, Any]],
        on_reader: Callable[[], None] = lambda: None,
    ) -> None:
        self._describe, self._on_reader = describe, on_reader
        self._revision = 0
        self._changed = asyncio.Event()
        self._message: tuple[int, bytes] = (-1, b"")
        self._is_closed = False

    def publish(self) -> None:
        """Send the state to every page; call it on the event loop."""
        self._revision += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._is_closed = True
        self.publish()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Stream the state until the page is closed."""
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_until_gone(receive))
        self._on_reader()
        try:
            await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writing, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
        seen = -1
        while not self._is_closed:
            if seen == self._revision:
                await self._changed.wait()
                continue
            if self._message[0] != self._revision:  # it is made once for all pages
                data = json.dumps({"revision": self._revision, **self._describe()})
                self._message = self._revision, f"data: {data}\n\n".encode()
            seen, message = self._message
            await send({"type": "http.response.body", "body": message, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
