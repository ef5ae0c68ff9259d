"""Running one program to its end: in bounded time, with bounded output, leaving nothing behind.

The program leads a process group of its own, and the group ends with it.
"""

import codecs
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.runtime.process_group import ProcessGroup

if TYPE_CHECKING:
    import asyncio
    from subprocess import Popen

STREAM_LIMIT = 30 * 1024
"""Bytes that are kept of each output stream, unless the caller says otherwise."""

_GRACE = 0.5  # and all that follows is done within the time that a call has to end
"""Seconds from asking a program to end to ending it."""
_DRAIN = 0.2
"""Seconds to wait for the rest of the output after the end."""
_CHUNK = 64 * 1024

_CAN_LISTEN = sys.platform != "win32"
"""Whether the event loop can listen to a pipe."""

_ENVIRONMENT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE"),
        *("TMPDIR", "TMP", "TEMP"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE"),
    }
)
"""The environment variables that reach a program, beside LC_*; a host's secrets are in others."""


async def run_program(
    arguments: Sequence[str],
    folder: str,
    seconds: float,
    *,
    environment: Mapping[str, str] | None = None,
    limit: int = STREAM_LIMIT,
) -> dict[str, Any]:
    """Run a program, and end it with all that it started: after its exit, in time, or cancelled.

    `environment` is all that it gets; without one it gets what is harmless of the host's. Of each
    output stream `limit` bytes are kept. Raises `ToolError` if it cannot be started.
    """
    child = _Child(arguments, folder, _environment() if environment is None else environment, limit)
    timed_out = False
    try:
        timed_out = not await _happens(child.exited, seconds)
        if not timed_out:
            await _happens(child.silent, _DRAIN)
    finally:
        await _end(child)
    return {
        "returncode": child.process.returncode,
        "stdout": child.stdout.text,
        "stderr": child.stderr.text,
        "timed_out": timed_out,
    }


class _Head:
    """The beginning of a stream of bytes, however long that gets."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._size = 0

    def take(self, data: bytes) -> None:
        self._size += len(data)
        self._kept += data[: self._limit - len(self._kept)]

    @property
    def text(self) -> str:
        if self._size <= self._limit:
            return self._kept.decode("utf-8", "replace")
        # Such a decoder holds back a letter that is cut in two.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        head = decoder.decode(bytes(self._kept))
        gone = self._size - self._limit + len(decoder.getstate()[0])
        return f"{head}\n[cut: {gone} more bytes]"


class _Child:
    """A program that runs, and what is heard of it.

    Not by `asyncio.create_subprocess_exec`: cancelled while it starts a program, that loses it;
    until Python 3.12 it can lose return codes; and it waits for whoever holds the output open.
    Here a program is known from the moment it runs, and one thread waits for its exit.
    """

    def __init__(
        self, arguments: Sequence[str], folder: str, environment: Mapping[str, str], limit: int
    ) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        """Nobody has its output open any more."""
        self.stdout, self.stderr = _Head(limit), _Head(limit)
        self.process = _started(arguments, folder, environment)
        Thread(target=self._reap, name="satchel-reaper", daemon=True).start()
        self._open: set[IO[bytes]] = set()
        self._listen(self.process.stdout, self.stdout)
        self._listen(self.process.stderr, self.stderr)

    def let_go(self) -> None:
        """Stop listening, whoever still has the output open."""
        for stream in tuple(self._open):
            self._ended(stream)

    def _reap(self) -> None:
        self.process.wait()
        with suppress(RuntimeError):  # the loop was closed meanwhile; nobody waits any more
            self._loop.call_soon_threadsafe(self.exited.set)

    def _listen(self, stream: IO[bytes] | None, head: _Head) -> None:
        assert stream is not None  # it was asked for
        self._open.add(stream)
        if _CAN_LISTEN:
            os.set_blocking(stream.fileno(), False)
            self._loop.add_reader(stream.fileno(), self._hear, stream, head)
        else:
            Thread(target=self._pump, args=(stream, head), daemon=True).start()

    def _hear(self, stream: IO[bytes], head: _Head) -> None:
        with suppress(BlockingIOError):
            data = os.read(stream.fileno(), _CHUNK)
            head.take(data)
            if not data:
                self._ended(stream)

    def _pump(self, stream: IO[bytes], head: _Head) -> None:
        with stream:
            while data := stream.read(_CHUNK):
                head.take(data)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended, stream)

    def _ended(self, stream: IO[bytes]) -> None:
        self._open.discard(stream)
        if _CAN_LISTEN:  # otherwise a thread may be reading, and closes it when it can
            self._loop.remove_reader(stream.fileno())
            stream.close()
        if not self._open:
            self.silent.set()


def _started(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str]
) -> "Popen[bytes]":
    from subprocess import DEVNULL, PIPE, Popen

    try:
        return Popen(  # noqa: S603 - what the model writes is meant to run
            arguments,
            bufsize=0,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as problem:
        advice = "; try a shorter one" if problem.errno == errno.E2BIG else ""
        raise ToolError(f"It could not be started ({problem.strerror}){advice}.") from None


async def _end(child: _Child) -> None:
    """End the whole group, and let go of its output even if somebody outside it holds that."""
    try:
        await ProcessGroup(child.process).end(_GRACE)
        await _happens(child.silent, _DRAIN)
    finally:
        child.let_go()


async def _happens(event: "asyncio.Event", seconds: float) -> bool:
    """Tell whether something happens in time."""
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _ENVIRONMENT or name.startswith("LC_")
    }
