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
