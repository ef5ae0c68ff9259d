"""The front of the command line: help, errors, and what goes where."""

import os
import pty
import subprocess
import sys

import pytest
from click.testing import CliRunner

from satchel.cli.main import COMMANDS, cli


def test_the_help_names_every_command_and_loads_none(execute):
    done = execute("--help")
    assert done.code == 0
    for name, line in COMMANDS.items():
        assert name in done.stdout
        assert line in done.stdout


def test_the_help_imports_click_and_nothing_heavy():
    code = (
        "import sys; from satchel.cli.main import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'yaml', 'pydantic', 'pluggy', 'watchfiles', 'asyncio', 'satchel.catalog'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_on_stdout(run, name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage:")


def test_the_version_is_the_packages(execute):
    from importlib.metadata import version

    assert execute("--version").stdout == f"satchel {version('satchel')}\n"


def test_a_mistyped_command_is_wrong_usage_with_a_hint(run):
    result = run("lst")
    assert result.exit_code == 2
    assert "Did you mean list?" in result.stderr


def test_wrong_usage_is_exit_code_two(run):
    assert run("list", "nonsense").exit_code == 2
    assert run("validate").exit_code == 2
    assert run("prompt", "--budget", "-1").exit_code == 2


def test_our_errors_are_one_line_without_a_traceback(execute):
    done = execute("prompt", "--group", "basik")
    assert done.code == 1
    assert done.stderr == "Error: there is no group named 'basik' (did you mean basic?)\n"


