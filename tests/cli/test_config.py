"""`satchel config`: what a plugin is configured with, shown and changed."""

import json
import os
import pty
import re
import shlex
import shutil
import stat
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from satchel.cli.main import cli

CANARY = "s3cr3t-canary"
MANIFEST = """active: true
config:
  api_key: {type: secret, min: 4, description: The key.}
  retries: {type: integer, default: 2, max: 9}
  unit: {type: choice, options: [C, F], default: C}
  root: {type: path, required: false, must_exist: true}
"""
SOURCE = "from pathlib import Path\nPath(__file__).with_name('was-run').touch()\n"


@pytest.fixture
def plugins(here, write_plugin):
    write_plugin(here / "plugins", "demo", MANIFEST, tools=SOURCE)
    return here / "plugins"


@pytest.fixture
def config(run, plugins):
    """Run a subcommand for the plugin `demo`."""

    def config(command, *args):
        return run("config", command, "demo", *args, "--plugins", plugins)

    return config


@pytest.fixture
def file(config_folder):
    return config_folder / "plugins" / "demo.env"


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Let $EDITOR put a text into the file that it is given."""

    def editor(text, code=0):
        program = tmp_path / "editor.py"
        program.write_text(
            f"import sys\nopen(sys.argv[1], 'w').write({text!r})\nsys.exit({code})\n"
        )
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(program)]))

    return editor


def shown(config):
    rows = json.loads(config("show", "--json").stdout)
    return {row["name"]: (row["value"], row["origin"], row["problem"]) for row in rows}


def test_each_value_is_shown_with_where_it_comes_from_and_secrets_are_masked(
    config, file, here, monkeypatch, plugins
):
    (here / "satchel.toml").write_text('[config.demo]\nunit = "F"\nother = "x"\n')
    monkeypatch.setenv("SATCHEL_DEMO_RETRIES", "5")
    config("set", f"api_key={CANARY}")
    done = config("show", "--trust", "code", "--json")
    assert [(r["name"], r["value"], r["origin"]) for r in json.loads(done.stdout)] == [
        ("api_key", "***", "file"),
        ("retries", "5", "environment"),
        ("unit", "F", "project"),
        ("root", None, "missing"),
        ("other", "***", "project"),
    ]
    text = config("show", "--trust", "code")
    assert [line.split()[:3] for line in text.stdout.splitlines()][:2] == [
        ["api_key", "***", "file"],
        ["retries", "5", "environment"],
    ]
    assert CANARY not in done.output + text.output
    assert not (plugins / "demo/was-run").exists()


def test_what_is_missing_or_wrong_is_shown_with_the_command_that_fixes_it(config, monkeypatch):
    monkeypatch.setenv("SATCHEL_DEMO_RETRIES", "12")
    fields = shown(config)
    assert fields["api_key"] == (None, "missing", "has no value")
    assert fields["retries"][:2] == ("12", "environment")
    assert "a whole number of at most 9" in fields["retries"][2]
    assert "demo api_key," in config("show").stderr


def test_values_are_set_one_or_several_and_written_for_their_owner_alone(config, file):
    done = config("set", "retries", "7")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("set retries (")
    assert config("set", "UNIT=F", "api_key=a=b c").exit_code == 0
    assert file.read_text() == "RETRIES=7\nUNIT=F\nAPI_KEY='a=b c'\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config("set", "retries=7").stdout.startswith("unchanged retries (")


@pytest.mark.parametrize(
    ("assignment", "allowed"),
    [
        ("retries=12", "a whole number of at most 9"),
        ("unit=K", "one of C, F"),
        (f"api_key={CANARY[:3]}", "text of at least 4 characters"),
        ("root=/no/such/place", "an existing path"),
        ("retries=", "counts as not set"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is_and_nothing_is_written(
    config, file, assignment, allowed
):
    done = config("set", "--force", "other=1", assignment)
    assert done.exit_code == 1
    assert allowed in done.stderr
    assert not file.exists()
    assert CANARY[:3] not in done.output


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("a", "b", "c"),
        ("a=1", "b"),
        ("a-b=1",),
        ("--force", "a=-", "b=-"),
        ("retries",),
        ("unit=C", "UNIT=F"),
    ],
)
def test_other_ways_to_set_are_wrong_usage(config, args):
    assert config("set", *args).exit_code == 2


@pytest.mark.parametrize("name", ["../demo", ".demo", "a/b", ""])
def test_a_name_that_is_no_plugins_leads_nowhere(run, name):
    for command in ("path", "show", "validate"):
        assert run("config", command, name).exit_code == 2


def test_a_value_may_come_from_stdin(plugins, file):
    args = ["config", "set", "demo", "api_key", "-", "--plugins", str(plugins)]
    done = CliRunner().invoke(cli, args, input=f"{CANARY}\n")
    assert (done.exit_code, CANARY in done.output) == (0, False)
    assert file.read_text() == f"API_KEY={CANARY}\n"


def test_a_secret_is_asked_for_on_a_terminal_and_not_echoed(plugins, file):
    # A session of its own, whose terminal this is: a password is read from there.
    child, terminal = pty.fork()
    if child == 0:
        os.execv(
            sys.executable,
            [
                *(sys.executable, "-m", "satchel", "config", "set", "demo", "api_key"),
                *("--plugins", str(plugins)),
            ],
        )
    seen = b""
    while b"api_key:" not in seen:
        seen += os.read(terminal, 1000)
    # click may write the prompt first and then turn the echo off, which drops what was typed.
    deadline = time.monotonic() + 60
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        assert time.monotonic() < deadline, "the echo stays on"
        time.sleep(0.01)
    os.write(terminal, f"{CANARY}\n".encode())
    try:
        while chunk := os.read(terminal, 1000):
            seen += chunk
    except OSError:  # how Linux tells that the other side has ended
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert CANARY.encode() not in seen
    assert file.read_text() == f"API_KEY={CANARY}\n"


def test_the_end_of_the_input_in_place_of_a_value_sets_nothing(run, plugins, file, monkeypatch):
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("satchel.cli.plugin_config.sys", terminal)
    done = run("config", "set", "demo", "retries", "--plugins", plugins)
    assert (done.exit_code, "you did not agree" in done.stderr, file.exists()) == (3, True, False)


def test_a_path_is_kept_as_it_is_meant_here(config, file, here):
    config("set", "root=plugins")
    assert file.read_text() == f"ROOT={here / 'plugins'}\n"
    config("set", "root=~")
    assert file.read_text() == "ROOT='~'\n"


def test_a_field_that_is_not_declared_is_refused_with_near_misses(config, file):
    done = config("set", "retries=3", "api_kye=x")
    assert done.exit_code == 1
    assert "demo declares no field 'api_kye'; nothing was written" in done.stderr
    assert "did you mean api_key? --force writes it" in done.stderr
    assert not file.exists()


def test_a_field_that_is_not_declared_is_written_with_force(config, run, file):
    done = config("set", "--force", "api_kye=x")
    assert "did you mean api_key?" in done.stderr
    assert file.read_text() == "API_KYE=x\n"
    assert shown(config)["api_kye"] == ("***", "file", "")
    done = run("config", "set", "dmo", "x=1")
    assert (done.exit_code, "there is no plugin named 'dmo'" in done.stderr) == (1, True)
    assert run("config", "set", "--force", "dmo", "x=1").exit_code == 0
    assert run("config", "show", "dmo", "--json").exit_code == 0


def test_a_plugin_that_declares_no_configuration_takes_no_key(here, run, write_plugin):
    write_plugin(here / "plugins", "plain", tools="from satchel import tool\n")
    write_plugin(here / "plugins", "empty")
    done = run("config", "set", "empty", "x=1", "--plugins", "plugins")
    assert (done.exit_code, "empty declares no configuration" in done.stderr) == (1, True)
    assert run("config", "set", "empty", "x=1", "--force", "--plugins", "plugins").exit_code == 0
    done = run("config", "validate", "empty", "--plugins", "plugins")
    assert "no field 'x' is declared" in done.stdout
    # Only its code can say what it reads.
    assert run("config", "set", "plain", "x=1", "--plugins", "plugins").exit_code == 0


def test_a_key_that_a_tool_or_a_group_needs_is_no_unknown_key(here, run, write_plugin):
    write_plugin(
        here / "plugins",
        "maps",
        "groups:\n  far: {description: Far., requires: [TOKEN]}\n",
        tools="""
            from satchel import tool

            @tool(state=["api_key"])
            def route(to: str, api_key: str) -> str:
                "Find the way."
                return to
        """,
    )
    done = run("config", "set", "maps", "api_key=1", "TOKEN=2", "--plugins", "plugins")
    assert (done.exit_code, done.stderr) == (0, "")
    done = run("config", "set", "maps", "api_kye=1", "--plugins", "plugins")
    assert "maps declares no field 'api_kye'" in done.stderr
    assert "did you mean api_key?" in done.stderr


def test_an_unknown_plugin_has_nothing_to_show(run, plugins):
    for command in ("show", "validate"):
        done = run("config", command, "dmo", "--plugins", plugins)
        assert (done.exit_code, "did you mean demo?" in done.stderr) == (1, True)


def test_the_environment_that_wins_is_reported(config, monkeypatch):
    monkeypatch.setenv("SATCHEL_DEMO_RETRIES", "5")
    assert "SATCHEL_DEMO_RETRIES has precedence" in config("set", "retries=6").stderr


def test_a_value_is_taken_out_and_what_counts_then_is_reported(config, file):
    config("set", "retries=6", "unit=F")
    done = config("unset", "retries", "gone")
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == [
        "unset retries",
        "gone is not set",
    ]
    assert "retries still has a value, from: default" in done.stderr
    assert file.read_text() == "UNIT=F\n"


def test_a_copy_is_edited_and_taken_over_when_it_can_be_read(config, file, editor):
    config("set", "retries=6")
    editor("# mine\nRETRIES=3\n")
    assert config("edit").stdout.startswith("written (")
    assert file.read_text() == "# mine\nRETRIES=3\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config("edit").stdout.startswith("unchanged (")


@pytest.mark.parametrize(
    ("text", "code"), [("=== nonsense\n", 0), ("RETRIES=12\n", 0), ("RETRIES=4\n", 3)]
)
def test_a_copy_that_is_not_right_is_not_taken_over(config, file, editor, text, code):
    config("set", "retries=6")
    editor(text, code)
    assert config("edit").exit_code == 1
    assert file.read_text() == "RETRIES=6\n"


def test_an_editor_that_leaves_nothing_changes_nothing(config, file, monkeypatch):
    config("set", "retries=6")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "rm")
    done = config("edit")
    assert (done.exit_code, "nothing was changed" in done.stderr) == (1, True)
    assert file.read_text() == "RETRIES=6\n"


def test_what_was_changed_while_it_was_edited_is_not_written_over(
    config, file, monkeypatch, tmp_path
):
    config("set", "retries=6")
    monkeypatch.delenv("VISUAL", raising=False)
    program = tmp_path / "editor.py"
    program.write_text(
        "import sys\n"
        "open(sys.argv[1], 'a').write('UNIT=F\\n')\n"
        f"open({str(file)!r}, 'a').write('API_KEY=abcd\\n')\n"
    )
    monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(program)]))
    done = config("edit")
    assert (done.exit_code, "was changed by another program" in done.stderr) == (1, True)
    assert file.read_text() == "RETRIES=6\nAPI_KEY=abcd\n"
    (copy,) = re.findall(r"your version is in ([^)]+)\)", done.stderr)
    assert Path(copy).read_text() == "RETRIES=6\nUNIT=F\n"
    assert stat.S_IMODE(os.stat(os.path.dirname(copy)).st_mode) == 0o700
    shutil.rmtree(os.path.dirname(copy))


def test_a_path_that_is_edited_is_kept_as_it_is_meant_here(config, file, editor, here):
    editor("# mine\nroot=plugins\n")
    assert config("edit").exit_code == 0
    assert file.read_text() == f"# mine\nroot={here / 'plugins'}\n"


def test_validate_warns_of_what_is_not_declared_and_of_what_others_may_read(config, file):
    config("set", "--force", "api_key=abcd", "api_kye=x")
    done = config("validate")
    assert done.exit_code == 0
    assert "warning[config-invalid]: no field 'api_kye' is declared (from: file)" in done.stdout
    assert "did you mean api_key?" in done.stdout
    config("unset", "api_kye")
    file.chmod(0o644)
    assert "chmod 600" in config("validate").stdout


def test_without_an_editor_the_file_is_named(config, file, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    done = config("edit")
    assert (done.exit_code, str(file) in done.stderr) == (1, True)
    monkeypatch.setenv("EDITOR", "/no/such/editor")
    assert config("edit").exit_code == 1


def test_validate_reports_each_problem_and_is_silent_when_all_is_well(config, file):
    file.parent.mkdir(parents=True)
    file.write_text("RETRIES=12\n=== odd\n")
    done = config("validate")
    assert done.exit_code == 1
    assert done.stdout.count("error[config-invalid]") == 2
    assert done.stdout.count("error[config-unreadable]") == 1
    file.write_text("API_KEY=abcd\n")
    file.chmod(0o600)
    done = config("validate")
    assert (done.exit_code, done.stdout) == (0, "")


def test_the_file_is_named_whether_it_exists_or_not(config, file):
    assert config("path").stdout == f"{file}\n"


def test_a_file_that_cannot_be_read_is_reported_and_not_touched(config, file):
    file.parent.mkdir(parents=True)
    file.write_bytes(b"A=\xff\n")
    for command in (("set", "retries=1"), ("unset", "retries"), ("edit",), ("validate",)):
        assert config(*command).exit_code == 1
    assert file.read_bytes() == b"A=\xff\n"


def test_doctor_reports_what_is_missing_without_running_code(run, plugins):
    done = run("doctor", "--plugins", plugins)
    assert "'api_key' has no value" in done.stdout
    assert "satchel config set --plugins plugins demo api_key" in done.stdout
    assert not (plugins / "demo/was-run").exists()


def test_the_subcommands_explain_themselves(run):
    done = run("config", "--help")
    for word in ("show", "set", "unset", "edit", "validate", "path"):
        assert word in done.stdout
        assert run("config", word, "--help").exit_code == 0


def test_a_running_satchel_follows(start, plugins):
    watch = start("watch", "--plugins", plugins)
    watch.until("watching", "stderr")
    command = [sys.executable, "-m", "satchel", "config", "set", "demo", "api_key=abcd"]
    subprocess.run([*command, "--plugins", str(plugins)], check=True, capture_output=True)
    watch.until("changed plugin demo")


COMMANDS = [
    *(("config", "show", "demo"), ("config", "show", "demo", "--json")),
    *(("config", "validate", "demo"), ("config", "validate", "demo", "--json")),
    *(("doctor",), ("doctor", "--json"), ("list", "--json"), ("show", "demo"), ("call", "ask")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_secret_that_is_not_allowed_is_reported_and_never_shown(
    run, here, write_plugin, monkeypatch, command
):
    source = """
        from satchel import tool

        @tool(state=["api_key"])
        def ask(api_key: str) -> str:
            "Ask."
            return "asked"
    """
    manifest = "active: true\nconfig: {api_key: {type: secret, max: 3}}\n"
    write_plugin(here / "plugins", "demo", manifest, tools=source)
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", CANARY)
    done = run(*command, "--plugins", "plugins")
    assert CANARY not in done.output
    assert "too long" in done.output


def test_an_installed_package_that_declares_nothing_takes_any_key(run, tmp_path, monkeypatch):
    info = tmp_path / "site" / "acme_sender-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sender\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[satchel.plugins]\nsender = not_imported\n")
    (info / "RECORD").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    done = run("config", "set", "sender", "token=abc")
    assert (done.exit_code, done.stderr) == (0, "")
    (row,) = json.loads(run("config", "show", "sender", "--json").stdout)
    assert (row["name"], row["type"], row["value"]) == ("token", None, "***")
