import json
import os
import queue
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from described import PLAIN, described
from hypothesis import given
from hypothesis import strategies as st

from satchel import OAuthClient, Project, Satchel, Settings
from satchel.errors import DefinitionError
from satchel.formats.server_table import OAuthTable, ServerTable
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
from satchel.mcp_servers.server_declarations import unique_server_names, user_server
from satchel.mcp_servers.server_options import ServerConfig
from satchel.names import plugin_name_fault
from satchel.settings import Limits

SETTINGS = Settings(limits=Limits(mcp_connect=60))
PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"


@pytest.fixture
def written(tmp_path):
    """Write an open plugin that brings the plain server, and return the folder of plugins."""

    def write(*tools, name="demo", **server):
        folder = tmp_path / "plugins" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plugin.json").write_text(json.dumps({"$schema": PLUGIN_SCHEMA, "name": name}))
        (folder / "book.json").write_text(json.dumps([described(tool) for tool in tools]))
        (folder / "run").write_text(
            f'#!{sys.executable}\nimport os, sys, runpy\nsys.argv = ["plain", sys.argv[1]]\n'
            f'runpy.run_path("{PLAIN}")\n'
        )
        (folder / "run").chmod(0o755)
        servers = {
            "box": {
                "type": "stdio",
                "command": "./run",
                "args": ["${PLUGIN_ROOT}/book.json"],
                **server,
            }
        }
        (folder / "mcp.json").write_text(json.dumps({"$schema": MCP_SCHEMA, "mcpServers": servers}))
        return folder.parent

    return write


@pytest.fixture
def user_file(config_folder):
    def write(text):
        config_folder.mkdir(exist_ok=True)
        path = config_folder / "satchel.toml"
        path.write_text(text)
        return path

    return write


def table(name, book, lines=""):
    return f"[mcp.{name}]\ncommand = {sys.executable!r}\nargs = [{PLAIN!r}, {book!r}]\n{lines}\n"


def codes(app):
    return [item.code for item in app.catalog.diagnostics if item.code.startswith("mcp-")]


def test_what_a_file_fills_into_arguments_is_shown_nowhere():
    declared = {"command": "x", "args": ["--auth=${TOKEN}", "--all"]}
    server = user_server(
        "box", declared, "satchel.toml", {"TOKEN": "hush-hush", "OTHER": "y"}
    ).server
    assert server.args == ("--auth=hush-hush", "--all")
    assert server.secrets == ("hush-hush",)
    assert "hush" not in repr(server)
    assert str(server) == "x --auth=*** --all"


def test_a_local_server_is_shown_by_its_command_and_script():
    declared = {"command": "${BIN}/python3", "args": ["server.py", "${KEY}"]}
    server = user_server("box", declared, "satchel.toml", {"BIN": "/b", "KEY": "hush"}).server
    assert str(server) == "python3 server.py ${KEY}"
    assert str(StdioServer(command="/b/python3", args=("/srv/x.py", "hush"))) == (
        "python3 /srv/x.py ***"
    )


# ---- of plugins ----------------------------------------------------------------------------


def test_the_servers_of_an_enabled_plugin_are_carried(written):
    with Satchel(plugins=[written("echo")], settings=SETTINGS) as app:
        assert app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]
        assert app.catalog.tools["echo"].source == "mcp:box"
        assert codes(app) == []


@pytest.mark.parametrize(
    "options", [{"run_code": False}, {"settings": Settings(mcp_servers=False)}]
)
def test_reading_starts_no_process(written, options, tmp_path):
    started = tmp_path / "started"
    folder = written("echo")
    (folder / "demo" / "run").write_text(f"#!/bin/sh\ntouch {started}\n")
    with Satchel(plugins=[folder], **options) as app:
        assert app.wait_for_mcp_servers(1)
        assert codes(app) == ["mcp-not-started"]
    assert not started.exists()


