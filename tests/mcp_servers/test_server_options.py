"""What a user chooses for one server: how it is started, and how its tools appear."""

import asyncio
import http.server
import json
import os
import queue
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest
from described import PLAIN, described, satchel_of

from satchel import (
    DefinitionError,
    HttpServer,
    RemoteClient,
    Satchel,
    ServerOptions,
    Settings,
    StdioServer,
    ToolContext,
)
from satchel.catalog.catalog_entries import Status
from satchel.diagnostics import Severity
from satchel.mcp_servers.server_declarations import user_server
from satchel.settings import Limits

ENOUGH = 120


@pytest.fixture
def app():
    with satchel_of() as created:
        yield created


def called(app, name, arguments=None, **options):
    session = app.session()
    for group in app.catalog.groups:
        session.activate(group)
    return asyncio.run(session.call(name, arguments or {}, **options))


def until(app, condition):
    """Return what is true at last, looking again after each change."""
    changes = queue.SimpleQueue()
    undo = app.subscribe(changes.put)
    try:
        while not (result := condition()):
            changes.get(timeout=ENOUGH)
        return result
    finally:
        undo()


def down(app):
    return [item.message for item in app.catalog.diagnostics if item.code == "mcp-server-down"]


FORECAST = described(
    "forecast",
    inputSchema={
        "type": "object",
        "properties": {"city": {"type": "string"}, "key": {"type": "string"}},
        "required": ["city", "key"],
    },
)


# ---- names, descriptions, arguments ---------------------------------------------------------


def test_tools_their_arguments_and_descriptions_can_be_renamed(app, plain):
    options = ServerOptions(
        prefix="w_",
        rename={"forecast": "weather"},
        rename_arguments={"forecast": {"city": "place"}},
        descriptions={"forecast": "Say what the sky does."},
    )
    app.register_mcp_server(
        plain(FORECAST, "echo"),
        name="box",
        options=options,
        presets={"forecast": {"key": "k"}},
    )
    assert [*app.catalog.tools] == ["w_echo", "weather"]
    entry = app.catalog.tools["weather"]
    assert entry.description == "Say what the sky does."
    assert entry.tool.parameters["properties"].keys() == {"place"}
    assert entry.tool.parameters["required"] == ["place"]
    assert json.loads(called(app, "weather", {"place": "Oslo"}).text) == {
        "city": "Oslo",
        "key": "k",
    }
    refused = called(app, "weather", {"city": "Oslo"})
    assert refused.error_code == "invalid_arguments"
    assert "city: is called place" in refused.text
    both = called(app, "weather", {"place": "Oslo", "city": "Rome"})
    assert both.error_code == "invalid_arguments"
    assert not [item for item in app.catalog.diagnostics if item.code.startswith("mcp-")]


def test_a_preset_that_is_renamed_is_refused_by_both_names(app, plain):
    app.register_mcp_server(
        plain(FORECAST),
        name="box",
        options=ServerOptions(rename_arguments={"forecast": {"key": "secret"}}),
        presets={"forecast": {"key": "k"}},
    )
    for name in ("key", "secret"):
        result = called(app, "forecast", {"city": "Oslo", name: "mine"})
        assert result.error_code == "invalid_arguments"
    assert not called(app, "forecast", {"city": "Oslo"}).is_error


def test_a_renamed_tool_is_pinned_as_its_server_defines_it(tmp_path, plain):
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path))
    for prefix in ("a_", "b_"):
        with Satchel(settings=settings) as app:
            app.register_mcp_server(plain("echo"), name="x", options=ServerOptions(prefix=prefix))
            assert app.catalog.tools[f"{prefix}echo"].state is Status.OK


