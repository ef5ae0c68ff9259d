import asyncio
import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from satchel.builtin import execution_tools
from satchel.builtin.execution_tools import execute_python_code, execute_shell_command
from satchel.errors import ToolError
from satchel.runtime.child_process import STREAM_LIMIT


def shell(command, **options):
    return asyncio.run(execute_shell_command(command, **options)).structured


def python(code, **options):
    return asyncio.run(execute_python_code(code, **options)).structured


def test_a_command_gives_its_output_and_its_return_code():
    assert shell("echo out; echo err >&2; exit 3") == {
        "returncode": 3,
        "stdout": "out\n",
        "stderr": "err\n",
        "timed_out": False,
    }


def test_code_gives_its_output_and_its_return_code():
    result = python("import sys\nprint('å∂ 🧳')\nsys.exit(3)")
    assert (result["returncode"], result["stdout"]) == (3, "å∂ 🧳\n")


def test_an_error_in_the_code_is_an_ordinary_result_that_shows_the_line():
    result = python("x = 1\nx / 0")
    assert result["returncode"] == 1
    assert "x / 0" in result["stderr"]
    assert "ZeroDivisionError" in result["stderr"]


def test_code_is_a_program_of_its_own():
    result = python("import sys\nprint(__name__, 'pytest' in sys.modules)\nprint(*sys.path)")
    assert result["stdout"].startswith("__main__ False\n")
    assert os.getcwd() not in result["stdout"].split()


def test_code_finds_no_module_that_lies_in_the_working_folder(tmp_path):
    (tmp_path / "json.py").write_text("print('not the real one')")
    result = python("import json; print(json.dumps(1))", base_directory=tmp_path)
    assert result["stdout"] == "1\n"


def test_code_longer_than_an_argument_can_be_runs():
    result = python(f"# {'x' * 3_000_000}\nprint('done')\r\nprint('twice')")
    assert result["stdout"] == "done\ntwice\n"


def test_a_command_longer_than_an_argument_can_be_is_reported():
    with pytest.raises(ToolError, match="could not be started"):
        shell(f": {'x' * 3_000_000}")


def test_a_command_that_begins_with_a_hyphen_is_no_option():
    assert shell("-e nothing")["returncode"] == 127


