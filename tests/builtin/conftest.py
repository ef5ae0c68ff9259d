"""What the tests of the built-in tools share: watching whether a process still lives."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from satchel.runtime import program_runner


@pytest.fixture
def ends() -> Callable[[int], bool]:
    """Tell whether a process ends in time; what nobody has reaped yet has ended, too."""

    def has_ended(pid: int) -> bool:
        try:
            os.kill(pid, 0)
            return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return True

    def wait(pid: int) -> bool:
        limit = time.monotonic() + 10
        while not has_ended(pid) and time.monotonic() < limit:
            time.sleep(0.01)
        return has_ended(pid)

    return wait


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch):
    """Run programs plainly: the tests look at their processes from outside."""
    monkeypatch.setattr(program_runner, "find_sandbox", lambda: ("", "it is a test"))
