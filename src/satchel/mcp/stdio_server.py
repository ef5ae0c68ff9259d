"""MCP over stdin and stdout, which nothing else in the process can read or write meanwhile."""

import json
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, BinaryIO, Protocol

import anyio
import mcp_types as types
from anyio.from_thread import BlockingPortal
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

_LOG = logging.getLogger("satchel.mcp")
_LAST_WORDS = 1.0
"""Seconds in which a client that has closed its end still gets the answers that it waits for."""
_LISTENING = "subscriptions/listen"
"""The one request that is answered only at the end."""


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


def claim_stdout() -> BinaryIO:
    """Return a private stream to stdout; what others print there goes to stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return open(private, "wb")


class StdioServed(Protocol):
    """Something that has a server of the SDK."""

    @property
    def server(self) -> Server[Any]:
        """The server."""


async def serve_stdio(serving: StdioServed, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve one client until it closes its end. The streams must belong to nobody else."""
    options = serving.server.create_initialization_options()
    try:
        async with _Wire(stdin, stdout).open() as (reading, writing):
            await serving.server.run(reading, writing, options)
    except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the SDK was handing on a message when it was to end


class _Wire:
    """Reads and writes messages, one to a line.

    Not by the SDK's own transport: the thread that reads there is waited for when the server is
    to end, and it waits for a client that may say nothing more.
    """

    def __init__(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._incoming, self._reading = anyio.create_memory_object_stream[SessionMessage](0)
        self._writing, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._asked: dict[Any, anyio.Event] = {}
        """What the client waits for: by the ids of its requests, what is set with the answers."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        """Read and write during the block."""
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

    def _read(self, portal: BlockingPortal) -> None:
        """Hand on what the client says, in a thread of its own."""
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            for line in self._stdin:
                if line.isspace():
                    continue
                try:
                    message = _message(line)
                except MCPError as refused:
                    refusal = _error(_number(line), refused.code, refused.message)
                    portal.call(self._writing.send, SessionMessage(refusal))
                else:
                    portal.call(self._hear, message)
            portal.call(self._end)

    async def _hear(self, message: types.JSONRPCMessage) -> None:
        match message:
            case types.JSONRPCRequest() if message.method != _LISTENING:
                self._asked[message.id] = anyio.Event()
            case types.JSONRPCNotification(method="notifications/cancelled"):
                self._settle((message.params or {}).get("requestId"))
        await self._incoming.send(SessionMessage(message))

    async def _end(self) -> None:
        with anyio.move_on_after(_LAST_WORDS):
            for answered in tuple(self._asked.values()):
                await answered.wait()
        self._incoming.close()

    def _settle(self, number: Any) -> None:
        if isinstance(number, int | str) and (answered := self._asked.pop(number, None)):
            answered.set()

    async def _write(self, written: anyio.Event) -> None:
        try:
            async for item in self._outgoing:
                message = item.message
                if line := _line(message):
                    await anyio.to_thread.run_sync(self._put, line, abandon_on_cancel=True)
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settle(message.id)
        except OSError:  # the client does not listen any more
            self._incoming.close()
        finally:
            self._outgoing.close()
            written.set()

    def _put(self, line: bytes) -> None:
        self._stdout.write(line)
        self._stdout.flush()


def _line(message: types.JSONRPCMessage) -> bytes:
    """Write a message down; of what cannot be written an answer says so, and nothing else goes."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        _LOG.warning("a message that JSON cannot carry was not sent")
    if not isinstance(message, types.JSONRPCResponse):
        return b""
    told = "The answer holds something that JSON cannot carry."
    return _line(_error(message.id, types.INTERNAL_ERROR, told))


def _message(line: bytes) -> types.JSONRPCMessage:
    """Read a message. Raises `MCPError` for what is none."""
    told = "That is no message of JSON-RPC."
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as problem:
        if problem.errors()[0]["type"] == "json_invalid":
            raise MCPError(types.PARSE_ERROR, "That is no JSON.") from problem
        raise MCPError(types.INVALID_REQUEST, told) from problem
    # The SDK takes a request for a notification if its id is none, such as 1.5.
    if isinstance(message, types.JSONRPCNotification) and "id" in from_json(line):
        raise MCPError(types.INVALID_REQUEST, told)
    return message


def _number(line: bytes) -> Any:
    """Return the id of the request that a line was meant to be, if it can be told."""
    try:
        # It reads some of what the stricter reader does not.
        match json.loads(line):
            case {"method": str(), "id": int() | str() as number} if not isinstance(number, bool):
                json.dumps(number, ensure_ascii=False).encode()
                return number
    except (ValueError, RecursionError):
        pass
    return None


def _error(number: Any, code: int, told: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=told)
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