def test_there_is_no_input():
    assert shell("cat; echo end")["stdout"] == "end\n"
    assert "EOFError" in python("input()")["stderr"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_cannot_be_run_is_refused(text):
    for run in (shell, python):
        with pytest.raises(ToolError, match="null or invalid Unicode character"):
            run(text)


@pytest.mark.parametrize("seconds", [0, 0.99, 600.1, -1, float("nan"), float("inf")])
def test_a_time_limit_that_cannot_be_kept_is_refused(seconds):
    for run in (shell, python):
        with pytest.raises(ToolError, match="between 1 and 600"):
            run("", timeout=seconds)


def test_the_host_waits_longer_than_the_model_may_ask_for():
    assert execution_tools._WHOLE_CALL > execution_tools.LONGEST


def test_work_is_done_in_the_folder_of_the_host(tmp_path):
    shell("echo kept > a.txt", base_directory=tmp_path)
    python("open('b.txt', 'w').close()", base_directory=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_without_a_folder_of_the_host_work_is_done_in_an_empty_one_that_is_removed():
    result = shell("pwd; ls -A; mkdir -p a/b; echo x > a/b/c; chmod 0 a/b")
    [folder] = result["stdout"].split()
    assert folder not in {os.getcwd(), os.path.expanduser("~")}
    assert not os.path.exists(os.path.dirname(folder))


def test_a_folder_that_is_missing_is_reported_without_its_path(tmp_path):
    with pytest.raises(
        ToolError, match=r"^The working folder does not exist\. Ask the user to create it\.$"
    ):
        shell("true", base_directory=tmp_path / "none")


def test_secrets_of_the_host_are_not_handed_on(monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/secret")
    monkeypatch.setenv("LC_TIME", "C")
    seen = shell("env")["stdout"] + python("import os; print(dict(os.environ))")["stdout"]
    assert "secret" not in seen
    for name in ("PATH=", "LC_TIME=C"):
        assert name in seen


@pytest.mark.parametrize("size", [STREAM_LIMIT, STREAM_LIMIT + 1, 300_000, 300_000_000])
def test_of_much_output_the_beginning_is_kept_and_the_rest_is_counted(size):
    result = shell(f"head -c {size} /dev/zero | tr '\\0' x; echo end >&2")
    text, _, cut = result["stdout"].partition("\n")
    assert text == "x" * STREAM_LIMIT
    assert cut == (f"[cut: {size - STREAM_LIMIT} more bytes]" if size > STREAM_LIMIT else "")
    assert result["stderr"] == "end\n"


def test_output_is_never_cut_inside_a_letter():
    text = python("print('x' + '🧳' * 10_000)")["stdout"]
    head, _, cut = text.partition("\n")
    assert set(head) == {"x", "🧳"}
    assert cut == f"[cut: {40_002 - len(head.encode())} more bytes]"


def test_bytes_that_are_no_text_are_replaced():
    result = shell("printf 'a\\377b\\000c'")
    assert result["stdout"] == "a\ufffdb\0c"
    assert json.loads(json.dumps(result)) == result


def test_twenty_commands_run_at_the_same_time(tmp_path):
    def let_go():
        with ExitStack() as gates:  # the last is opened first: all must be waiting
            for n in reversed(range(20)):
                gates.enter_context((tmp_path / str(n)).open("w"))

    async def main():
        for n in range(20):
            os.mkfifo(tmp_path / str(n))
        commands = [
            execute_shell_command(f"echo {n}; read x < {n}; echo {n}", base_directory=tmp_path)
            for n in range(20)
        ]
        *results, _ = await asyncio.gather(*commands, asyncio.to_thread(let_go))
        return [result.structured for result in results]

    results = asyncio.run(main())
    assert [result["stdout"] for result in results] == [f"{n}\n{n}\n" for n in range(20)]


def test_the_loop_continues_while_a_command_runs(tmp_path):
    async def main():
        running = asyncio.create_task(
            execute_shell_command("read x < fifo", base_directory=tmp_path)
        )
        await asyncio.sleep(0)
        # Only a loop that goes on can open the other end.
        await asyncio.to_thread(Path(tmp_path / "fifo").write_text, "x\n")
        return await running

    os.mkfifo(tmp_path / "fifo")
    assert asyncio.run(main()).structured["returncode"] == 0


def test_it_works_in_a_loop_outside_the_main_thread():
    async def main():
        return await asyncio.to_thread(shell, "echo hi")

    assert asyncio.run(main())["stdout"] == "hi\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files this way")
def test_no_file_and_no_folder_stays_behind(tmp_path, monkeypatch):
    async def main():
        await execute_shell_command("true")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            await execute_shell_command("sleep 100 & echo x")
            await execute_python_code("1 / 0")
            with pytest.raises(ToolError):
                await execute_shell_command("x" * 3_000_000)
        return before, len(os.listdir("/proc/self/fd"))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, after = asyncio.run(main())
    assert after == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; echo err >&2; exit 3", "out\n[stderr]\nerr\n[exit code 3]"),
        ("echo out", "out"),
        ("true", "[no output]"),
    ],
)
def test_the_model_reads_the_output_as_text(command, text):
    assert asyncio.run(execute_shell_command(command)).text == text


def test_the_model_reads_that_the_time_was_over():
    result = asyncio.run(execute_shell_command("echo so far; sleep 100", timeout=1))
    assert result.text == "so far\n[ended after 1 s, the time limit]"


def test_a_relative_working_folder_is_one_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    shell("echo kept > a.txt", base_directory=Path("sub"))
    assert (tmp_path / "sub/a.txt").read_text() == "kept\n"