def test_a_name_in_the_options_that_matches_nothing_is_reported(app, plain):
    options = ServerOptions(
        rename={"forcast": "weather"},
        descriptions={"other": "x"},
        rename_arguments={"forecast": {"town": "place"}},
    )
    app.register_mcp_server(plain(FORECAST), name="box", options=options)
    messages = [i for i in app.catalog.diagnostics if i.code == "mcp-choice-unknown"]
    theirs = "its tool 'forecast' does not have"
    assert [item.message for item in messages] == [
        "MCP server 'box': rename names 'forcast', which matches none of its tools",
        "MCP server 'box': descriptions names 'other', which matches none of its tools",
        "MCP server 'box': rename-arguments name the argument 'town', which " + theirs,
    ]
    assert messages[0].fix == "did you mean forecast?"


@pytest.mark.parametrize("name", ["group:delete", "skill:delete", "plugin:delete"])
def test_a_pattern_of_another_kind_is_the_tool_of_that_very_name(app, plain, name):
    app.register_mcp_server(plain("delete", name), name="box", disable=[name, "group:none"])
    assert [*app.catalog.tools] == ["delete"]
    messages = [i.message for i in app.catalog.diagnostics if i.code == "mcp-choice-unknown"]
    none = "disable names 'group:none', which matches none of its tools"
    assert messages == [f"MCP server 'box': {none}"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"a": "b"}, "two of its arguments the same name"),
        ({"c": "d"}, "cannot be renamed"),
    ],
)
def test_an_argument_that_cannot_be_renamed_costs_its_tool(app, plain, names, why):
    schema = {
        "type": "object",
        "properties": {"a": {}, "b": {}, "c": {}},
        "anyOf": [{"required": ["c"]}, {}],
    }
    app.register_mcp_server(
        plain(described("odd", inputSchema=schema), "echo"),
        name="box",
        options=ServerOptions(rename_arguments={"odd": names}),
    )
    assert [*app.catalog.tools] == ["echo"]
    (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
    assert why in problem.message


def test_the_group_of_a_server_can_be_active_from_the_start(app, plain):
    app.register_mcp_server(plain("echo"), name="box", options=ServerOptions(active=True))
    assert asyncio.run(app.session().call("echo", {"a": 1})).text == '{"a": 1}'


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"startup_timeout": 0}, "startup-timeout must be"),
        ({"startup_timeout": "5"}, "startup-timeout must be"),
        ({"max_calls": 0}, "max-calls must be"),
        ({"max_calls": 1.5}, "max-calls must be"),
        ({"active": "yes"}, "active must be"),
        ({"protocol": "2024"}, "protocol must be"),
        ({"lazy": 1}, "lazy must be"),
        ({"prefix": 1}, "prefix must be"),
        ({"rename": {"a": 1}}, "rename must map"),
        ({"rename_arguments": {"a": "b"}}, "rename-arguments must map"),
        ({"rename_arguments": {"a": {"b": "c d"}}}, "at most 64 ASCII letters"),
        ({"rename_arguments": {"a": {"b": ""}}}, "at most 64 ASCII letters"),
        ({"descriptions": []}, "descriptions must map"),
        ({"roots": [1]}, "roots must be"),
        ({"forward_headers": ["a b"]}, "cannot be forwarded"),
        ({"forward_headers": ["Mcp-Session-Id"]}, "cannot be forwarded"),
        ({"forward_headers": "Host"}, "cannot be forwarded"),
    ],
)
def test_an_option_that_cannot_be_is_refused(headers, why):
    with pytest.raises(DefinitionError, match=why):
        ServerOptions(**headers)


def test_a_table_has_a_key_for_each_option(tmp_path):
    table = {
        "url": "https://example.org/mcp",
        "active": False,
        "startup-timeout": 90,
        "protocol": "legacy",
        "lazy": True,
        "prefix": "x_",
        "rename": {"a": "b"},
        "rename-arguments": {"a": {"c": "d"}},
        "descriptions": {"a": "A."},
        "roots": ["work", "/srv"],
        "max-calls": 2,
        "forward-headers": ["X-User"],
    }
    assert table.keys() - {"url"} == {item.name.replace("_", "-") for item in fields(ServerOptions)}
    created = user_server("box", table, str(tmp_path / "satchel.toml"), {}).options
    assert created == ServerOptions(
        active=False,
        startup_timeout=90,
        protocol="legacy",
        lazy=True,
        prefix="x_",
        rename={"a": "b"},
        rename_arguments={"a": {"c": "d"}},
        descriptions={"a": "A."},
        roots=(str(tmp_path / "work"), "/srv"),
        max_calls=2,
        forward_headers=("X-User",),
    )
    with pytest.raises(DefinitionError, match="forward-headers must be a list"):
        user_server("box", {**table, "forward-headers": 3}, "", {})


