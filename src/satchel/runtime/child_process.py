"""Run one program to its end, with limited time and output, and leave no process behind.

The program leads a process group of its own, which ends with it.
"""

import codecs
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.files.compiled_cache import own_compiled
from satchel.files.process_group import ProcessGroup

if TYPE_CHECKING:
    import asyncio
    from subprocess import Popen

STREAM_LIMIT = 30 * 1024
"""Bytes that are kept of each output stream, unless the caller says otherwise."""

_GRACE = 0.5  # with all that follows, less than the grace time of a call
"""Seconds from TERM to KILL."""
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
"""The environment variables that a program gets, beside LC_*; others may hold secrets."""


async def run_program(
    arguments: Sequence[str],
    folder: str,
    seconds: float,
    *,
    limit: int = STREAM_LIMIT,
) -> dict[str, Any]:
    """Run a program, and end its whole process group: after its exit, a timeout or a cancellation.

    It gets harmless environment variables of the host, and `limit` bytes of each output stream are
    kept. Raises `ToolError` if it cannot be started.
    """
    child = _Child(arguments, folder, limit)
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
    """The beginning of a byte stream of any length."""

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
        # An incremental decoder holds back a character that is cut in two.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        head = decoder.decode(bytes(self._kept))
        cut = self._size - self._limit + len(decoder.getstate()[0])
        return f"{head}\n[cut: {cut} more bytes]"


class _Child:
    """A running program and its output.

    Not `asyncio.create_subprocess_exec`: cancelled while it starts a program, it loses the program;
    until Python 3.12 it can lose return codes; and it waits until all holders of the output close
    it. Here the program is known as soon as it runs, and one thread waits for its exit.
    """

    def __init__(self, arguments: Sequence[str], folder: str, limit: int) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        """Set when no process has the output open any more."""
        self.stdout, self.stderr = _Head(limit), _Head(limit)
        self.process = _started(arguments, folder)
        Thread(target=self._reap, name="satchel-reaper", daemon=True).start()
        self._open: set[IO[bytes]] = set()
        self._listen(self.process.stdout, self.stdout)
        self._listen(self.process.stderr, self.stderr)

    def stop_reading(self) -> None:
        """Stop reading, also if a process still has the output open."""
        for stream in tuple(self._open):
            self._ended(stream)

    def _reap(self) -> None:
        self.process.wait()
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            self._loop.call_soon_threadsafe(self.exited.set)

    def _listen(self, stream: IO[bytes] | None, head: _Head) -> None:
        assert stream is not None  # it is a pipe
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
        if _CAN_LISTEN:  # else a thread reads it, and closes it
            self._loop.remove_reader(stream.fileno())
            stream.close()
        if not self._open:
            self.silent.set()


def _started(arguments: Sequence[str], folder: str) -> "Popen[bytes]":
    from subprocess import DEVNULL, PIPE, Popen

    try:
        return Popen(  # noqa: S603 - running a program is the purpose
            arguments,
            bufsize=0,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=folder,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as problem:
        advice = "; try a shorter one" if problem.errno == errno.E2BIG else ""
        raise ToolError(f"It could not be started ({problem.strerror}){advice}.") from None


async def _end(child: _Child) -> None:
    """End the whole group; stop reading even if a process outside it has the output open."""
    try:
        await ProcessGroup(child.process).end(_GRACE)
        await _happens(child.silent, _DRAIN)
    finally:
        child.stop_reading()


async def _happens(event: "asyncio.Event", seconds: float) -> bool:
    """Return whether an event happens in time."""
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _ENVIRONMENT or name.startswith("LC_")
    }
    return {**kept, **own_compiled()}
