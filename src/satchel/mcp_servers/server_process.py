"""A process that speaks MCP on its standard input and output, as a pair of streams.

Not the client of the SDK: that puts a line together until it ends, so a server that never ends
its line fills the memory of the host, and holds up all other servers with it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from satchel.errors import SatchelError
from satchel.mcp_servers.server_addresses import CARRIED, StdioServer, WorkerServer
from satchel.runtime.process_group import ProcessGroup
from satchel.settings import KIB

if TYPE_CHECKING:
    from anyio.abc import Process
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_PATIENCE = 2.0
"""Seconds that a process has to end by itself, and then to end when it is told to."""

_LOOK = 0.1
"""Seconds between two looks at whether a process still runs."""


@asynccontextmanager
async def running(
    server: StdioServer, errors: Any, longest: int
) -> "AsyncIterator[TransportStreams]":
    """Start a program, and end it with all that it started when the block ends.

    Raises `SatchelError` once a message of it is longer than `longest` bytes.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    ours = server if isinstance(server, WorkerServer) else None
    carried = {} if ours else {CARRIED: "1"}
    process = await anyio.open_process(
        [server.command, *server.args],
        env={**get_default_environment(), **carried, **(server.env or {})},
        cwd=server.cwd,
        stderr=errors,
        start_new_session=True,
    )
    greeting, patience = (ours.greeting, ours.patience) if ours else (b"", _PATIENCE)
    heard, read = anyio.create_memory_object_stream[Any](0)
    write, to_send = anyio.create_memory_object_stream[Any](0)
    try:
        with heard, read, write, to_send:
            async with anyio.create_task_group() as pipes:
                pipes.start_soon(_hear, process, heard, longest)
                pipes.start_soon(_say, process, to_send, greeting)
                pipes.start_soon(_watch, process, heard)
                try:
                    yield read, write
                finally:
                    pipes.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, patience)


async def _hear(process: "Process", heard: Any, longest: int) -> None:
    """Hand on the messages of a process, each a line; nonsense is handed on as what it is."""
    import anyio
    from anyio.streams.buffered import BufferedByteReceiveStream

    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    with heard, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            try:
                line = await lines.receive_until(b"\n", longest)
            except (anyio.EndOfStream, anyio.IncompleteRead):
                return
            except anyio.DelimiterNotFound:
                raise too_long(longest) from None
            await heard.send(message_of(line))


def message_of(data: bytes | str) -> "SessionMessage | ValueError":
    """Return a message of the protocol, or the error that the SDK expects in its place."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError:  # its text would quote the server
        return ValueError("invalid message")


def too_long(longest: int) -> SatchelError:
    """Make the error for a message that is longer than the limit."""
    return SatchelError(f"sent a message of more than {longest // KIB} KiB (limit mcp_message)")


async def _say(process: "Process", to_send: Any, greeting: bytes) -> None:
    import anyio

    assert process.stdin is not None
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        if greeting:
            await process.stdin.send(greeting)
        async for item in to_send:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(text.encode() + b"\n")


async def _watch(process: "Process", heard: Any) -> None:
    """Tell of the end of a process, though what it started may hold its output open."""
    import anyio

    while process.returncode is None:  # noqa: ASYNC110 - nothing else tells of it
        await anyio.sleep(_LOOK)
    # What is left of it ends, too, so that all it said is heard.
    ProcessGroup(process).kill()
    await anyio.sleep(_PATIENCE)
    heard.close()


async def _end(process: "Process", patience: float) -> None:
    """Close the input of a process, and end it if that does not do, and all that it started."""
    import anyio

    assert process.stdin is not None
    group = ProcessGroup(process)
    try:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await process.stdin.aclose()
        await group.has_exited(patience)
    except BaseException:  # cancelled: no more time is given
        group.kill()
        raise
    finally:
        await group.end(_PATIENCE)
        # What it started in a group of its own may hold its pipes open.
        with anyio.move_on_after(_PATIENCE):
            await process.aclose()
