"""MCP over streams that nothing else uses."""

import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from select import select
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.from_thread import BlockingPortal
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

from satchel.settings import MIB
from satchel.tools.callables import in_thread

_LOG = logging.getLogger("satchel.mcp")
_LAST_WORDS = 1.0
"""Seconds to send pending responses when this process ends the connection."""
LARGEST_LINE = 16 * MIB
"""Bytes of the longest message of a client."""


async def serve_stdio(server: Server[Any], stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve one client until it closes its end. Nothing else may use the streams."""
    options = server.create_initialization_options()
    try:
        async with _Wire(stdin, stdout).open() as (reading, writing):
            await server.run(reading, writing, options)
    except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the SDK was passing on a message when the connection ended


class _Wire:
    """Reads and writes messages, one on each line.

    The SDK's transport is not used: at the end it waits for its reading thread, which waits for
    a client that may send nothing more. And it answers open requests after the end of stdin, when
    clients of the SDK 1.x no longer expect that and fail with an `ExceptionGroup`.
    """

    def __init__(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        # Without a buffer: the lock of one would hold up the exit while a client does not read.
        self._stdin, self._stdout = stdin, getattr(stdout, "raw", stdout)
        self._incoming, self._reading = anyio.create_memory_object_stream[SessionMessage](0)
        self._writing, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._has_left = False
        """Whether the client closed its end; nothing is written after that."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        written = anyio.Event()
        async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
            reader = threading.Thread(
                target=self._read, args=(portal,), name="satchel-stdin", daemon=True
            )
            reader.start()
            tasks.start_soon(self._write, written)
            try:
                yield self._reading, self._writing
            finally:
                self._writing.close()
                with anyio.move_on_after(_LAST_WORDS, shield=True):
                    await written.wait()
                await portal.stop(cancel_remaining=True)
                tasks.cancel_scope.cancel()
                self._incoming.close()

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines of the client until it, or this process, closes the stream."""
        # OSError: a terminal that hangs up, or a socket that is reset; ValueError: closed here.
        with suppress(OSError, ValueError):
            while line := self._stdin.readline(LARGEST_LINE + 1):
                if len(line) > LARGEST_LINE:
                    while line and not line.endswith(b"\n"):
                        line = self._stdin.readline(LARGEST_LINE)
                    line = _TOO_LONG
                yield line

    def _read(self, portal: BlockingPortal) -> None:
        """Pass on the messages of the client; runs in its own thread."""
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            for line in self._lines():
                if line.isspace():
                    continue
                try:
                    message = _message(line)
                except MCPError as refused:
                    refusal = _error(_number(line), refused.code, refused.message)
                    portal.call(self._writing.send, SessionMessage(refusal))
                else:
                    portal.call(self._incoming.send, SessionMessage(message))
            self._has_left = True  # here: the event loop may be busy, and about to write
            portal.call(self._incoming.close)

    async def _write(self, written: anyio.Event) -> None:
        try:
            async for item in self._outgoing:
                if line := _line(item.message):
                    await in_thread(partial(self._put, line))
        except OSError:  # the client no longer reads
            self._incoming.close()
        finally:
            self._outgoing.close()
            written.set()

    def _put(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest and not self._has_left:
            if (count := self._stdout.write(rest)) is None:  # it does not block, and is full
                select([], [self._stdout], [])
            rest = rest[count or 0 :]


_TOO_LONG = b"\0"
"""Stands for a line that was too long, and is no message itself."""


def _line(message: types.JSONRPCMessage) -> bytes:
    """Return a message as a line; a response that JSON cannot express becomes an error."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        _LOG.warning("a message that JSON cannot express was not sent")
    if not isinstance(message, types.JSONRPCResponse):
        return b""
    text = "The response contains a value that JSON cannot express."
    return _line(_error(message.id, types.INTERNAL_ERROR, text))


def _message(line: bytes) -> types.JSONRPCMessage:
    text = "This is not a JSON-RPC message."
    if line == _TOO_LONG:
        raise MCPError(
            types.INVALID_REQUEST, f"The message is longer than {LARGEST_LINE // MIB} MiB."
        )
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as problem:
        if problem.errors()[0]["type"] == "json_invalid":
            raise MCPError(types.PARSE_ERROR, "This is not valid JSON.") from problem
        raise MCPError(types.INVALID_REQUEST, text) from problem
    # The SDK takes a request with an invalid id, such as 1.5, for a notification.
    if isinstance(message, types.JSONRPCNotification) and "id" in from_json(line):
        raise MCPError(types.INVALID_REQUEST, text)
    return message


def _number(line: bytes) -> Any:
    """Return the id of the request on an invalid line, `None` if it is unknown."""
    try:
        # `json` accepts some lines that the stricter parser refuses.
        match json.loads(line):
            case {"method": str(), "id": int() | str() as number} if not isinstance(number, bool):
                json.dumps(number, ensure_ascii=False).encode()
                return number
    except (ValueError, RecursionError):
        pass
    return None


def _error(number: Any, code: int, message: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