_ASKING = """
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

class Place(BaseModel):
    city: str

server = MCPServer("asking")

@server.tool()
async def roam(ctx: Context) -> str:
    answer = await ctx.elicit("Where?", Place)
    roots = (await ctx.session.list_roots()).roots
    return f"{answer.data.city} {[str(root.uri) for root in roots]}"

server.run()
"""


@pytest.mark.parametrize("stateless", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_server_of_the_sdk_may_ask_in_the_middle_of_a_call(tmp_path, stateless):
    def on_elicit(server, params):
        return {"action": "accept", "content": {"city": "Oslo"}}

    (tmp_path / "asking.py").write_text(_ASKING)
    server = StdioServer(command=sys.executable, args=(str(tmp_path / "asking.py"),))
    client = RemoteClient(server, stateless=stateless)
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"))
    with Satchel(settings=settings, on_elicit=on_elicit) as app:
        for name, options in (
            ("new", ServerOptions(roots=("/srv",))),
            ("old", ServerOptions(roots=("/srv",), protocol="legacy", prefix="old_")),
        ):
            app.register_mcp_server(client, name=name, options=options)
        # From this it learns that the server needs the older protocol.
        assert "call it again" in called(app, "roam").text
        assert called(app, "roam").text == "Oslo ['file:///srv']"
        assert called(app, "old_roam").text == "Oslo ['file:///srv']"


_SLOW = """
@server.tool()
def slow(pipe: str) -> str:
    with open(pipe) as told:
        return told.read()

server.run()
"""


@pytest.mark.slow
def test_a_question_ends_no_other_call(tmp_path):
    def on_elicit(server, params):
        return {"action": "accept", "content": {"city": "Oslo"}}

    (tmp_path / "asking.py").write_text(_ASKING.replace("server.run()", _SLOW))
    os.mkfifo(pipe := tmp_path / "pipe")
    server = StdioServer(command=sys.executable, args=(str(tmp_path / "asking.py"),))
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"))

    async def main(session):
        slow = asyncio.create_task(session.call("slow", {"pipe": str(pipe)}))
        with await asyncio.to_thread(pipe.open, "w") as messages:
            assert "call it again" in (await session.call("roam")).text
            assert (await session.call("roam")).text == "Oslo ['file:///srv']"
            messages.write("done")
        return (await slow).text

    with Satchel(settings=settings, on_elicit=on_elicit) as app:
        options = ServerOptions(roots=("/srv",))
        app.register_mcp_server(server, name="new", group="basic", options=options)
        assert asyncio.run(main(app.session())) == "done"


def test_a_question_without_an_answer_is_refused_politely(tmp_path):
    (tmp_path / "asking.py").write_text(_ASKING)
    server = StdioServer(command=sys.executable, args=(str(tmp_path / "asking.py"),))
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"))
    with Satchel(settings=settings, on_sample=lambda server, params: {}) as app:
        app.register_mcp_server(server, name="new", group="basic")
        for _ in range(2):
            text = called(app, "roam").text
            assert "asks what cannot be answered here; continue without it" in text


# ---- calls ----------------------------------------------------------------------------------


def test_no_more_calls_run_at_once_than_may(app, tmp_path, on_stdio):
    pipes = [tmp_path / name for name in "ab"]
    for pipe in pipes:
        os.mkfifo(pipe)
    app.register_mcp_server(
        on_stdio("wait", "pid"), name="box", group="basic", options=ServerOptions(max_calls=1)
    )

    async def main():
        session = app.session()
        first = asyncio.create_task(session.call("wait", {"pipe": str(pipes[0])}, call_id="1"))
        with await asyncio.to_thread(pipes[0].open) as messages:
            assert await asyncio.to_thread(messages.readline) == "begun\n"
            second = asyncio.create_task(session.call("pid"))
            done, _ = await asyncio.wait([second], timeout=0.5)
            assert not done
            session.interrupt("1")
            await first
        return await second

    assert int(asyncio.run(main()).text)


def test_only_the_headers_that_are_named_are_sent_on(monkeypatch):
    options = ServerOptions(forward_headers=("X-User", "X-Team"))
    headers = {"x-user": "ada", "authorization": "Bearer hush", "x-team": "a\nb"}
    assert options.forwarded(headers) == {"X-User": "ada"}
    assert ServerOptions().forwarded(headers) == {}
    assert options.forwarded(None) == {}


def test_headers_of_the_caller_reach_a_server_over_http(app):
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heard.append((asked["method"], self.headers.get("X-User")))
            results = {
                "initialize": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "h", "version": "0"},
                },
                "tools/list": {"tools": [described("echo")]},
                "tools/call": {"content": [{"type": "text", "text": "said"}]},
            }
            answer = {"jsonrpc": "2.0", "id": asked.get("id")}
            if asked["method"] in results:
                answer["result"] = results[asked["method"]]
            else:
                answer["error"] = {"code": -32601, "message": "Method not found"}
            body = json.dumps(answer).encode()
            self.send_response(200 if "id" in asked else 202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body) if "id" in asked else 0))
            self.end_headers()
            if "id" in asked:
                self.wfile.write(body)

        def do_GET(self):
            self.send_error(405)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            app.register_mcp_server(
                HttpServer(f"http://127.0.0.1:{served.server_port}/mcp"),
                name="web",
                options=ServerOptions(forward_headers=("X-User",)),
            )
            context = ToolContext(metadata={"headers": {"x-user": "ada", "cookie": "hush"}})
            assert called(app, "echo", context=context).text == "said"
            assert called(app, "echo").text == "said"
        finally:
            app.close()
            served.shutdown()
    calls = [user for method, user in heard if method == "tools/call"]
    assert calls == ["ada", None]
    assert {user for method, user in heard if method != "tools/call"} == {None}


