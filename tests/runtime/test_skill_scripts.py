import asyncio
import os
import select
import shutil
import sys
import time

import pytest

from satchel.errors import ToolError
from satchel.runtime import program_runner
from satchel.runtime.child_process import STREAM_LIMIT
from satchel.runtime.skill_scripts import LONGEST_ARGUMENTS, run_script, scripts_of


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch):
    """Run programs plainly: the tests look at their processes from outside."""
    monkeypatch.setattr(program_runner, "find_sandbox", lambda: ("", "it is a test"))


@pytest.fixture
def write(tmp_path):
    """Write a script of a skill, and return its path."""

    def write(name, text, mode=0o644):
        path = tmp_path / "skill/scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return str(path)

    return write


def run(path, *args, seconds=60, **options):
    folder = os.path.dirname(os.path.dirname(path))
    return asyncio.run(run_script(path, folder, args, seconds, **options))


def refused(path, *args):
    with pytest.raises(ToolError) as problem:
        run(path, *args)
    message = str(problem.value)
    assert os.path.dirname(path) not in message
    assert len(message) < 400
    assert message.isprintable()
    assert message.endswith(".")
    return message


def test_a_script_gives_its_output_and_its_return_code(write):
    path = write("a.py", "import sys\nprint('å 🧳')\nprint('err', file=sys.stderr)\nsys.exit(3)\n")
    assert run(path) == {"returncode": 3, "stdout": "å 🧳\n", "stderr": "err\n", "timed_out": False}


@pytest.mark.parametrize(
    ("name", "text", "needed"),
    [
        *(("a.py", "print('hi')", "sh"), ("A.PY", "print('hi')", "sh"), ("a.sh", "echo hi", "sh")),
        *(("a.bash", "[[ a ]] && echo hi", "bash"), ("a.js", "console.log('hi')", "node")),
        ("a.sh", "#!/usr/bin/env bash\n[[ a ]] && echo hi", "bash"),
        ("a.mjs", "import 'node:fs'; console.log('hi')", "node"),
        *(("a.rb", "puts 'hi'", "ruby"), ("a.pl", "print qq(hi\\n)", "perl")),
    ],
)
def test_the_suffix_says_what_runs_a_script_executable_or_not(write, name, text, needed):
    if not shutil.which(needed):
        pytest.skip(f"no {needed} here")
    result = run(write(name, text))
    assert (result["stdout"], result["stderr"]) == ("hi\n", "")


def test_what_says_itself_what_runs_it_is_started_directly(write):
    assert run(write("tool", "#!/bin/sh\necho hi $1", 0o755), "you")["stdout"] == "hi you\n"
    assert run(write("tool.awk", "#!/bin/sh\necho hi", 0o755))["stdout"] == "hi\n"


def test_a_binary_is_started_directly(write, tmp_path):
    path = write("binary", "")
    shutil.copy(shutil.which("true"), path)
    assert run(path)["returncode"] == 0


def test_an_invalid_binary_is_reported(write):
    assert run(write("binary", b"\0" * 100, 0o755))["returncode"] in {126, 127}


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("#!/bin/sh\necho hi", 0o644, "is not executable"),
        ("echo hi", 0o755, "it does not name its interpreter"),
        ("", 0o755, "it does not name its interpreter"),
    ],
)
def test_what_cannot_be_started_is_reported_with_what_can(write, text, mode, message):
    assert message in (text := refused(write("tool", text, mode)))
    assert ".py" in text