def test_a_plugin_that_goes_takes_its_servers_and_one_that_comes_brings_them(written):
    news = queue.SimpleQueue()
    folder = written("echo")
    with Satchel(plugins=[folder], settings=SETTINGS) as app, app.watching():
        app.subscribe(news.put)

        def until(names):
            while [*app.catalog.tools] != names:
                news.get(timeout=120)

        app.wait_for_mcp_servers(60)
        until(["echo"])
        (folder / "demo" / "mcp.json").rename(hidden := folder / "demo" / "hidden")
        until([])
        hidden.rename(folder / "demo" / "mcp.json")
        until(["echo"])


def test_two_plugins_may_bring_servers_of_one_name(written):
    written("echo", name="one")
    folder = written("other", name="two")
    with Satchel(plugins=[folder], settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        sources = {entry.name: entry.source for entry in app.catalog.tools.values()}
    assert sources == {"echo": "mcp:box", "other": "mcp:two-box"}


def test_a_server_of_a_plugin_knows_its_folders_and_no_secrets(written, monkeypatch, tmp_path):
    monkeypatch.setenv("A_SECRET", "hush")
    monkeypatch.setenv("SATCHEL_DATA_DIR", str(tmp_path / "data"))
    log_file = tmp_path / "said"
    folder = written("echo")
    (folder / "demo" / "run").write_text(
        f"#!/bin/sh\nenv > {log_file}.part\nmv {log_file}.part {log_file}\n"
    )
    with Satchel(plugins=[folder], settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert codes(app) == ["mcp-server-down"]
    lines = log_file.read_text().splitlines()
    assert f"PLUGIN_ROOT={folder / 'demo'}" in lines
    assert f"PLUGIN_DATA={tmp_path / 'data' / 'plugins' / 'demo'}" in lines
    assert "A_SECRET=hush" not in lines


# ---- of users ------------------------------------------------------------------------------


def test_a_bundle_says_as_which_client_to_log_in(tmp_path):
    folder = tmp_path / "plugins" / "demo"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "demo"}')
    remote = {"url": "http://127.0.0.1:1/", "oauth": {"clientId": "us", "callbackPort": 8765}}
    (folder / ".mcp.json").write_text(json.dumps({"box": remote, "plain": {"url": "http://x/"}}))
    with Satchel(plugins=[folder.parent], settings=Settings(mcp_servers=False)) as app:
        declared = app.declared_mcp_servers
    assert declared["box"].server.oauth == OAuthClient(
        client_id="us", redirect="http://localhost:8765/callback"
    )
    assert declared["plain"].server.oauth is None


def test_every_field_of_a_projects_file_counts(tmp_path):
    (tmp_path / "project").mkdir()
    folder = (tmp_path / "project").resolve()
    (folder / ".env").write_text("KEY='from file'\nMODE=slow # text\n")
    limits = {"timeout": 90_000, "startup_timeout_sec": 30}
    local = {"command": "run", "env": {"MODE": "fast"}, "envFile": "${workspaceFolder}/.env"}
    choice = {"includeTools": ["a"], "excludeTools": ["b"]}
    remote = {"url": "https://x/", "auth": {"CLIENT_ID": "us", "scopes": ["read"]}}
    servers = {"local": {**local, **limits, **choice}, "remote": {**remote, **limits}}
    (folder / ".mcp.json").write_text(json.dumps({"servers": servers}))
    project = Project(folder, trust="code")
    with Satchel(project=project, settings=Settings(mcp_servers=False)) as app:
        local, remote = (app.declared_mcp_servers[name] for name in ("local", "remote"))
    assert local.server.env == {"KEY": "from file", "MODE": "fast"}
    assert "from file" in local.server.secrets
    assert (local.enable, local.disable) == (("a",), ("b",))
    assert remote.server.oauth == OAuthClient(client_id="us", scopes=("read",))
    assert [(it.timeout, it.options.startup_timeout) for it in (local, remote)] == [(90, 30)] * 2


def test_a_bundles_file_of_variables_is_in_its_folder(tmp_path):
    folder = tmp_path / "plugins" / "demo"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "demo"}')
    (folder / "my.env").write_text("export KEY=hush")
    local = {"command": "run", "startup_timeout_sec": 30, "envFile": "my.env"}
    (folder / ".mcp.json").write_text(json.dumps({"box": local}))
    with Satchel(plugins=[folder.parent], settings=Settings(mcp_servers=False)) as app:
        (box,) = app.declared_mcp_servers.values()
    assert (box.server.env["KEY"], box.options.startup_timeout) == ("hush", 30)


