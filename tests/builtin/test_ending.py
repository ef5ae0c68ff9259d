"""Whatever a program does, it ends, and so does all that it started."""

import asyncio
import gc
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from satchel.builtin.execution_tools import execute_python_code, execute_shell_command
from satchel.runtime import child_process

STUBBORN = "trap '' TERM; echo $$; while :; do sleep 100; done"


def timed(call):
    """Run a call, and tell what it gave and how long it took."""
    started = time.monotonic()
    return asyncio.run(call).structured, time.monotonic() - started


def pids(result):
    return [int(line) for line in result["stdout"].split()]


def test_after_the_time_limit_the_whole_group_is_ended(ends):
    result, seconds = timed(
        execute_shell_command("sleep 100 & echo $!; echo $$; sleep 100", timeout=1)
    )
    assert result["timed_out"]
    assert result["returncode"] == -15
    assert seconds < 60
    assert len(pids(result)) == 2
    assert all(ends(pid) for pid in pids(result))


def test_what_was_printed_before_the_time_limit_is_kept():
    result, _ = timed(execute_python_code("print('so far')\nwhile True: pass", timeout=1))
    assert (result["timed_out"], result["stdout"]) == (True, "so far\n")


def test_a_program_may_clean_up_before_it_ends():
    command = "trap 'echo cleaned; exit 7' TERM; while :; do sleep 0.01; done"
    result, _ = timed(execute_shell_command(command, timeout=1))
    assert (result["stdout"], result["returncode"]) == ("cleaned\n", 7)


def test_who_ignores_the_request_is_ended_all_the_same(ends):
    result, seconds = timed(execute_shell_command(STUBBORN, timeout=1))
    assert (result["timed_out"], result["returncode"]) == (True, -9)
    assert seconds < 60
    assert all(ends(pid) for pid in pids(result))


@pytest.mark.parametrize(
    "start",
    [
        "sleep 100 & echo $!",
        "sleep 100 >/dev/null 2>&1 & echo $!",
        "(trap '' TERM; sleep 100) & echo $!",
        "yes >&2 & echo $!",
        "nohup sleep 100 2>/dev/null & echo $!",
    ],
)
def test_what_stays_in_the_background_delays_nothing_and_is_ended(ends, start):
    result, seconds = timed(execute_shell_command(start))
    assert (result["timed_out"], result["returncode"]) == (False, 0)
    assert seconds < 5  # a busy machine; it is half a second
    assert all(ends(pid) for pid in pids(result))


def test_a_session_of_its_own_that_keeps_the_output_open_delays_nothing():
    code = (
        "import os, time\n"
        "heard, said = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); print(os.getpid(), flush=True); os.write(said, b'.'); time.sleep(100)\n"
        "os.read(heard, 1)\n"
    )
    result, seconds = timed(execute_python_code(code))
    [pid] = pids(result)
    os.kill(pid, 9)  # nobody finds it again, so the test ends it
    assert seconds < 60


@pytest.mark.parametrize(
    ("command", "message"), [("echo out; echo err >&2", "out\n"), ("yes | head -c 1000000", None)]
)
def test_where_the_loop_cannot_listen_threads_do(monkeypatch, command, message):
    with_loop, _ = timed(execute_shell_command(command))
    monkeypatch.setattr(child_process, "_CAN_LISTEN", False)
    with_threads, _ = timed(execute_shell_command(command))
    assert with_threads == with_loop
    assert message in (None, with_threads["stdout"])


def test_a_fork_that_prints_after_its_parent_is_heard_for_a_moment():
    code = (
        "import os\nparent = os.getpid()\nif os.fork() == 0:\n"
        "    while os.getppid() == parent: pass\n    print('late')\n"
    )
    assert timed(execute_python_code(code))[0]["stdout"] == "late\n"


async def cancelled_when_it_runs(command, folder, *, times=1):
    """Cancel a command when it has opened its FIFO, and return the process that it said it is."""
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    running = asyncio.create_task(
        execute_shell_command(f"echo $$ > fifo; {command}", base_directory=folder)
    )
    pid = int(await asyncio.to_thread(fifo.read_text))
    for _ in range(times):
        running.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await running
    return pid


@pytest.mark.parametrize("command", ["sleep 100", "sleep 100 & wait", STUBBORN])
@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_command_is_ended_and_the_cancellation_continues(
    ends, tmp_path, command, times
):
    assert ends(asyncio.run(cancelled_when_it_runs(command, tmp_path, times=times)))
    gc.collect()  # whatever was left open would warn now


def test_a_program_that_does_not_listen_is_given_time_only_once(ends, tmp_path, monkeypatch):
    monkeypatch.setattr(child_process, "_GRACE", 1000)
    assert ends(asyncio.run(cancelled_when_it_runs(STUBBORN, tmp_path, times=2)))


@pytest.mark.parametrize("steps", range(12))
def test_cancelled_at_any_moment_of_its_start_it_leaves_nothing(tmp_path, steps, monkeypatch, ends):
    async def main():
        command = "echo $$ > pid; exec sleep 100"
        running = asyncio.create_task(execute_shell_command(command, base_directory=tmp_path))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asyncio.run(main())
    gc.collect()
    message = Path(tmp_path / "pid")
    assert not message.exists() or not message.read_text() or ends(int(message.read_text()))
    assert [path.name for path in tmp_path.iterdir() if path.name != "pid"] == []


def test_a_loop_that_ends_ends_its_commands(ends, tmp_path):
    async def main():
        command = f"echo $$ > fifo; {STUBBORN}"
        task = asyncio.create_task(execute_shell_command(command, base_directory=tmp_path))
        pid = int(await asyncio.to_thread((tmp_path / "fifo").read_text))
        assert not task.done()
        return pid

    os.mkfifo(tmp_path / "fifo")
    assert ends(asyncio.run(main()))


def test_no_one_is_left_unreaped():
    async def main():
        for command in ("true", "sleep 100 &", "exit 3"):
            await execute_shell_command(command)
        await execute_shell_command("sleep 100", timeout=1)

    asyncio.run(main())
    with suppress(ChildProcessError):  # no process at all
        assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
