"""`satchel serve`: its options, and what it prints for clients. Serving is tried in tests/mcp."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

import pytest

from satchel import Satchel
from satchel.cli.mcp_client_config import CLIENTS
from satchel.cli.new_problems import LateProblems, ProblemWriter
from satchel.mcp.served_selection import ServedSelection
from satchel.reports.doctor_cases import known_problems

every_client = pytest.mark.parametrize("client", CLIENTS)


def config(printed, client):
    """Return the one server in a block, whatever the format."""
    read = tomllib.loads if client == "codex" else json.loads
    (servers,) = read(printed).values()
    return servers["satchel"]


@every_client
def test_a_client_learns_how_to_start_this_very_server(run, client, here):
    (here / "skills").mkdir()
    arguments = [
        "--skills",
        "skills",
        "--group",
        "maps",
        "--disable-tool",
        'r"m*',
        "--no-skill-tools",
    ]
    arguments += ["--find-folders", "9", "--no-cache", "--frozen"]
    result = run("serve", "--print-config", client, *arguments)
    assert result.exit_code == 0
    created = config(result.stdout, client)
    assert created["command"] == sys.executable
    assert created["args"] == [
        *("-P", "-m", "satchel", "serve", "--group", "maps", "--disable-tool", 'r"m*'),
        *(
            "--directory",
            str(here),
            "--no-skill-tools",
            "--skills",
            str(here / "skills"),
            "--find-folders",
            "9",
        ),
        *("--no-cache", "--frozen"),
    ]
    assert CLIENTS[client]["file"] in result.stderr


@every_client
def test_any_folder_can_be_named_to_a_client(run, client, here):
    odd = 'a "b" \\ \t\x7f é 😀'
    (here / odd).mkdir()
    created = config(run("serve", "--print-config", client, "--skills", odd).stdout, client)
    assert created["args"][-1] == str(here / odd)


@every_client
def test_a_client_learns_how_to_connect_and_no_token_is_shown(run, client, here):
    (here / "tokens").write_text("a" * 32)
    (here / "tokens").chmod(0o600)
    result = run(
        "serve", "--print-config", client, "--http", "0.0.0.0:8000", "--token-file", "tokens"
    )
    assert "http://127.0.0.1:8000/mcp" in config(result.stdout, client).values()
    assert "a" * 32 not in result.stdout
    assert "TOKEN" in result.stdout
    assert ("SATCHEL_TOKEN" in result.stderr) == (client == "codex")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("0.0.0.0:8000", "http://tools.example.com:8000/mcp"),
        ("127.0.0.1:8000", "https://tools.example.com/mcp"),
    ],
)
def test_clients_elsewhere_get_the_name_that_they_may_use(run, here, address, url):
    (here / "tokens").write_text("a" * 32)
    (here / "tokens").chmod(0o600)
    arguments = ["--token-file", "tokens", "--allow-host", "tools.example.com"]
    result = run("serve", "--print-config", "cursor", "--http", address, *arguments)
    assert config(result.stdout, "cursor")["url"] == url


def test_who_gives_no_name_hears_that_there_is_another_one(run, here):
    (here / "tokens").write_text("a" * 32)
    (here / "tokens").chmod(0o600)
    arguments = ["--http", "0.0.0.0:8000", "--token-file", "tokens"]
    assert "--allow-host" in run("serve", "--print-config", "cursor", *arguments).stderr


def test_no_configuration_is_printed_for_a_token_file_that_is_of_no_use(run):
    result = run("serve", "--print-config", "cursor", "--http", "8000", "--token-file", "nope")
    assert result.exit_code == 1
    assert result.stdout == ""


def test_a_file_is_named_that_takes_servers_to_connect_to(run):
    result = run("serve", "--print-config", "claude", "--http", "8000")
    assert "add this to .mcp.json\n" in result.stderr


@pytest.mark.parametrize(
    "option",
    [
        ["--token-file", "tokens"],
        ["--allow-host", "x"],
        ["--allow-origin", "https://x"],
        ["--rate", "0"],
    ],
)
@pytest.mark.parametrize("others", [[], ["--print-config", "cursor"]])
def test_what_is_for_http_is_wrong_without_it(run, option, others):
    result = run("serve", *option, *others)
    assert result.exit_code == 2
    assert f"{option[0]}: only with --http" in result.stderr


@pytest.mark.parametrize("rate", ["inf", "-1", "many"])
def test_a_rate_is_a_number(run, rate):
    result = run("serve", "--http", "127.0.0.1:0", "--rate", rate)
    assert result.exit_code == 2
    assert "--rate" in result.stderr


@pytest.mark.parametrize("name", ["", "x:8000", "https://x", "x/mcp", "[::1]"])
def test_a_host_is_a_name_alone(run, name):
    result = run("serve", "--http", "127.0.0.1:0", "--allow-host", name)
    assert result.exit_code == 2
    assert "tools.example.com" in result.stderr


def test_a_page_is_named_with_how_it_is_reached(run):
    result = run("serve", "--http", "127.0.0.1:0", "--allow-origin", "app.example.com")
    assert result.exit_code == 2
    assert "https://app.example.com" in result.stderr


def test_printing_a_configuration_imports_no_plugin(run, toolkit, was_run):
    assert run("serve", "--print-config", "cursor", "--plugins", toolkit).exit_code == 0
    assert not was_run()


@every_client
@pytest.mark.parametrize("http", [[], ["--http", "8000"]])
@pytest.mark.parametrize("option", ["--trust=code", "--trust=data", "--variable=KEY"])
def test_no_configuration_of_a_client_trusts_the_folder_that_it_starts_in(
    run, client, http, option
):
    result = run("serve", "--print-config", client, "--project", *http, option)
    assert result.exit_code == 2
    assert not result.stdout
    assert "satchel trust" in result.stderr


def test_where_the_project_is_depends_on_the_client(run):
    result = run("serve", "--print-config", "claude", "--project")
    assert "--project" in config(result.stdout, "claude")["args"]
    assert "folder in which the client starts the server" in result.stderr


@pytest.mark.parametrize("option", ["--locked", "--frozen"])
def test_a_configuration_with_a_lock_serves_what_is_locked_wherever_the_client_starts_it(
    run, here, write_skill, option
):
    write_skill(here / "skills", "pdf")
    assert run("lock", "--skills", "skills").exit_code == 0
    printed = run("serve", "--print-config", "cursor", "--skills", "skills", option)
    created = config(printed.stdout, "cursor")
    process = subprocess.run(
        [created["command"], *created["args"]],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "1 skill" in process.stderr


def test_a_configuration_for_the_project_of_the_client_names_no_lock_of_another(run, here):
    result = run("serve", "--print-config", "claude", "--project", "--frozen")
    assert str(here) not in result.stdout
    assert "in which the client starts" in result.stderr
    named = run("serve", "--print-config", "claude", "--project", "--directory", ".")
    assert config(named.stdout, "claude")["args"][-3:-1] == ["--directory", str(here)]
    assert "in which the client starts" not in named.stderr


def test_a_folder_to_serve_in_must_exist(run):
    result = run("serve", "--directory", "nowhere", "--print-config", "claude")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


@pytest.mark.parametrize(
    "address", ["0.0.0.0:8000", "192.168.1.5:8000", "example.com:80", "[::]:1"]
)
def test_an_address_that_others_can_reach_needs_a_token_file(run, address):
    result = run("serve", "--http", address)
    assert result.exit_code == 2
    assert "--token-file" in result.stderr


def test_a_token_file_that_others_may_read_is_refused(run, here):
    (here / "tokens").write_text("a" * 32)
    (here / "tokens").chmod(0o644)
    result = run("serve", "--http", "127.0.0.1:0", "--token-file", "tokens")
    assert result.exit_code == 1
    assert "chmod 600" in result.stderr


def test_what_is_no_address_is_wrong_usage(run):
    result = run("serve", "--http", "localhost")
    assert result.exit_code == 2
    assert "HOST:PORT" in result.stderr


def test_an_address_that_is_taken_is_one_line(run, here):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 1
    assert "cannot listen" in result.stderr


def test_without_the_sdk_it_is_said_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    result = run("serve")
    assert result.exit_code == 1
    assert "pip install '.[mcp]'" in result.stderr


def test_what_is_wrong_is_reported_before_the_sdk_is_looked_for(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert "HOST:PORT" in run("serve", "--http", "localhost").stderr
    output = run("serve", "--http", "127.0.0.1:0", "--token-file", "none").stderr
    assert "the token file cannot be read" in output


def test_no_other_command_imports_the_sdk(execute):
    code = f"{sys.executable} -X importtime -m satchel serve --help 2>&1 | grep -c ' mcp$' || true"
    assert execute(script=code).stdout.strip() == "0"


def test_a_missing_value_is_reported_once_until_it_was_there(here, write_plugin, monkeypatch):
    manifest = "config: {api_key: {type: secret}}\n"
    file = write_plugin(here / "plugins", "maps", manifest) / "toolkit.yaml"
    whole = file.read_text()
    with Satchel(plugins=["plugins"]) as app:
        lines: list[str] = []
        earlier = known_problems({}, app.catalog)
        problems = ProblemWriter(Mock(say=lines.append), earlier)

        def new():
            lines.clear()
            app.refresh()
            problems.write(app.catalog)
            return [match[1] for line in lines if (match := re.search(r"error\[([\w-]+)\]", line))]

        assert [item.code for item in earlier if item.severity == "error"] == ["config-invalid"]
        for _ in range(2):
            file.write_text(f"{whole}def :(\n")
            assert new() == ["yaml-invalid"]
            file.write_text(whole)
            assert new() == []
        monkeypatch.setenv("SATCHEL_MAPS_API_KEY", "k")
        file.write_text(f"{whole}# one")
        assert new() == []
        monkeypatch.delenv("SATCHEL_MAPS_API_KEY")
        file.write_text(f"{whole}# two")
        assert new() == ["config-invalid"]


def test_an_error_between_the_report_and_the_watch_is_written_once(tmp_path, write_plugin):
    folder = write_plugin(tmp_path, "demo", tools="x = 1\n")
    lines: list[str] = []
    console = Mock(say=lines.append)
    with Satchel(plugins=[tmp_path]) as app:
        reported = app.catalog
        (folder / "tools.py").write_text("from satchel import (\n")
        app.refresh()
        news = LateProblems(app, reported, console, ServedSelection())
        news.write()
        app.create_group("other", "Changes the catalog.")
        news.write()
    assert ["plugin-syntax" in line for line in lines] == [True]


def test_the_commands_of_the_page_about_deployment_are_valid_and_require_a_token(run, here):
    page = (Path(__file__).parents[2] / "docs/how-to/deploy.md").read_text()
    page = page.replace("\\\n", "").replace("/srv", str(here))
    for folder in ("skills", "plugins"):
        (here / folder).mkdir()
    tokens = here / "tokens"
    tokens.write_text("a" * 32)
    tokens.chmod(0o600)
    commands = [json.loads(re.search(r"^CMD (.*)$", page, re.MULTILINE)[1])]
    commands.append(shlex.split(re.search(r"^ExecStart=(.*)$", page, re.MULTILINE)[1]))
    assert "LoadCredential=tokens:" in page
    for _, *command in commands:
        at = command.index("--token-file") + 1
        assert command[at] in {"/run/secrets/tokens", "%d/tokens"}
        command[at] = tokens
        client = config(run(*command, "--print-config", "codex").stdout, "codex")
        assert "://tools.example.com" in client["url"]
        assert client["bearer_token_env_var"]
