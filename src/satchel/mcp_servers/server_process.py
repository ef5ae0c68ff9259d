"""Run an MCP server as a process, with its stdin and stdout as a pair of message streams.

The SDK's own transport has no limit for the length of a line: a server that never ends its line
would fill the memory of the host and block all other servers.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.errors import SatchelError
from satchel.files.atomic_write import write_atomic
from satchel.files.compiled_cache import own_compiled
from satchel.files.file_reader import digest_of
from satchel.files.process_group import ProcessGroup
from satchel.files.state_files import cache_path, make_folder
from satchel.mcp_servers.connection_errors import HeldProgramError
from satchel.mcp_servers.server_addresses import StdioServer, WorkerServer, nesting
from satchel.mcp_servers.tame_json import bytes_of, tamed
from satchel.settings import KIB
from satchel.tools.callables import in_thread
from satchel.trust.fetched_servers import fetches_only

if TYPE_CHECKING:
    from anyio.abc import Process
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_PATIENCE = 1.5
"""Seconds in which a process must exit after its stdin closes, and again after a signal.

Clients give `satchel serve`, which ends its servers, two seconds.
"""

_FOLDER_VARIABLE = "SATCHEL_SERVER_FOLDER"
"""The variable with the folder of a server that `npx` starts."""

_POLL_INTERVAL = 0.1
"""Seconds between two checks whether a process still runs."""


_STDERR_BYTES = 2_000
"""Bytes kept of a server's standard error."""


class StderrBuffer:
    """Keeps the end of a process's standard error; `on_line` is called with each line."""

    def __init__(self, on_line: Callable[[str], object] | None = None) -> None:
        self._bytes, self._unfinished, self._on_line = b"", b"", on_line
        self._printed: str | None = ""

    def add_printed(self, line: bytes | None) -> None:
        """Keep the last line on stdout that is no message; `None` after the first message."""
        if line is None:
            self._printed = None
        elif self._printed is not None and line.strip():
            self._printed = line[:_STDERR_BYTES].decode(errors="replace")

    @property
    def printed(self) -> str:
        """Return the last line that the process printed before its first message, or `""`."""
        return self._printed or ""

    def add(self, data: bytes) -> None:
        """Append output, and drop the oldest."""
        self._bytes = (self._bytes + data)[-_STDERR_BYTES:]
        if self._on_line is not None:
            *lines, unfinished = (self._unfinished + data).split(b"\n")
            self._unfinished = unfinished[:_STDERR_BYTES]  # a line without an end is cut
            for line in filter(bytes.strip, lines):
                self._on_line(line.decode(errors="replace"))

    @property
    def text(self) -> str:
        """Return the end of the output."""
        return self._bytes.decode(errors="replace")

    @property
    def last_line(self) -> str:
        """Return the last line that is not blank."""
        lines = self.text.splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")


