"""A command in a message can be pasted: it reads the same sources as the one that printed it."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

import satchel
from satchel.cli.base_command import SourcesCommand, as_arguments
from satchel.cli.main import COMMANDS, cli
from satchel.reports.printed_commands import COMPLETED, completed

SOURCE = Path(satchel.__file__).parent
PROSE = {"serve", "watch", "test", "dev", "worker"}
"""Commands that messages name, but not to be pasted."""


@pytest.fixture
def maps(here, write_plugin):
    """A plugin whose only tool waits for a secret."""
    write_plugin(
        here / "my plugins",
        "maps",
        "config: {api_key: {type: secret}}\n",
        tools="""
            from satchel import tool

            @tool(state=["api_key"])
            def route(to: str, api_key: str) -> str:
                "Find the way."
                return to
        """,
    )
    return "my plugins"


def commands():
    """Return all commands by their name."""
    results = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        parts = command.commands if isinstance(command, click.Group) else {}
        results |= {name: command, **{f"{name} {part}": parts[part] for part in parts}}
    return results


def test_the_fix_of_doctor_can_be_pasted(run, maps):
    done = run("doctor", "--plugins", maps)
    line = re.search(r"\$ satchel (config set .*)", done.stdout)[1]
    assert line == "config set --plugins 'my plugins' maps api_key"
    assert run(*shlex.split(line), "k").exit_code == 0
    assert "no value" not in run("doctor", "--plugins", maps).stdout


def test_the_summary_names_the_doctor_that_shows_what_it_counts(run, here, write_plugin):
    write_plugin(
        here / "p",
        "broken",
        tools="""
            from satchel import hookimpl

            class Broken:
                name = "db"
                def contribute(self, last, changed):
                    raise RuntimeError("no connection")

            @hookimpl
            def satchel_providers():
                return [Broken()]
        """,
    )
    output = run("list", "--run", "--plugins", "p").stderr
    line = re.search(r"run 'satchel (.*)' for details", output)[1]
    assert "no connection" in run(*shlex.split(line)).stdout


def test_json_has_the_same_command_as_text(run, maps):
    findings = json.loads(run("doctor", "--plugins", maps, "--json").stdout)["findings"]
    commands = {item["command"] for item in findings if item["code"] == "tool-state-missing"}
    assert commands == {"satchel config set --plugins 'my plugins' maps api_key"}


def test_errors_and_summaries_name_commands_that_can_be_pasted(run, maps):
    done = run("call", "route", "to=x", "--plugins", maps)
    assert "satchel config set --plugins 'my plugins' maps api_key" in done.stderr
    done = run("list", "--plugins", maps, "--entry-points", "none")
    options = "--plugins 'my plugins' --entry-points none"
    assert f"run 'satchel doctor {options}' for details" in done.stderr


def test_without_options_a_command_stays_as_it_is(run, write_plugin, here):
    assert completed("run 'satchel doctor'", ()) == "run 'satchel doctor'"


def test_enable_never_changes_the_file_of_a_project_unasked():
    options = ("--plugins", "p", "--project")
    assert completed("satchel enable x", options) == "satchel enable --plugins p x"
    assert completed("satchel enable x", ("--project",)) == "satchel enable x"
    assert completed("satchel doctor", options) == "satchel doctor --plugins p --project"
    assert completed("satchel doctor", ("--frozen",)) == "satchel doctor --frozen"
    assert completed("satchel lock --diff", ("--frozen",)) == "satchel lock --diff"


def test_a_command_without_sources_gets_no_options():
    text = "satchel trust x; satchel-other list; my.satchel list; the satchel library"
    assert completed(text, ("--plugins", "p")) == text


def test_each_command_in_a_message_that_reads_sources_is_completed():
    command_names = commands()
    with_sources = {
        name for name in command_names if isinstance(command_names[name], SourcesCommand)
    }
    assert with_sources >= COMPLETED
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    pattern = re.compile(r"""['"]satchel ((?:config|mcp) [a-z]+|[a-z]+)""")
    named = {match[1] for text in texts for match in pattern.finditer(text)}
    assert named & with_sources <= COMPLETED | PROSE


def test_options_are_written_with_values_of_zero_and_without_missing_ones():
    options = [click.Option([f"--{name}"]) for name in ("rate", "number", "quiet", "name")]
    values = {"rate": 0.0, "number": 0, "quiet": False, "name": None}
    assert as_arguments(options, values) == ["--rate", "0.0", "--number", "0"]
