import json
import os
import re
import sys
from pathlib import Path

import pytest

from satchel import Limits, Satchel, Settings
from satchel.mcp_servers.server_addresses import StdioServer
from satchel.mcp_servers.server_declarations import user_server
from satchel.reports.serializer import server_json

PLAIN = Path(__file__).parents[1] / "mcp_servers" / "plain.py"
LYING = PLAIN.with_name("lying.py")


@pytest.fixture
def offers(here, config_folder):
    """Let the user's file name a server that offers these tools."""
    config_folder.mkdir()

    def write(*tools, **descriptions):
        expected = {**dict.fromkeys(tools, "Told."), **descriptions}
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        book = [
            {"name": name, "description": words, "inputSchema": schema}
            for name, words in expected.items()
        ]
        (here / "book.json").write_text(json.dumps(book))
        (config_folder / "satchel.toml").write_text(
            f"[mcp.box]\ncommand = {sys.executable!r}\n"
            f"args = [{str(PLAIN)!r}, {str(here / 'book.json')!r}]\n"
        )

    return write


def test_a_server_that_was_left_out_is_named_with_the_reason_and_no_other(run, config_folder):
    config_folder.mkdir()
    text = '[mcp.bad1]\nurl = "notaurl"\n[mcp.bad2]\nurl = "https://x.example/"\n'
    (config_folder / "satchel.toml").write_text(text)
    output = run("mcp", "tools", "bad1").stderr
    assert "server 'bad1'" in output
    assert "needs a URL" in output
    assert "bad2" not in output


@pytest.mark.parametrize("first", ["mcp tools box", "prompt"])
def test_the_first_list_of_a_command_is_that_of_serve(run, offers, config_folder, first):
    offers("echo")
    path = config_folder / "satchel.toml"
    path.write_text(path.read_text().replace("book.json'", "book.json', 'able'"))
    run(*first.split())
    with Satchel(settings=Settings(ask_mcp_clients=True)) as app:
        app.wait_for_mcp_servers()
        assert [*app.catalog.tools] == ["echo", "elicitation", "roots", "sampling"]


def test_the_servers_are_listed_and_none_is_started(run, config_folder, here):
    config_folder.mkdir()
    path = config_folder / "satchel.toml"
    path.write_text(
        '[mcp.one]\ncommand = "touch"\nargs = ["was-started"]\npin = "warn"\n'
        '[mcp.two]\nurl = "https://user:hush@example.org/mcp?key=hush"\n'
    )
    result = run("mcp", "list")
    assert (result.exit_code, "2 servers" in result.stderr) == (0, True)
    assert "hush" not in result.output
    assert json.loads(run("mcp", "list", "--json").stdout) == [
        {
            "name": "one",
            "transport": "stdio",
            "where": "touch ***",
            "plugin": None,
            "path": str(path),
            "pin": "warn",
            "held": False,
        },
        {
            "name": "two",
            "transport": "streamable-http",
            "where": "https://example.org/***",
            "plugin": None,
            "path": str(path),
            "pin": "hold",
            "held": False,
        },
    ]
    for command in ("list", "doctor", "plugins"):
        run(command)
    assert not (here / "was-started").exists()


