"""`satchel mcp login` and `logout`, against a server in a thread."""

import json
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from satchel.mcp_servers import browser_login

sys.path.insert(0, str(Path(__file__).parents[1] / "mcp_servers"))  # `authorized.py` is there

from authorized import Running


@pytest.fixture
def box():
    created = Running()
    yield created
    created.stop()


@pytest.fixture
def declared(box, config_folder):
    config_folder.mkdir()
    path = config_folder / "satchel.toml"
    path.write_text(f'[mcp.box]\nurl = "{box.url}"\n[mcp.here]\ncommand = "true"\n')


@pytest.fixture
def browser(monkeypatch):
    """A browser of a user who agrees; returns the addresses that it opened."""
    opened = []

    def open_address(address):
        opened.append(address)
        visit = {"target": httpx2.get, "args": (address,), "kwargs": {"follow_redirects": True}}
        threading.Thread(**visit, daemon=True).start()
        return True

    monkeypatch.setattr(browser_login, "open_in_browser", open_address)
    return opened


def test_a_login_is_made_used_and_removed(run, box, declared, browser):
    needed = run("mcp", "tools", "box")
    assert (needed.exit_code, "satchel mcp login box" in needed.stderr) == (1, True)
    result = run("mcp", "login", "box")
    assert (result.exit_code, result.stdout) == (0, "logged in to box, which has 3 tools\n")
    assert browser[0] in result.stderr
    tools = run("mcp", "tools", "box")
    assert (tools.exit_code, "echo" in tools.stdout) == (0, True)
    assert run("mcp", "call", "box", "echo", "text=hello").stdout == "hello\n"
    assert len(browser) == 1
    for shown in (result, tools, run("mcp", "list"), run("mcp", "list", "--json")):
        assert not any(token in shown.output for token in box.authority.issued)
    gone = run("mcp", "logout", "box")
    assert (gone.exit_code, gone.stdout) == (0, "logged out of box\n")
    assert box.authority.refresh == {}  # the authorization server ended it, too
    assert run("mcp", "tools", "box").exit_code == 1
    assert "there is no login to box" in run("mcp", "logout", "box").stderr


def test_a_server_that_only_a_program_knows_is_named_by_its_address(run, box, browser):
    result = run("mcp", "login", box.url, "--json")
    assert json.loads(result.stdout) == {"server": "127.0.0.1", "tools": 3}
    gone = run("mcp", "logout", box.url, "--json")
    assert json.loads(gone.stdout) == {"server": "127.0.0.1", "removed": True, "revoked": True}


def test_without_a_browser_the_address_is_printed(run, box, declared):
    result = run("mcp", "login", "box", "--no-browser", "--wait", "1")
    assert (result.exit_code, "no login within 1 s" in result.stderr) == (1, True)
    assert f"{box.issuer}/authorize?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("login", "here"), "is a program on this machine"),
        (("logout", "here"), "is a program on this machine"),
        (("login", "bxo"), "did you mean box?"),
        (("login", "bxo"), "by its URL"),
        (("login", "ftp://box"), "there is no MCP server"),
    ],
)
def test_what_cannot_be_logged_in_to_is_said(run, declared, arguments, why):
    result = run("mcp", *arguments)
    assert (result.exit_code, why in result.stderr) == (1, True), result.stderr


def test_an_authorization_server_that_cannot_end_a_login_is_named(run, box, declared, browser):
    run("mcp", "login", "box")
    box.stop()
    gone = run("mcp", "logout", "box")
    assert gone.stdout == "logged out of box; its authorization server was not informed\n"


def test_the_file_names_the_client(run, here, monkeypatch):
    monkeypatch.setenv("BOX_SECRET", "hush-hush")
    (here / "satchel.toml").write_text(
        '[mcp.box]\nurl = "https://mcp.example.org/mcp"\n'
        '[mcp.box.oauth]\nclient-id = "me"\nclient-secret = "${BOX_SECRET}"\n'
        'issuer = "https://auth.example.org"\nscopes = ["read"]\n'
        'grant = "client-credentials"\n'
    )
    refused = run("mcp", "login", "box", "--trust", "code", "--variable", "BOX_SECRET")
    assert "uses client credentials" in refused.stderr
    assert "hush" not in run("mcp", "list", "--trust", "code", "--json").output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[mcp.box]\nurl = "https://a.example"\noauth = 3\n', "its oauth must be a table"),
        (
            '[mcp.box]\nurl = "https://a.example"\n[mcp.box.oauth]\nclient_id = "me"\n',
            "did you mean 'client-id'?",
        ),
    ],
)
def test_a_mistake_in_the_oauth_table_is_reported(run, here, text, why):
    (here / "satchel.toml").write_text(text)
    listed = run("mcp", "list", "--trust", "code")
    assert (listed.exit_code, why in listed.stderr) == (0, True), listed.stderr