@asynccontextmanager
async def run_process(
    server: StdioServer, stderr: StderrBuffer, longest: int
) -> "AsyncIterator[TransportStreams]":
    """Start a program; end it and its child processes when the block ends.

    Raises `SatchelError` for a message of more than `longest` bytes, and `HeldProgramError` if the
    server's check refuses the start.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    own, greeting, patience = {**nesting(), **own_compiled()}, b"", _PATIENCE
    if isinstance(server, WorkerServer):
        own, greeting, patience = {}, server.greeting, server.patience
    if server.check is not None and (problem := await in_thread(server.check)) is not None:
        raise HeldProgramError(problem)
    if server.start_variables is not None:
        server = replace(server, env=await in_thread(server.start_variables.read))
    started = _outside_project(server)
    async with _stderr_file(stderr) as errors:
        process = await anyio.open_process(
            [started.command, *started.args],
            env={**get_default_environment(), **(started.env or {}), **own},
            cwd=started.cwd,
            stderr=errors,
            start_new_session=True,
        )
        received, read = anyio.create_memory_object_stream[Any](0)
        write, outgoing = anyio.create_memory_object_stream[Any](0)
        try:
            with received, read, write, outgoing:
                async with anyio.create_task_group() as pipes:
                    pipes.start_soon(_receive, process, received, longest, stderr)
                    pipes.start_soon(_send, process, outgoing, greeting)
                    pipes.start_soon(_watch, process, received)
                    try:
                        yield read, write
                    finally:
                        pipes.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, patience)


def _outside_project(server: StdioServer) -> StdioServer:
    """Return how to start `uv` and `npx` so that what they install is not in the server's folder.

    A `.venv` that `uv` makes there would be a change of a trusted project. An `npx` that fetches a
    package looks in `node_modules/.bin` there, and in all folders above, for the package and for
    each program that it runs, such as `node`. So it starts in a folder of our own. `--prefix` alone
    is not enough, and it hides the npm settings of the machine.
    """
    folder = os.path.abspath(server.cwd or os.curdir)
    if os.path.basename(server.command) == "uv" and server.check is not None:
        # One for each command: two servers of a project may be two projects of `uv`.
        declared = "\0".join((folder, server.command, *server.args))
        own = cache_path(os.path.join("uv", digest_of(os.fsencode(declared))))
        return replace(server, env={"UV_PROJECT_ENVIRONMENT": own, **(server.env or {})})
    if server.command != "npx" or not fetches_only(server.command, server.args, folder):
        return server
    make_folder(npx_folder := cache_path("npx"))
    if os.name == "nt":  # without `sh`
        return replace(server, args=(f"--prefix={npx_folder}", *server.args))
    shell = os.path.join(npx_folder, "sh")
    if not os.access(shell, os.X_OK):
        write_atomic(os.path.join(npx_folder, "package.json"), b"{}")  # npx looks no further up
        write_atomic(
            shell, f'#!/bin/sh\ncd "${_FOLDER_VARIABLE}" && exec sh "$@"\n'.encode(), private=True
        )
        os.chmod(shell, 0o700)
    return replace(
        server,
        args=(f"--script-shell={shell}", *server.args),
        env={**(server.env or {}), _FOLDER_VARIABLE: folder},
        cwd=npx_folder,
    )


async def _receive(process: "Process", received: Any, longest: int, stderr: StderrBuffer) -> None:
    """Receive messages, one a line; the SDK handles the error for an invalid one."""
    import anyio
    from anyio.streams.buffered import BufferedByteReceiveStream

    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    with received, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            try:
                line = await lines.receive_until(b"\n", longest)
            except (anyio.EndOfStream, anyio.IncompleteRead):
                return
            except anyio.DelimiterNotFound:
                raise too_long(longest) from None
            message = message_of(line)
            stderr.add_printed(line if isinstance(message, ValueError) else None)
            await received.send(message)


def message_of(data: bytes | str) -> "SessionMessage | ValueError":
    """Parse a message; return the error that the SDK expects for an invalid one."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    for read in (bytes_of, tamed):
        # A new error: the text of this one quotes the server.
        with suppress(ValueError):
            return SessionMessage(jsonrpc_message_adapter.validate_json(read(data), by_name=False))
    return ValueError("invalid message")


def too_long(longest: int) -> SatchelError:
    """Return the error for a message that is longer than the limit."""
    return SatchelError(f"sent a message of more than {longest // KIB} KiB (limit mcp_message)")


async def _send(process: "Process", outgoing: Any, greeting: bytes) -> None:
    import anyio

    assert process.stdin is not None
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        if greeting:
            await process.stdin.send(greeting)
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(text.encode() + b"\n")


async def _watch(process: "Process", received: Any) -> None:
    """Close the stream when the process exits, even if a child keeps its stdout open."""
    import anyio

    while process.returncode is None:  # noqa: ASYNC110 - there is no event for this
        await anyio.sleep(_POLL_INTERVAL)
    # Kill its children, so that stdout reaches its end and everything is read.
    ProcessGroup(process).kill()
    await anyio.sleep(_PATIENCE)
    received.close()


async def _end(process: "Process", patience: float) -> None:
    """Close the stdin of a process, then signal it and its children if they still run."""
    import anyio

    assert process.stdin is not None
    group = ProcessGroup(process)
    try:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await process.stdin.aclose()
        await group.has_exited(patience)
    except BaseException:  # cancelled: do not wait
        group.kill()
        raise
    finally:
        await group.end(_PATIENCE)
        # A child in another process group may keep the pipes open.
        with anyio.move_on_after(_PATIENCE):
            await process.aclose()


@asynccontextmanager
async def _stderr_file(stderr: StderrBuffer) -> AsyncIterator[Any]:
    """Yield a file for the stderr of a process; it must not write to the host's terminal."""

    class Listener(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            stderr.add(data)

    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errors:
        reader = os.fdopen(reading, "rb", 0)
        listening, _ = await asyncio.get_running_loop().connect_read_pipe(Listener, reader)
        try:
            yield errors
        finally:
            listening.close()