def test_a_program_that_is_not_installed_is_named(write, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "'a.rb' needs ruby, which is not installed" in refused(write("a.rb", ""))


def test_a_program_of_the_skill_takes_no_program_s_place(write, monkeypatch, tmp_path):
    places = {"host/node": "host", "skill/bin/node": "skill", "bin/node": "current folder"}
    for path, message in ((tmp_path / place, message) for place, message in places.items()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {message}")
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin:{tmp_path}/host:{os.environ['PATH']}")
    assert run(write("a.js", ""))["stdout"] == "host\n"


def test_what_is_no_file_is_reported(write, tmp_path):
    path = write("a.py", "")
    os.remove(path)
    assert refused(path) == "'a.py' cannot be started: No such file or directory."
    os.mkdir(path)
    assert "is not a regular file" in refused(path)
    os.rmdir(path)
    os.mkfifo(path)
    assert "is not a regular file" in refused(path)


def test_it_works_in_the_folder_of_the_skill_and_leaves_nothing_there(write, tmp_path):
    write("neighbour.py", "NAME = 'next door'")
    path = write("a.py", "import os, neighbour\nprint(os.getcwd(), neighbour.NAME)")
    assert run(path)["stdout"] == f"{tmp_path}/skill next door\n"
    assert sorted(os.listdir(os.path.dirname(path))) == ["a.py", "neighbour.py"]


def test_a_link_is_started_as_what_it_leads_to(write, tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common/neighbour.py").write_text("NAME = 'next door'")
    target = tmp_path / "common/real.py"
    target.write_text("import sys, neighbour\nprint(sys.argv[0], neighbour.NAME)")
    link = write("link.py", "")
    os.remove(link)
    os.symlink(target, link)
    assert run(link)["stdout"] == f"{target} next door\n"


@pytest.mark.parametrize("name", ["-c.py", "--help.sh", "-e.pl", "-.py", "a b;touch x.sh"])
def test_a_name_is_never_an_option_nor_a_command(write, name, tmp_path, monkeypatch):
    if name.endswith(".pl") and not shutil.which("perl"):
        pytest.skip("no perl here")
    hello = {"py": "print('hi')", "sh": "echo hi", "pl": "print qq(hi\\n)"}[name[-2:]]
    path = write(name, hello)
    monkeypatch.chdir(os.path.dirname(path))
    result = asyncio.run(run_script(name, str(tmp_path), [], 60))
    assert (result["stdout"], result["stderr"]) == ("hi\n", "")
    assert os.listdir(os.path.dirname(path)) == [name]


ARGUMENTS = ["", " a  b ", "$HOME", "`id`", "; rm -rf x", "*", "'\"", "-c", "--", "å\n🧳", "\\"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "import sys\nprint(*sys.argv[1:], sep='|', end='|')"),
        ("a.sh", "printf '%s|' \"$@\""),
        ("direct", "#!/bin/sh\nprintf '%s|' \"$@\""),
    ],
)
def test_arguments_are_handed_over_as_they_are(write, name, text):
    result = run(write(name, text, 0o755), *ARGUMENTS)
    assert result["stdout"].removesuffix("|").split("|") == ARGUMENTS


@pytest.mark.parametrize("argument", ["a\0b", "\ud800"])
def test_an_argument_that_cannot_be_handed_over_is_refused(write, argument):
    assert "cannot be passed on" in refused(write("a.py", ""), "fine", argument)


def test_too_many_and_too_long_arguments_are_refused(write):
    path = write("a.py", "import sys\nprint(len(sys.argv) - 1, len(sys.argv[-1]))")
    assert run(path, *["x"] * 100)["stdout"] == "100 1\n"
    assert "at most 100" in refused(path, *["x"] * 101)
    assert run(path, "x" * LONGEST_ARGUMENTS)["stdout"] == f"1 {LONGEST_ARGUMENTS}\n"
    assert "longer than 102400 bytes" in refused(path, "x", "x" * LONGEST_ARGUMENTS)
    assert "longer than" in refused(path, "å" * (LONGEST_ARGUMENTS // 2 + 1))


def test_secrets_of_the_host_are_not_handed_on(write, monkeypatch):
    for name in ("ACME_API_KEY", "PYTHONPATH", "BASH_ENV", "NODE_OPTIONS", "LD_PRELOAD"):
        monkeypatch.setenv(name, "hush-hush")
    result = run(write("a.py", "import os, sys\nprint(dict(os.environ), sys.path)"))
    assert "hush-hush" not in result["stdout"] + result["stderr"]
    assert "PATH" in result["stdout"]


def test_there_is_no_input(write):
    assert run(write("a.sh", "cat; echo end"))["stdout"] == "end\n"


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM\n"])
def test_after_the_time_limit_the_whole_group_is_ended(write, tmp_path, stubborn):
    os.mkfifo(tmp_path / "alive")
    # Whoever lives in the group has it open for writing.
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    text = f"{stubborn}exec 3>../alive\nsleep 1000 &\necho begun\nsleep 1000\necho over\n"
    started = time.monotonic()
    result = run(write("a.sh", text), seconds=1)
    assert time.monotonic() - started < 30
    assert (result["timed_out"], result["stdout"]) == (True, "begun\n")
    assert result["returncode"] == (-9 if stubborn else -15)
    assert select.select([reader], [], [], 30)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_cancelled_it_is_ended_and_the_cancellation_continues(write, tmp_path):
    async def main():
        source = "import os, time\nopen('fifo', 'w').write(str(os.getpid()))\ntime.sleep(1000)"
        path = write("a.py", source)
        running = asyncio.create_task(run_script(path, str(tmp_path / "skill"), [], 60))
        os.mkfifo(tmp_path / "skill/fifo")
        process = await asyncio.to_thread((tmp_path / "skill/fifo").read_text)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return int(process)

    process = asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_of_much_output_the_beginning_is_kept_up_to_the_limit(write):
    path = write(
        "a.py", "import sys\nprint('x' * 40_000, end='')\nprint('y' * 10, file=sys.stderr)"
    )
    result = run(path)
    assert result["stdout"] == "x" * STREAM_LIMIT + f"\n[cut: {40_000 - STREAM_LIMIT} more bytes]"
    assert result["stderr"] == "y" * 10 + "\n"


def test_a_script_that_prints_without_end_is_ended_in_time(write):
    result = run(write("a.sh", "yes"), seconds=1)
    assert result["timed_out"]
    assert len(result["stdout"]) < 40_000


def test_a_script_runs_with_the_host_s_own_python(write):
    result = run(write("a.py", "import sys\nprint(sys.executable, sys.flags.utf8_mode)"))
    assert result["stdout"] == f"{sys.executable} 1\n"


def test_scripts_are_what_lies_below_scripts_and_can_be_run():
    assert scripts_of(
        [
            *("SKILL.md", "a.py", "references/a.py", "scripts", "Scripts/a.py", "x/scripts/a.py"),
            *("scripts/a.py", "scripts/deep/er/b.SH", "scripts/run", "scripts/c.mjs"),
            *("scripts/data.json", "scripts/notes.md", "scripts/__pycache__/a.py", "scripts/a.pyc"),
            *("scripts/.hidden", "scripts/.hidden.py", "scripts/.venv/bin/python", "scripts/-c.py"),
        ]
    ) == ("scripts/a.py", "scripts/deep/er/b.SH", "scripts/run", "scripts/c.mjs", "scripts/-c.py")