def test_a_server_whose_file_of_variables_is_missing_is_left_out(user_file):
    user_file('[mcp.box]\ncommand = "run"\nenv-file = "none.env"\n')
    with Satchel(settings=Settings(mcp_servers=False)) as app:
        assert app.declared_mcp_servers == {}
        diagnostics = app.catalog.diagnostics
    (problem,) = [item for item in diagnostics if item.code == "mcp-server-invalid"]
    assert "its env-file cannot be read" in problem.message
    assert "none.env" in problem.message


def test_a_table_of_the_users_file_is_a_server(user_file, book):
    user_file(table("box", book("echo", "other"), 'disable = "oth*"\n'))
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]


def test_a_server_that_is_written_while_all_runs_comes_and_goes(user_file, book):
    news = queue.SimpleQueue()
    with Satchel(settings=SETTINGS) as app, app.watching():
        app.subscribe(news.put)
        path = user_file(table("box", book("echo")))
        while "echo" not in app.catalog.tools:
            news.get(timeout=120)
        os.remove(path)
        while "echo" in app.catalog.tools:
            news.get(timeout=120)


def test_a_server_that_is_removed_stays_away_though_it_is_written(user_file, book):
    user_file(table("box", book("echo")))
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        app.remove_mcp_servers("box")
        app.refresh()
        assert "mcp:box" not in app.catalog.plugins


def test_a_server_that_is_disabled_is_not_started(user_file, tmp_path):
    mark = tmp_path / "started"
    user_file(f'disable = ["mcp:box"]\n[mcp.box]\ncommand = "touch"\nargs = ["{mark}"]\n')
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
    assert not mark.exists()


def test_a_table_that_cannot_be_used_is_reported_and_the_others_are_carried(user_file, book):
    path = user_file("[mcp.bad]\nurl = 3\n" + table("good", book("echo")))
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-server-invalid"]
    assert (problem.where.path, problem.message) == (
        str(path),
        "server 'bad' is left out: its url must be a string",
    )


@pytest.mark.parametrize("broken", ['env = {KEY = "${BOX_KEY}"}', 'timeout = "long"'])
def test_a_server_that_is_left_out_keeps_the_names_of_its_tools(
    user_file, book, write_plugin, tmp_path, broken
):
    other = table("other", book("echo", name="other.json"))

    def tools(lines, *plugins):
        user_file(table("box", book("echo"), lines) + other)
        with Satchel(plugins=plugins, settings=SETTINGS) as app:
            app.wait_for_mcp_servers(60)
            reasons = [item.message for item in app.catalog.diagnostics]
            names = {tool.name: str(tool.state) for tool in app.catalog.all_tools}
            return names, [it for it in reasons if "MCP server 'box'" in it or " is new, " in it]

    assert tools("")[0] == {"echo": "ok", "other_echo": "ok"}
    names, reasons = tools(broken)
    assert names == {"other_echo": "ok"}
    why = "'echo' is called 'other_echo' here because MCP server 'box' has that name"
    assert any(why in it for it in reasons)
    code = 'from satchel import tool\n@tool\ndef echo() -> str:\n    "Echo."\n    return "x"\n'
    plugin = write_plugin(tmp_path / "plugins", "p", tools=code).parent
    names, reasons = tools(broken, plugin)
    assert names == {"echo": "held", "other_echo": "ok"}
    why = "a plugin or server not usable now served this name before"
    assert any(why in it for it in reasons)
    user_file(other)
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]


