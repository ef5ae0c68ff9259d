"""MCP over stdin and stdout, which nothing else in the process can read or write meanwhile."""

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, BinaryIO, Protocol, TextIO

import anyio
from anyio.from_thread import BlockingPortal
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter


def claim_stdin() -> BinaryIO:
    """Return a private stream from stdin; whoever else reads there finds its end.

    A plugin or the program that it starts would otherwise take what a client said.
    """
    try:
        private = os.dup(0)
    except OSError:  # the process was started with it closed: nobody will say anything
        private = os.open(os.devnull, os.O_RDONLY)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return open(private, "rb")


def claim_stdout() -> TextIO:
    """Return a private stream to stdout; what others print there goes to stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return open(private, "w", encoding="utf-8", newline="\n")


class Served(Protocol):
    """Something that has a server of the SDK."""

    @property
    def server(self) -> Server[Any]:
        """The server."""


async def serve_stdio(serving: Served, stdin: BinaryIO, stdout: TextIO) -> None:
    """Serve one client until it closes its end. The streams must belong to nobody else."""
    async with _streams(stdin, stdout) as (reading, writing):
        options = serving.server.create_initialization_options()
        await serving.server.run(reading, writing, options)


@asynccontextmanager
async def _streams(stdin: BinaryIO, stdout: TextIO) -> AsyncIterator[tuple[Any, Any]]:
    """Read and write messages, one to a line.

    Not by the SDK's own transport: the thread that reads there is waited for when the server is
    to end, and it waits for a client that may say nothing more.
    """
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        thread = threading.Thread(
            target=_read, args=(stdin, portal, incoming), name="satchel-stdin", daemon=True
        )
        thread.start()
        tasks.start_soon(_write, outgoing, stdout)
        try:
            yield reading, writing
        finally:
            await portal.stop(cancel_remaining=True)
            tasks.cancel_scope.cancel()


def _read(stdin: BinaryIO, portal: BlockingPortal, incoming: Any) -> None:
    """Hand on what the client says, in a thread of its own."""
    with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        for line in stdin:
            message: SessionMessage | Exception
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as problem:
                message = problem
            portal.call(incoming.send, message)
        portal.call(incoming.aclose)


async def _write(outgoing: Any, stdout: TextIO) -> None:
    async for message in outgoing:
        line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        await anyio.to_thread.run_sync(_write_line, stdout, line, abandon_on_cancel=True)


def _write_line(stdout: TextIO, line: str) -> None:
    stdout.write(line + "\n")
    stdout.flush()