def test_a_server_may_ask_for_the_roots_that_it_was_given(app, tmp_path):
    script = tmp_path / "rooted.py"
    script.write_text(
        "import json, sys\n"
        "def say(**m): print(json.dumps({'jsonrpc': '2.0', **m}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'initialize':\n"
        "        caps = m['params']['capabilities']\n"
        "        say(id=m['id'], result={'protocolVersion': '2025-06-18',"
        " 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'r', 'version': '0'}})\n"
        "    elif m.get('method') == 'tools/list':\n"
        "        say(id=m['id'], result={'tools': [{'name': 'roots',"
        " 'inputSchema': {'type': 'object'}}]})\n"
        "    elif m.get('method') == 'tools/call':\n"
        "        asked = m['id']\n"
        "        say(id='r', method='roots/list')\n"
        "    elif m.get('id') == 'r':\n"
        "        text = json.dumps([caps.get('roots'), m['result']['roots']])\n"
        "        say(id=asked, result={'content': [{'type': 'text', 'text': text}]})\n"
        "    elif 'id' in m:\n"
        "        say(id=m['id'], error={'code': -32601, 'message': 'no'})\n"
    )
    server = StdioServer(command=sys.executable, args=(str(script),))
    app.register_mcp_server(server, name="r", options=ServerOptions(roots=(str(tmp_path),)))
    capability, roots = json.loads(called(app, "roots").text)
    assert capability is not None
    assert [root["uri"] for root in roots] == [tmp_path.as_uri()]


# ---- start-up -------------------------------------------------------------------------------