def test_a_server_that_is_fixed_has_its_names_again(user_file, book):
    box, other = table("box", book("echo")), table("other", book("echo", name="other.json"))

    def tools(app, text):
        user_file(text)
        app.refresh()
        app.wait_for_mcp_servers(60)
        app.refresh()
        return {tool.name: tool.source for tool in app.catalog.all_tools if tool.is_served}

    both = {"echo": "mcp:box", "other_echo": "mcp:other"}
    user_file(box + other)
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert tools(app, box + other) == both
        broken = table("box", book("echo"), 'timeout = "long"')
        assert tools(app, broken + other) == {"other_echo": "mcp:other"}
        assert tools(app, box + other) == both
        assert tools(app, box + "timeout = 9\n" + other) == both
    with Satchel(settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert tools(app, other + box) == both


def test_no_server_of_a_plugin_takes_the_name_of_one_that_is_left_out(user_file, book, tmp_path):
    folder = tmp_path / "plugins/p"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin/plugin.json").write_text('{"name": "p"}')
    declared = {"command": sys.executable, "args": [PLAIN, book("echo")]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"box": declared}}))
    user_file("[mcp.box]\nurl = 3\n")
    with Satchel(plugins=[folder.parent], settings=SETTINGS) as app:
        app.wait_for_mcp_servers(60)
        assert app.catalog.tools["echo"].source == "mcp:p-box"
        assert [*app.declared_mcp_servers] == ["p-box"]


