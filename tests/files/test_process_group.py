import asyncio
import subprocess
import sys
import time

import pytest

from satchel.files.process_group import ProcessGroup, run_in_group

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")

PARENT = """
import signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(float(sys.argv[2]))
"""
WILLING = "import time; print(flush=True); time.sleep(60)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"


def started(child: str, seconds: float) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, child, str(seconds)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process.stdout:
        return process, int(process.stdout.readline())


def is_gone(pid: int) -> bool:
    """Tell whether a process ends soon: what is killed takes a moment to end."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


async def ended(process: subprocess.Popen[bytes], grace: float) -> float:
    asyncio.get_running_loop().run_in_executor(None, process.wait)
    begun = time.monotonic()
    await ProcessGroup(process).end(grace)
    return time.monotonic() - begun


def test_a_group_that_ends_when_it_is_asked_to_is_not_killed():
    process, child = started(WILLING, 60)
    assert asyncio.run(ended(process, 30)) < 20
    assert process.returncode == -15
    assert is_gone(child)


def test_a_member_that_ignores_the_request_is_killed():
    process, child = started(DEAF, 60)
    asyncio.run(ended(process, 0.1))
    assert process.returncode is not None
    assert is_gone(child)


def test_what_a_program_left_running_ends_soon():
    process, child = started(DEAF, 0)
    process.wait()
    assert asyncio.run(ended(process, 30)) < 20
    assert is_gone(child)


def test_a_cancellation_kills_at_once():
    process, child = started(DEAF, 60)

    async def cancelled():
        task = asyncio.create_task(ended(process, 60))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert process.wait(20) is not None
    assert is_gone(child)


def test_the_exit_of_a_process_is_awaited_for_a_time():
    process, _ = started(WILLING, 60)
    group = ProcessGroup(process)
    assert not asyncio.run(group.has_exited(0.05))
    group.kill()
    process.wait()
    assert asyncio.run(group.has_exited(0.05))


INTERRUPT = "sys.stdin.read(); os.kill(os.getppid(), signal.SIGINT)"
"""Ctrl-C for the test: standard input is closed when it waits for the program."""


@pytest.mark.parametrize(
    ("then", "seconds", "problem"),
    [("pass", 5.0, subprocess.TimeoutExpired), (INTERRUPT, 60.0, KeyboardInterrupt)],
    ids=["timeout", "ctrl-c"],
)
def test_a_program_that_is_ended_ends_with_all_that_it_started(tmp_path, then, seconds, problem):
    note = tmp_path / "pid"
    parent = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n"
        f"{then}\n"
        "time.sleep(60)\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with pytest.raises(problem):
        run_in_group([sys.executable, "-c", parent], seconds, **pipes)
    assert is_gone(int(note.read_text()))


def test_the_output_of_a_program_that_ends_is_returned():
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    line = "import sys; print('out'); sys.exit('err')"
    result = run_in_group([sys.executable, "-c", line], 60, **options)
    assert (result.returncode, result.stdout, result.stderr) == (1, b"out\n", b"err\n")