def test_an_unexpected_fault_is_one_line_and_with_debug_a_traceback(monkeypatch):
    def fault(*_args, **_options):
        raise ValueError("not\x1b foreseen")

    monkeypatch.setattr("satchel.Satchel", fault)
    result = CliRunner().invoke(cli, ["list"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: unexpected ValueError: not foreseen (")
    assert isinstance(CliRunner().invoke(cli, ["--debug", "list"]).exception, ValueError)


def test_what_a_plugin_prints_never_reaches_stdout(execute, here, write_plugin):
    write_plugin(
        here / "p",
        "loud",
        tools="""
            import os, sys, atexit
            print("NOISE")
            os.write(1, b"NOISE")
            os.system("echo NOISE")
            sys.__stdout__.write("NOISE")
            atexit.register(print, "NOISE")
            from satchel import tool
            @tool
            def hi() -> str:
                "Hi."
                print("NOISE")
                return "hello"
        """,
    )
    called = execute("call", "hi", "--plugins", "p")
    assert (called.code, called.stdout) == (0, "hello\n")
    assert "NOISE" in called.stderr
    schema = execute("schema", "--plugins", "p")
    assert "NOISE" not in schema.stdout


def test_a_closed_pipe_ends_quietly(execute, here, write_skill):
    for number in range(300):
        write_skill(here / "skills", f"s{number}", description="word " * 100)
    done = execute(
        script="set -o pipefail; $SATCHEL list skills --skills skills | head -1; echo $?"
    )
    assert done.stdout.splitlines()[1:] == ["0"]
    assert done.stderr == "300 skills\n"


def test_the_verdict_survives_a_closed_pipe(execute, here):
    (here / "bad").mkdir()
    (here / "bad" / "SKILL.md").write_text("no frontmatter")
    done = execute(script="set -o pipefail; $SATCHEL validate bad | true; echo $?")
    assert done.stdout == "1\n"


def test_what_goes_to_a_closed_stdout_goes_nowhere(execute):
    done = execute(script="$SATCHEL list groups; $SATCHEL list groups >&-; echo $? >&2")
    shown, _, after = done.stderr.rpartition("\n0\n")
    assert (after, "basic" in done.stdout, "basic" in shown) == ("", True, False)


@pytest.mark.parametrize("closed", ["<&-", "<&- 2>&-"])
def test_a_closed_stdin_is_at_its_end(execute, here, write_plugin, closed):
    assert execute(script=f"$SATCHEL serve {closed}").code == 0
    tools = """
        import os
        from satchel import tool

        @tool
        def listen() -> str:
            "Read stdin."
            os.write(1, b"noise")
            return repr(os.read(0, 9))
        """
    write_plugin(here / "p", "ears", tools=tools)
    done = execute(script=f"$SATCHEL call --plugins p listen {closed}")
    assert (done.code, done.stdout) == (0, "b''\n")


def test_no_one_listening_to_the_talk_is_no_fault(execute):
    done = execute(script="$SATCHEL list groups 2> >(true); echo $?")
    assert done.stdout.splitlines()[-1] == "0"
    piped = execute(script="set -o pipefail; { $SATCHEL list 2>&1 >/dev/null; } | true; echo $?")
    assert piped.stdout == "0\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_full_disk_is_reported_in_one_line(execute):
    done = execute(script="$SATCHEL list > /dev/full")
    assert done.code == 1
    assert done.stderr == "Error: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("daemon", [True, False])
def test_threads_of_a_plugin_do_not_keep_the_command_alive(execute, here, write_plugin, daemon):
    write_plugin(
        here / "p",
        "busy",
        tools=f"""
            import threading, time
            threading.Thread(target=time.sleep, args=(3600,), daemon={daemon}).start()
        """,
    )
    assert execute("prompt", "--plugins", "p").code == 0


def in_a_terminal(*args: str, messages: bool = False, **env: str) -> str:
    """Return what a command writes to a terminal: its data, or its messages."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "satchel", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if messages else theirs,
        stderr=theirs if messages else subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", **env},
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 4096):
            written += chunk
    except OSError:  # how Linux tells that the other end is closed
        pass
    finally:
        os.close(ours)
        process.wait(30)
    return written.decode()


def test_colour_is_for_terminals_that_want_it(execute):
    assert "\x1b[" in in_a_terminal("list", "groups")
    assert "\x1b[" not in in_a_terminal("list", "groups", NO_COLOR="1")
    assert "\x1b[" not in in_a_terminal("list", "groups", NO_COLOR="0")
    assert "\x1b[" in in_a_terminal("list", "groups", NO_COLOR="")
    assert "\x1b[" not in in_a_terminal("list", "groups", TERM="dumb")
    assert "\x1b[" not in execute("list", "groups").stdout


@pytest.mark.parametrize(
    "args", [("show", "nosuch"), ("list", "--nosuch"), ("list", "--skills", "x")]
)
def test_errors_are_coloured_on_terminals_that_want_it(args):
    assert "\x1b[31mError\x1b[0m: " in in_a_terminal(*args, messages=True)
    assert "\x1b[" not in in_a_terminal(*args, messages=True, NO_COLOR="1")
    assert "\x1b[" not in in_a_terminal(*args, messages=True, TERM="dumb")


def test_the_severity_of_a_diagnostic_is_coloured_in_messages(tmp_path):
    folder = tmp_path / "warning: x" / "demo"
    folder.mkdir(parents=True)
    (folder / "toolkit.yaml").write_text("name: demo\n")
    text = "from satchel import tool\n\n@tool(state=['key'])\ndef f(key: str):\n    'Do it.'\n"
    (folder / "tools.py").write_text(text)
    shown = in_a_terminal("list", "--run", "--plugins", str(folder.parent), messages=True)
    assert "\x1b[31merror[tool-state-missing]\x1b[0m: " in shown


def test_text_from_outside_cannot_rewrite_the_terminal(run, here, write_skill):
    description = '"red \\e[31m and \\u202e turned \\n around"'
    write_skill(here / "skills", "odd", description=description)
    (here / "skills" / "odd" / "a\n\x1b[31mb").touch()
    for args in (["list"], ["show", "odd"], ["doctor"], ["prompt"]):
        result = run(*args, "--skills", "skills")
        assert not {"\x1b", "\u202e"} & set(result.output), args
    assert "around" in run("list", "skills", "--skills", "skills").stdout.splitlines()[1]


def test_an_unknown_command_is_answered_alone(run, here, write_skill):
    write_skill(here / "skills", "pdf")
    assert "not read: ./skills" in run("list").stderr
    result = run("frob")
    assert result.exit_code == 2
    assert "No such command 'frob'." in result.stderr
    assert "not read" not in result.stderr


@pytest.mark.parametrize("command", ["list", "prompt", "trust"])
def test_a_current_folder_that_does_not_exist_any_more_is_named(run, here, command):
    here.rmdir()
    result = run(command)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: the current folder does not exist any more; change to another one\n"
    )