@pytest.mark.parametrize("broken", ["[mcp.box\n", "disable = 'mcp:box'\n", "mcp = 1\n"])
def test_no_server_starts_while_it_is_not_known_which_are_disabled(
    user_file, written, plain, book, broken
):
    folder = written("echo")
    clone = folder.parent / "clone"
    clone.mkdir()
    servers = {"near": {"command": sys.executable, "args": [PLAIN, book("look", name="near")]}}
    (clone / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    project = Project(clone, trust="code")
    user_file(broken)
    with Satchel(plugins=[folder], project=project, settings=SETTINGS) as app:
        app.register_mcp_server(plain("own", name="own"), name="own")
        app.wait_for_mcp_servers(60)
        assert ([it.name for it in app.mcp_server_states], [*app.catalog.tools]) == (["own"], [])
        assert ([*app.declared_mcp_servers], app.catalog.tool("own").state) == ([], "held")
        held = [it.message for it in app.catalog.diagnostics if it.code == "choices-held"]
        assert {message.partition(" is not used: ")[0] for message in held} == {
            "plugin 'demo'",
            "plugin 'mcp:own'",
            "MCP server 'near'",
        }
        user_file(table("box", book("echo")))
        app.refresh()
        app.wait_for_mcp_servers(60)
        served = {name: tool.source for name, tool in app.catalog.tools.items()}
        assert served == {
            "demo-box_echo": "mcp:demo-box",
            "echo": "mcp:box",
            "look": "mcp:near",
            "own": "mcp:own",
        }
    with Satchel(plugins=[folder], project=project, settings=SETTINGS) as app:
        app.register_mcp_server(plain("own", name="own"), name="own")
        app.wait_for_mcp_servers(60)
        assert {name: tool.source for name, tool in app.catalog.tools.items()} == served


def test_the_model_learns_that_a_server_is_left_out(user_file):
    user_file("[mcp.bad]\nurl = 3\n")
    with Satchel(settings=SETTINGS) as app:
        app.register_tool(lambda name: name, name="greet", description="Greet.")
        calls = app.session()
        states = (
            " Either no server has it, or it is a tool of a server that is not connected: server "
            "'bad' is left out, because its settings need the user. Ask the user to run: satchel "
            "mcp list. Continue without it if you can."
        )
        assert calls.call_sync("look", {}).text == "There is no tool 'look'." + states
        text = "There is no tool 'gret'. Did you mean greet?" + states
        assert calls.call_sync("gret", {}).text == text


def test_a_table_says_all_that_code_can_say():
    declared = {
        "command": "run",
        "args": ["-x", "${WHERE}"],
        "env": {"KEY": "k-${SECRET}"},
        "cwd": "/srv",
        "group": "basic",
        "enable": ["a*"],
        "timeout": 3,
        "pin": "warn",
    }
    created = user_server("box", declared, "file", {"WHERE": "here", "SECRET": "hush"})
    server = StdioServer(command="run", args=("-x", "here"), env={"KEY": "k-hush"}, cwd="/srv")
    plainly = replace(created, origin=ServerOrigin(), declared="")
    assert plainly == ServerConfig(
        owner="",
        name="box",
        path="file",
        server=server,
        groups=("basic",),
        enable=("a*",),
        timeout=3,
        pin="warn",
    )
    assert (created.origin.source, created.origin.name) == ("file", "box")
    url = {"url": "https://a.org/mcp", "headers": {"A": "b"}}
    assert user_server("box", url, "", {}).server == HttpServer("https://a.org/mcp", {"A": "b"})
    old = {**url, "transport": "sse"}
    assert user_server("box", old, "", {}).server == SseServer("https://a.org/mcp", {"A": "b"})


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({}, "either a command or a url"),
        ({"command": "x", "url": "https://a"}, "either a command or a url"),
        ({"comand": "x"}, "did you mean 'command'"),
        ({"command": ["npx", "x"]}, r'command must be a string, with args = \["..."\] beside it'),
        ({"command": "x", "args": "-a"}, "args must be a list"),
        ({"command": "x", "env": {"A": 1}}, "env must be a table"),
        ({"command": "x", "pin": "on"}, "pin must be"),
        ({"command": "x", "timeout": -1}, "timeout must be"),
        ({"command": "x", "timeout": True}, "timeout must be"),
        ({"url": "${NO_SUCH}"}, "NO_SUCH, which is not set"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(wrong, why):
    with pytest.raises(DefinitionError, match=why):
        user_server("box", wrong, "", {})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
)
def test_no_value_in_a_table_raises_anything_else(value):
    for address in ({"command": "x"}, {"url": "https://a.org/mcp"}):
        for item in ServerTable.model_fields.values():
            with suppress(DefinitionError):
                user_server("box", {**address, item.alias: value}, "", {})
        for item in OAuthTable.model_fields.values():
            with suppress(DefinitionError):
                user_server("box", {**address, "oauth": {item.alias: value}}, "", {})


def test_names_are_their_own():
    item = ServerConfig(owner="one", name="box", path="", server=StdioServer(command="x"))
    other = ServerConfig(owner="two", name="box", path="", server=StdioServer(command="y"))
    basic = ServerConfig(owner="two", name="basic", path="", server=StdioServer(command="z"))
    created = unique_server_names([item, other, basic], ["two-basic"])
    assert created == {"box": item, "two-box": other, "two-basic-2": basic}
    assert [*unique_server_names([item], ["box"])] == ["one-box"]


def test_no_server_is_dropped_for_its_name():
    items = [
        ServerConfig(owner="p" * 40, name="a" * 60, path="", server=StdioServer(command=str(n)))
        for n in range(15)
    ]
    created = unique_server_names(items, [])
    assert [*created.values()] == items
    assert [name for name in created if plugin_name_fault(name)] == []


def test_how_a_server_is_reached_counts_as_it_is_written():
    def origin(url, key):
        return user_server("box", {"url": url}, "file", {"KEY": key}).origin

    same = origin("https://a.org?key=${KEY}", "old")
    assert origin("https://a.org?key=${KEY}", "new") == same
    assert origin("https://b.org?key=${KEY}", "old") != same
    assert "old" not in f"{same!r}{same.reached}"


def test_the_file_of_a_project_counts_only_when_it_is_named(tmp_path, book):
    Path(tmp_path, "satchel.toml").write_text(table("box", book("echo")))
    with Satchel(settings=SETTINGS, project=Project(tmp_path, trust="code")) as app:
        app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [("", "/home/me"), ("sub", "/home/me/sub"), ("/srv", "/srv"), ("${PWD}", "/clone")],
)
def test_a_command_starts_in_the_folder_of_its_file_and_not_in_the_current_one(cwd, folder):
    table = {"command": "npx", "args": ["box"], "cwd": cwd}
    server = user_server("box", table, "/home/me/satchel.toml", {"PWD": "/clone"}).server
    assert os.path.normpath(server.cwd) == folder
