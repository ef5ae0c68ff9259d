"""What commands say about their sources before they do their work."""

from types import SimpleNamespace

import pytest

from satchel.cli.base_command import _wait_for_servers


@pytest.mark.parametrize("command", ["list", "prompt"])
def test_a_missing_folder_of_the_settings_is_exit_code_two(run, here, config_folder, command):
    config_folder.mkdir(exist_ok=True)
    settings = config_folder / "satchel.toml"
    settings.write_text(f'[sources]\nskills = ["{here}/nope"]\n')
    result = run(command)
    assert (result.exit_code, "nope: error[source-missing]" in result.stderr) == (2, True)
    (here / "nope").mkdir()
    assert run(command).exit_code == 0


def test_a_kind_that_does_not_exist_is_refused_with_those_that_do(run):
    result = run("list", "skil")
    assert (result.exit_code, "'skills', 'tools'" in result.stderr) == (2, True)


def servers(*answers, names=("slow", "up")):
    """Return an app whose servers answer a wait in turn; the first is never known."""
    left = [*answers]
    states = [SimpleNamespace(name=name, is_known=name == "up") for name in names]
    return SimpleNamespace(
        mcp_server_states=states, wait_for_mcp_servers=lambda _seconds: left.pop(0)
    )


def test_what_is_waited_for_is_said_if_it_takes_long(capsys):
    _wait_for_servers(servers(True), 5.0)
    assert capsys.readouterr().err == ""
    _wait_for_servers(servers(False, True), None)
    assert capsys.readouterr().err == "waiting for 1 MCP server: slow\n"
    _wait_for_servers(servers(False, False), 5.0)
    assert capsys.readouterr().err.endswith("not waited any longer for 1 MCP server: slow\n")


COMMANDS = [
    *("call echo text=a", "doctor --run", "list --run", "lock", "mcp list", "mcp tools box"),
    *("prompt", "schema", "show demo --run", "test demo", "validate plugins/demo --run"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_a_plugin_while_it_is_not_known_which_are_disabled(
    run, here, toolkit, config_folder, command
):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text("disable = 1\n[mcp.box]\ncommand = 'x'\n")
    options = () if command.startswith("validate") else ("--plugins", "plugins")
    result = run(*command.split(), *options)
    assert result.stderr.count("satchel.toml:1: error[choices-unreadable]: ") == 1
    assert not (toolkit / "demo" / "was-run").exists()
    fails = command.startswith(("call", "doctor", "lock", "mcp tools", "test", "validate"))
    assert (result.exit_code, (here / "satchel.lock").exists()) == (int(fails), False)
    if command.startswith(("call", "test", "validate")):
        assert "plugin 'demo' is not used: satchel.toml cannot be read" in result.stderr


def test_an_unknown_command_may_be_one_of_a_plugin_that_waits(run, config_folder):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text("disable = 1\n")
    result = run("greet")
    assert "error[choices-unreadable]: " in result.stderr
    assert "No such command 'greet'" in result.stderr


def test_a_worker_does_not_start_with_settings_that_cannot_be_read(run, config_folder):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text("disable = 1\n")
    result = run("worker", "--redis", "redis://localhost")
    assert (result.exit_code, "satchel.toml:1: the settings cannot be read" in result.stderr) == (
        1,
        True,
    )