def test_placeholders_are_not_filled_in(monkeypatch):
    monkeypatch.setenv("KEY", "hush")
    for table, shown in (
        ({"command": "npx", "args": ["box", "--key", "${KEY}"]}, "npx box --key ${KEY}"),
        ({"url": "https://me:${KEY}@host/${KEY}?key=${KEY}#hush"}, "https://host/***"),
    ):
        record = server_json("box", user_server("box", table, "satchel.toml", os.environ))
        assert record["where"] == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[mcp.box]\ncommnd = "x"\n', "did you mean 'command'?"),
        ('[mcp.box]\ncommand = "x"\nargs = ["${NO_SUCH}"]\n', "NO_SUCH"),
        ("[mcp.box\n", "not TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_reported(run, here, text, message):
    (here / "satchel.toml").write_text(text)
    listed = run("mcp", "list", "--trust", "code")
    assert (listed.exit_code, message in listed.stderr) == (0, True)
    missing = run("mcp", "tools", "box", "--trust", "code")
    assert (missing.exit_code, "satchel.toml" in missing.stderr) == (1, True)
    assert message in missing.stderr


def test_servers_of_another_clients_file_that_are_disabled_or_wrong_are_reported(run, here):
    servers = {
        "wrong": {"command": "x", "args": "notalist"},
        "off": {"command": "x", "disabled": True},
        "on": {"command": "x"},
    }
    (here / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    listed = run("mcp", "list", "--trust", "code")
    assert listed.stdout.split()[0] == "on"
    assert "server 'off' is disabled in this file" in listed.stderr
    assert "server 'wrong' has text for 'args', not a list" in listed.stderr
    missing = run("mcp", "tools", "off", "--trust", "code")
    assert (missing.exit_code, "is disabled in this file" in missing.stderr) == (1, True)


def test_a_file_of_the_folder_that_is_not_read_is_pointed_at(run, here):
    assert "satchel mcp list" in run("mcp", "tools", "box").stderr
    (here / "satchel.toml").write_text('[mcp.box]\ncommand = "x"\n')
    assert "'satchel trust' shows" in run("mcp", "tools", "box").stderr


def test_the_skills_of_a_server_are_listed(run, here, config_folder):
    file = {"uri": "skill://pdf/SKILL.md", "digest": f"sha256:{'0' * 64}", "size": 1}
    front = {"name": "pdf", "description": "Split pages."}
    entry = {"uri": file["uri"], "frontmatter": front, "resources": [file]}
    (here / "lies.json").write_text(json.dumps({"skills": [[entry]], "contents": {}}))
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text(
        f"[mcp.docs]\ncommand = {sys.executable!r}\n"
        f"args = [{str(LYING)!r}, {str(here / 'lies.json')!r}]\n"
    )
    result = run("mcp", "skills", "docs")
    assert result.stdout.split() == ["pdf", "ok", "Split", "pages."]
    assert "1 skill" in result.stderr
    (shape,) = json.loads(run("mcp", "skills", "docs", "--json").stdout)
    assert (shape["source"], shape["path"]) == ("mcp:docs", "skill://docs/pdf")


def test_the_tools_of_a_server_are_listed(run, offers):
    offers("a", "b")
    result = run("mcp", "tools", "box")
    assert [line.split()[:3] for line in result.stdout.splitlines()] == [
        ["a", "ok", "Told."],
        ["b", "ok", "Told."],
    ]
    first = json.loads(run("mcp", "tools", "box", "--json").stdout)[0]
    assert (first["name"], first["server_name"], first["state"]) == ("a", "a", "ok")
    assert first["parameters"]["properties"] == {"text": {"type": "string"}}


def test_a_newcomer_is_not_called_in_place_of_the_server_that_served_its_name_first(
    run, here, offers, write_plugin
):
    offers("find")
    assert run("call", "find", "text=a").exit_code == 0
    tools = "from satchel import tool\n@tool\ndef find(text: str) -> str:\n    return 'newcomer'\n"
    write_plugin(here / "more", "other", tools=tools)
    result = run("call", "find", "text=a", "--plugins", "more")
    assert result.exit_code == 0
    assert "newcomer" not in result.stdout
    enabled = run("enable", "other:find", "--plugins", "more")
    assert enabled.stdout.startswith("enabled other:find")
    assert "newcomer" in run("call", "find", "text=a", "--plugins", "more").stdout


def test_a_tool_is_called_by_either_command(run, offers):
    offers("echo", "fail")
    for command in (("mcp", "call", "box"), ("call",)):
        result = run(*command, "echo", "text=3")
        assert (result.exit_code, result.stdout) == (0, '{"text": "3"}\n')
    result = run("mcp", "call", "box", "fail", "--json")
    assert (result.exit_code, json.loads(result.stdout)["text"]) == (1, "no such city")


def test_what_changed_is_held_shown_and_approved(run, offers):
    offers("a", "b")
    run("mcp", "tools", "box")
    offers("b", "c", a="Evil.")
    states = {item["name"]: item["state"] for item in tools(run)}
    assert states == {"a": "held", "b": "ok", "c": "held"}
    refused = run("mcp", "call", "box", "a")
    assert refused.exit_code == 1
    assert "satchel mcp approve box a" in refused.stderr
    result = run("mcp", "approve", "box", "a")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "? (read the above, then give --yes)" in result.stderr
    result = run("mcp", "approve", "box", "a", "--yes")
    assert result.stdout == "approved a\n"
    assert "  description:\n  - Told.\n  + Evil.\n" in result.stderr
    assert json.loads(run("mcp", "approve", "box", "--json", "--yes").stdout) == {
        "server": "box",
        "approved": ["c"],
    }
    assert "no tool has changed since it was approved" in run("mcp", "approve", "box").stderr
    assert {item["state"] for item in tools(run)} == {"ok"}


def test_a_person_at_a_terminal_is_asked(run, offers, monkeypatch):
    offers("a")
    run("mcp", "tools", "box")
    offers("a", "b")
    monkeypatch.setattr("satchel.cli.terminal.Terminal.is_there", True)
    assert run("mcp", "approve", "box", input="n\n").exit_code == 3
    assert [item["state"] for item in tools(run)] == ["ok", "held"]
    result = run("mcp", "approve", "box", input="y\n")
    assert "Approve 1 tool?" in result.stderr
    assert result.stdout == "approved b\n"


def test_a_tool_is_approved_by_the_digest_that_was_shown(run, offers, here):
    offers("a")
    run("mcp", "tools", "box", "--state", here / "state")
    offers(a="Other.")
    output = run("mcp", "tools", "box", "--state", here / "state").stderr
    (command,) = re.findall("satchel (mcp approve box a --digest [0-9a-f]{32})", output)
    offers(a="Evil.")
    result = run(*command.split(), "--state", here / "state")
    assert result.stdout == f"approved a with digest {command[-32:]}\n"
    assert tools(run, "--state", here / "state")[0]["state"] == "held"
    offers(a="Other.")
    assert tools(run, "--state", here / "state")[0]["state"] == "ok"
    assert run("mcp", "approve", "box", "--digest", "x").exit_code == 1


def test_a_server_that_only_a_program_knows_is_approved_by_digest(run, here):
    book = here / "book.json"
    server = StdioServer(command=sys.executable, args=(str(PLAIN), str(book)))
    expected = {"name": "a", "inputSchema": {"type": "object"}}
    for description in ("Told.", "Other."):
        book.write_text(json.dumps([{**expected, "description": description}]))
        with Satchel(settings=Settings(limits=Limits(mcp_connect=60))) as app:
            app.register_mcp_server(server, name="mine")
            drift = app.catalog.tool("a").tool.drift
    result = run("mcp", "approve", "mine", "a", "--digest", drift.digest)
    assert result.stdout == f"approved a with digest {drift.digest}\n"
    with Satchel(settings=Settings(limits=Limits(mcp_connect=60))) as app:
        app.register_mcp_server(server, name="mine")
        assert app.catalog.tool("a").tool.drift is None
    unknown = run("mcp", "approve", "yours", "a", "--digest", drift.digest)
    assert (unknown.exit_code, "--project" in unknown.stderr) == (1, True)


def tools(run, *options):
    return json.loads(run("mcp", "tools", "box", "--json", *options).stdout)


def test_what_is_unknown_or_down_is_one_line(run, offers, here):
    offers("first")
    assert "did you mean box" in run("mcp", "tools", "boxx").stderr
    assert "did you mean first" in run("mcp", "call", "box", "frist").stderr
    assert "did you mean first" in run("mcp", "approve", "box", "frist").stderr
    (here / "book.json").unlink()
    result = run("mcp", "tools", "box")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert "FileNotFoundError" in result.stderr


def test_a_server_of_a_plugin_is_not_started_if_a_file_it_may_use_changed(run, here, write_files):
    write_files(
        here,
        {
            "plugins/demo/.claude-plugin/plugin.json": '{"name": "demo"}',
            "plugins/demo/.mcp.json": json.dumps({"mcpServers": {"box": {"command": "make"}}}),
            "Makefile": "x",
        },
    )
    run("trust", "--code")
    (here / "Makefile").write_text("y")
    refused = run("mcp", "tools", "box", "--project")
    assert (refused.exit_code, refused.stdout) == (1, "")
    why = "MCP server 'box' is not used: Makefile, which its command may use, changed after"
    assert why in refused.stderr
    listed = run("mcp", "list")
    assert (why in listed.stderr, "box  held  make" in listed.stdout) == (True, True)
    for arguments in (("list",), ("list", "tools")):
        stderr = run(*arguments).stderr
        assert (why in stderr, "which list does not start" in stderr) == (True, False)
    assert json.loads(run("mcp", "list", "--json").stdout)[0]["held"] is True
    (here / "Makefile").write_text("x")
    assert run("list").stderr.count("tools of MCP servers, which list does not start: box\n") == 1
