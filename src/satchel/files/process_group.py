"""End a child process and the process group that it leads.

A process that starts a new session (`setsid`) leaves the group and is not ended.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_LEFTOVER_GRACE = 0.2
"""Seconds from TERM to KILL for the processes that an exited program left running."""
_REAP = 5.0
"""Seconds to wait for the system to end a program; one that hangs in a driver never ends."""
_STEP = 0.01

# Numbers, because `signal` has no SIGKILL on Windows; on all systems with groups they are equal.
_NONE, _KILL, _TERM = 0, 9, 15


class _Process(Protocol):
    """A process that other code waits for, started with `start_new_session=True`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def kill(self) -> None: ...


class ProcessGroup:
    """A child process with all processes in its group."""

    def __init__(self, process: _Process) -> None:
        self._process = process

    def kill(self) -> None:
        """End the group at once."""
        self._signal(_KILL)

    async def end(self, grace: float) -> None:
        """Send TERM, wait until the group is empty, send KILL, and wait until it is reaped.

        `grace` is the seconds from TERM to KILL. A cancellation sends KILL at once.
        """
        try:
            if self._process.returncode is not None:
                grace = _LEFTOVER_GRACE
            if not (self._signal(_TERM) and await self._is_emptied(grace)):
                self.kill()
            await self.has_exited(_REAP)
        except BaseException:
            self.kill()
            raise

    async def has_exited(self, seconds: float) -> bool:
        """Return whether the process exits in time, also if others have inherited its pipes."""
        return await _becomes_true(lambda: self._process.returncode is not None, seconds)

    async def _is_emptied(self, seconds: float) -> bool:
        return await _becomes_true(lambda: not self._signal(_NONE), seconds)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; return whether any process got it."""
        if sys.platform == "win32":
            if number == _KILL and self._process.returncode is None:
                self._process.kill()
            return False
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def run_in_group(
    command: Sequence[str], timeout: float, **options: Any
) -> "CompletedProcess[bytes]":
    """Run a program to its end; if it takes too long, or on Ctrl-C, end all that it started.

    `options` are those of `Popen`. Raises `TimeoutExpired`, and `OSError` if it cannot start.
    """
    import subprocess

    with subprocess.Popen(command, start_new_session=True, **options) as process:  # noqa: S603 - the callers check it
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            ProcessGroup(process).kill()
            process.wait()  # after Ctrl-C, `Popen` does not wait at its end
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


async def _becomes_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll: the system reports neither event to the owner of a group."""
    import asyncio

    loop = asyncio.get_running_loop()
    limit = loop.time() + seconds
    while not condition():
        if loop.time() >= limit:
            return False
        await asyncio.sleep(_STEP)
    return True