def starting(code, book, how=()):
    """Return a server that runs some code before it speaks."""
    text = f"import sys, time, os\n{code}\nimport runpy\nsys.argv = sys.argv[1:]\n"
    text += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return StdioServer(command=sys.executable, args=("-c", text, PLAIN, book, *how))


def test_a_program_that_starts_slowly_is_waited_for(book):
    server = starting("time.sleep(2)", book("echo"))
    with satchel_of(mcp_connect=0.5) as app:
        app.register_mcp_server(server, name="slow")
        assert [*app.catalog.tools] == ["echo"]


@pytest.mark.slow
def test_the_time_for_a_start_grows_until_it_is_enough(tmp_path, book):
    starts = tmp_path / "starts"
    server = starting(f"open({str(starts)!r}, 'a').write('x'); time.sleep(3)", book("echo"))
    with satchel_of() as app:
        app.register_mcp_server(server, name="slow", options=ServerOptions(startup_timeout=1))
        if problems := down(app):
            assert "did not respond within 1 s (startup-timeout)" in problems[0]
        until(app, lambda: "echo" in app.catalog.tools)
    assert 2 <= len(starts.read_text()) <= 5


def test_what_a_program_printed_before_it_spoke_is_quoted(book):
    code = "print('npm notice: a new version is there', flush=True); sys.exit(1)"
    with satchel_of() as app:
        app.register_mcp_server(starting(code, book("echo")), name="npm")
        assert any(
            "on stdout it printed, in place of MCP messages: npm notice: a new version" in message
            for message in down(app)
        )


def test_what_a_program_prints_before_it_speaks_does_no_harm(book):
    with satchel_of() as app:
        app.register_mcp_server(starting("print('hello')", book("echo")), name="x")
        assert [*app.catalog.tools] == ["echo"]


@pytest.fixture
def pinned(tmp_path, plain):
    """Return a server whose tools were pinned once, and the settings of that."""
    starts = tmp_path / "starts"
    book = plain("echo", "pid").args[1]
    code = (
        f"open({str(starts)!r}, 'a').write('x'); os.path.exists({book + '.broken'!r}) and exit(1)"
    )
    server = starting(code, book)
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"))
    with Satchel(settings=settings) as app:
        app.register_mcp_server(server, name="box")
    starts.write_text("")
    return server, settings, starts


def test_a_lazy_server_is_started_by_its_first_call(pinned):
    server, settings, starts = pinned
    with Satchel(settings=settings) as app:
        app.register_mcp_server(server, name="box", options=ServerOptions(lazy=True))
        assert [*app.catalog.tools] == ["echo", "pid"]
        assert app.catalog.tools["echo"].description == "echo."
        assert starts.read_text() == ""
        assert called(app, "echo", {"a": 1}).text == '{"a": 1}'
        assert called(app, "pid").text == called(app, "pid").text
        assert starts.read_text() == "x"


def test_a_lazy_server_without_pins_is_started_at_once(plain):
    with satchel_of() as app:
        app.register_mcp_server(
            plain("echo"), name="new", pin="off", options=ServerOptions(lazy=True)
        )
        assert [*app.catalog.tools] == ["echo"]


def test_a_lazy_server_whose_command_changed_is_held(pinned):
    server, settings, starts = pinned
    other = replace(server, args=(*server.args, "new"))
    with Satchel(settings=settings) as app:
        app.register_mcp_server(other, name="box", options=ServerOptions(lazy=True))
        assert {entry.state for entry in app.catalog.all_tools} == {Status.HELD}
        assert starts.read_text() == ""


