"""The clients of the tests: the official one, in both eras of the protocol."""

import asyncio
from contextlib import asynccontextmanager

from mcp import Client
from mcp.shared.exceptions import MCPError

HANDSHAKE, STATELESS = "legacy", "auto"
ERAS = (HANDSHAKE, STATELESS)
PATIENCE = 120.0
"""Seconds after which something that should come counts as never coming."""


class Told:
    """What a server told a client, in the order in which it came."""

    def __init__(self):
        self.messages, self.logged, self.metas, self.progress = [], [], [], []
        self._came = asyncio.Event()

    async def message(self, message):
        self.messages.append(getattr(message, "method", type(message).__name__))
        self._came.set()

    async def log(self, params):
        self.logged.append((params.level, params.data))
        self.metas.append(params.meta)

    async def step(self, done, total, message):
        self.progress.append((done, total, message))

    async def until(self, method):
        """Wait until a message came."""
        async with asyncio.timeout(PATIENCE):
            while method not in self.messages:
                self._came.clear()
                await self._came.wait()


@asynccontextmanager
async def client_of(server, era=HANDSHAKE, **options):
    """Connect to a `Serving`, a command or an address; yields the client, and what it is told."""
    messages = Told()
    target = getattr(server, "server", server)
    async with asyncio.timeout(PATIENCE * 2):
        async with Client(
            target,
            mode=era,
            message_handler=messages.message,
            logging_callback=messages.log,
            cache=None,
            **options,
        ) as client:
            yield client, messages


def run(coroutine):
    return asyncio.run(coroutine)


async def code_of(awaitable):
    """Return the code and the text of the error that something is refused with."""
    try:
        result = await awaitable
    except MCPError as refused:
        return refused.error.code, refused.error.message
    raise AssertionError(f"it was not refused: {result}")


async def names_of(client):
    return [tool.name for tool in (await client.list_tools()).tools]