def test_a_lazy_server_whose_tools_changed_is_not_called_past_its_pins(pinned):
    server, settings, starts = pinned
    with Satchel(settings=settings) as app:
        app.register_mcp_server(server, name="box", options=ServerOptions(lazy=True))
        session = app.session()
        session.activate("box")
        step = session.step()
        tools = [described("echo", description="Evil."), described("pid")]
        Path(server.args[-1]).write_text(json.dumps(tools))
        for _ in range(2):  # the step stays one of the older listing
            result = asyncio.run(step.call("echo", {"a": 1}))
            assert result.is_error
            assert "waits for approval. Ask the user to run: satchel mcp approve box echo" in (
                result.text
            )
        assert asyncio.run(step.call("pid", {})).text.isdigit()
        assert starts.read_text() == "x"
        until(app, lambda: app.catalog.tool("echo").state is Status.HELD)
        app.approve_mcp_tools("box", "echo")
        assert asyncio.run(step.call("echo", {"a": 1})).text == '{"a": 1}'


def test_a_lazy_server_that_cannot_start_says_so_to_its_first_caller(pinned):
    server, settings, _ = pinned
    with Satchel(settings=settings) as app:
        app.register_mcp_server(server, name="box", options=ServerOptions(lazy=True))
        Path(f"{server.args[-1]}.broken").touch()
        result = called(app, "echo")
        assert result.is_error
        assert "restarting" in result.text


# ---- a server that is down ------------------------------------------------------------------


def test_a_server_that_is_starting_is_not_down(tmp_path):
    (tmp_path / "satchel.toml").write_text('[mcp.box]\ncommand = "sleep"\nargs = ["600"]\n')
    settings = Settings(config_folder=str(tmp_path), state_folder=str(tmp_path))
    with Satchel(settings=settings) as app:
        (problem,) = app.catalog.plugin("mcp:box").diagnostics
        assert (problem.code, problem.severity) == ("mcp-server-starting", Severity.INFO)
        assert "is starting" in app.catalog.groups["box"].description


def test_a_model_that_calls_a_tool_of_a_starting_server_hears_so(tmp_path, plain):
    book, slow = plain("echo").args[1], tmp_path / "slow"
    server = starting(f"os.path.exists({str(slow)!r}) and time.sleep(600)", book)
    table = f"command = {json.dumps(server.command)}\nargs = {json.dumps(server.args)}\n"
    (tmp_path / "satchel.toml").write_text(f"[mcp.box]\n{table}")
    settings = Settings(config_folder=str(tmp_path), state_folder=str(tmp_path))
    with Satchel(settings=settings) as app:
        assert app.wait_for_mcp_servers(60)
        assert [*app.catalog.tools] == ["echo"]
    slow.touch()
    with Satchel(settings=settings) as app:
        app.wait_for_mcp_servers(0.01)
        assert app.catalog.tools == {}
        assert asyncio.run(app.session().call("echo", {})).text == (
            "Tool 'echo' cannot be used now: server 'box' is starting. Try again later, or "
            "continue without it."
        )


def test_a_server_that_is_down_keeps_its_group_and_the_names_of_its_tools(pinned, plain):
    server, settings, _ = pinned
    dead = replace(server, command="no-such-command")
    with Satchel(settings=settings) as app:
        app.register_mcp_server(plain("echos"), name="other", group="basic")
        app.register_mcp_server(dead, name="box")
        group = app.catalog.groups["box"]
        assert group.tools == ()
        assert "is restarting" in group.description
        session = app.session()
        session.activate("box")
        assert "box" in session.active_groups
        result = asyncio.run(session.call("echo", {}))
        assert result.error_code == "tool_not_found"
        assert result.text == (
            "Tool 'echo' cannot be used now: server 'box' is restarting. Try again later, or "
            "continue without it."
        )
        assert app.catalog.plugin("mcp:box").state is Status.REVOKED
        assert "cannot be started" in app.catalog.plugin("mcp:box").diagnostics[0].message


def test_the_tools_of_a_server_that_is_down_are_listed_as_revoked(pinned):
    server, settings, _ = pinned
    with Satchel(settings=settings) as app:
        app.register_mcp_server(replace(server, command="no-such-command"), name="box")
        assert {(tool.name, tool.state) for tool in app.catalog.all_tools} == {
            ("echo", Status.REVOKED),
            ("pid", Status.REVOKED),
        }
        assert app.catalog.tools == {}
