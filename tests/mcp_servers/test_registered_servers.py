import asyncio
import gc
import json
import os
import queue
import sys
import threading
import time
import weakref

import pytest
from described import described, satchel_of

from satchel import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    RemoteClient,
    Satchel,
    ToolError,
    tool,
)
from satchel.catalog.catalog_changes import Event
from satchel.catalog.catalog_entries import Status
from satchel.mcp_servers import server_connection, server_supervisor, server_transports, tool_lister
from satchel.mcp_servers.call_outcome import decode_response
from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
from satchel.mcp_servers.server_connection import connect
from satchel.mcp_servers.tool_definitions import ToolDefinition, check_definition
from satchel.settings import Limits

ENOUGH = 120
HIDDEN = "\U000e0041\u202e"


@pytest.fixture
def app():
    with satchel_of() as created:
        yield created


class Told:
    """What a satchel tells its listeners, and a way to wait for it."""

    def __init__(self, app):
        self.app, self._changes = app, queue.SimpleQueue()
        app.subscribe(self._changes.put)

    def until(self, event, name):
        while True:
            change = self._changes.get(timeout=ENOUGH)
            if (change.event, change.name) == (event, name):
                return change

    def until_true(self, field):
        while not field():
            self._changes.get(timeout=ENOUGH)


@pytest.fixture
def changes_seen(app):
    return Told(app)


def called(app, name, arguments=None, group=None):
    session = app.session()
    if group:
        session.activate(group)
    return asyncio.run(session.call(name, arguments or {}))


def codes(app):
    return [item.code for item in app.catalog.diagnostics if item.code.startswith("mcp-")]


def test_the_tools_of_a_server_are_a_group_and_are_called_like_any_other(app, plain):
    assert app.register_mcp_server(plain("pid", "echo"), name="box") == "box"
    session = app.session()
    assert "echo" not in str(session.schemas())
    session.activate("box")
    assert "echo" in str(session.schemas())
    assert asyncio.run(session.call("echo", {"a": 1})).text == '{"a": 1}'
    entry = app.catalog.tools["echo"]
    assert (entry.source, entry.group, entry.address) == ("mcp:box", "box", "mcp:box:echo")
    assert app.catalog.plugins["mcp:box"].source == "mcp"


def test_a_server_is_named_after_its_command_or_host(app, plain):
    assert app.register_mcp_server(plain("echo")).startswith("python")
    assert HttpServer("https://user:pass@mcp.example.org/a?key=1").name == "mcp.example.org"
    assert str(HttpServer("https://user:pass@mcp.example.org/a?key=1")) == (
        "https://mcp.example.org/***"
    )


def test_tools_can_be_put_into_groups_that_there_are(app, plain):
    app.create_group("maps")
    app.register_mcp_server(plain("echo"), name="one", group="maps")
    assert app.catalog.groups["maps"].tools == ("echo",)
    assert "one" not in app.catalog.groups
    with pytest.raises(NotFoundError, match="group"):
        app.register_mcp_server(plain("echo"), name="two", group="map")


def test_what_is_no_server_or_no_good_name_is_refused(app, plain):
    with pytest.raises(DefinitionError, match="not an MCP server"):
        app.register_mcp_server("https://example.org")
    with pytest.raises(DefinitionError, match="the name"):
        app.register_mcp_server(plain("echo"), name="no good")
    with pytest.raises(DefinitionError, match="pin must be"):
        app.register_mcp_server(plain("echo"), pin="of")
    with pytest.raises(DefinitionError, match="names of its tools"):
        app.register_mcp_server(plain("echo"), presets={"key": "x"})
    app.register_mcp_server(plain("echo"), name="box")
    with pytest.raises(ConflictError, match="connected already"):
        app.register_mcp_server(plain("echo"), name="box")
    with pytest.raises(ConflictError, match="runs no code"):
        Satchel(run_code=False).register_mcp_server(plain("echo"))


@pytest.mark.parametrize(
    ("option", "why"),
    [
        *(({"timeout": bad}, "timeout must be") for bad in (-1, 0, "x", float("nan"), True)),
        ({"timeout": float("inf")}, "timeout must be"),
        ({"pin": ["hold"]}, "pin must be"),
        ({"enable": 5}, "must be strings"),
        ({"disable": [5]}, "must be strings"),
        ({"presets": 3}, "names of its tools"),
        ({"presets": ["a"]}, "names of its tools"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_at_once(app, option, why):
    with pytest.raises(DefinitionError, match=why):
        app.register_mcp_server(HttpServer("https://a.org"), **option)
    assert not app.catalog.plugins.get("mcp:a.org")


@pytest.mark.parametrize(
    "bad",
    [
        {"command": ""},
        {"command": "x\0"},
        {"args": "--all"},
        {"args": 5},
        {"args": (5,)},
        {"args": ("a\0",)},
        {"cwd": 5},
        {"env": 5},
        {"env": {"A": 5}},
    ],
)
def test_what_cannot_be_started_is_refused(bad):
    with pytest.raises(DefinitionError):
        StdioServer(**{"command": "x", **bad})


def test_arguments_may_come_one_by_one():
    assert StdioServer(command="x", args=["a", "b"]).args == ("a", "b")
    assert StdioServer(command="x", args=(item for item in "ab")).args == ("a", "b")


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "https://", 3, "http://["])
def test_what_cannot_be_connected_to_is_refused(url):
    with pytest.raises(DefinitionError, match="needs a URL"):
        HttpServer(url)


def test_no_text_of_a_server_holds_its_secrets():
    url = "https://user:hush@a.org/mcp?key=hush"
    servers = [
        StdioServer(command="x", args=("--token", "hush"), env={"KEY": "hush"}),
        HttpServer(url, headers={"Authorization": "hush"}),
        SseServer(url, headers={"Authorization": "hush"}),
    ]
    assert "hush" not in f"{servers} {[*map(str, servers)]}"


@pytest.mark.parametrize("kind", [HttpServer, SseServer])
@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer hush\n"}, {"X Key": "hush"}, {"X-Key": "hüsh"}]
)
def test_what_is_no_header_is_refused_before_it_is_sent(kind, headers):
    with pytest.raises(DefinitionError) as refused:
        kind("https://a.org", headers=headers)
    assert "hush" not in str(refused.value)


def test_what_a_server_says_last_is_reported_without_its_secrets(app, tmp_path):
    program = "import os; raise SystemExit(os.environ['GIVEN'] + ' in ' + os.environ['PLACE'])"
    env = {"GIVEN": "hush-hush", "PLACE": str(tmp_path)}
    app.register_mcp_server(
        StdioServer(command=sys.executable, args=("-c", program), env=env), name="box"
    )
    (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-server-down"]
    assert f"last line on stderr: [redacted] in {tmp_path}" in problem.message


def test_a_secret_that_looks_like_a_path_is_none():
    assert StdioServer(command="x", env={"KEY": "/hush/hush="}).secrets == ("/hush/hush=",)


# ---- names, choices, presets ---------------------------------------------------------------


def test_a_name_that_is_taken_gets_that_of_the_server_in_front(app, plain):
    @tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    app.register_tool(echo)
    app.register_mcp_server(
        plain("echo", "load_skill", "Load-Skill", "a.b"), name="one", group="basic"
    )
    app.register_mcp_server(plain("echo", "a.b"), name="two", group="basic")
    names = ["a_b", "echo", "one_Load-Skill", "one_echo", "one_load_skill", "two_a_b", "two_echo"]
    assert [*app.catalog.tools] == names
    assert called(app, "two_echo", {"n": 2}).text == '{"n": 2}'
    one, two = [item.message for item in app.catalog.diagnostics if "renamed" in item.code]
    assert one == (
        "tools of MCP server 'one': 'Load-Skill' is called 'one_Load-Skill' here because every "
        "session has that name; 'a.b' is called 'a_b' here because model APIs reject its name; "
        "'echo' is called 'one_echo' here because the application has that name; 'load_skill' is "
        "called 'one_load_skill' here because every session has that name"
    )
    assert "'a.b' is called 'two_a_b' here because MCP server 'one' has that name" in two
    app.remove_tool("echo")
    assert [*app.catalog.tools] == [*names[:3], *names[4:]]


def test_no_server_gets_the_calls_of_what_another_offers_no_more(app, changes_seen, plain):
    app.register_mcp_server(plain("announce", "pay"), name="one", group="basic")
    app.register_mcp_server(plain("pay", name="other"), name="two", group="basic")
    plain("announce")
    called(app, "announce")
    changes_seen.until(Event.REMOVED, "pay")
    assert [*app.catalog.tools] == ["announce", "two_pay"]
    app.remove_mcp_servers("one")
    assert [*app.catalog.tools] == ["pay"]


def test_only_the_tools_that_are_wanted_are_there(app, plain):
    server = plain("get_a", "get_b", "put_a")
    app.register_mcp_server(server, name="box", enable="tool:get_*", disable=["tool:get_b"])
    assert [*app.catalog.tools] == ["get_a"]


def test_a_preset_is_hidden_and_refused_when_the_model_sends_it(app, plain):
    schema = {
        "type": "object",
        "properties": {"key": {"type": "string"}, "q": {"type": "string"}},
        "required": ["key", "q"],
    }
    tools = [described("find", inputSchema=schema), "echo"]
    presets = {"*": {"key": "hush"}, "echo": {"more": 1}}
    app.register_mcp_server(plain(*tools), name="box", group="basic", presets=presets)
    shown = app.catalog.tools["find"].tool.parameters
    assert (shown["properties"], shown["required"]) == ({"q": {"type": "string"}}, ["q"])
    assert called(app, "find", {"q": "x"}).text == '{"key": "hush", "q": "x"}'
    refused = called(app, "find", {"q": "x", "key": "mine"})
    assert (refused.error_code, "hush" in refused.text) == ("invalid_arguments", False)
    assert called(app, "echo").text == '{"more": 1}'


KEY = {"properties": {"key": {"type": "string"}}}


@pytest.mark.parametrize(
    "keywords",
    [
        {"allOf": [{"not": {}}, {**KEY, "required": ["key"]}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [KEY]}}},
        {"if": {"required": ["key"]}, "then": {}},
        {"dependentRequired": {"q": ["key"]}},
        {"dependentSchemas": {"key": {}}},
    ],
)
@pytest.mark.parametrize("tool", ["*", "find"])
def test_a_tool_in_which_a_preset_cannot_be_hidden_is_left_out(app, plain, keywords, tool):
    tools = [described("find", inputSchema={"type": "object", **keywords}), "echo"]
    app.register_mcp_server(plain(*tools), name="box", presets={tool: {"key": "hush"}})
    assert [*app.catalog.tools] == ["echo"]
    (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
    assert "the preset 'key' cannot be hidden" in problem.message
    assert "hush" not in str(app.catalog.diagnostics)


def test_a_member_of_an_argument_may_have_the_name_of_a_preset(app, plain):
    inside = {"type": "object", "properties": {**KEY["properties"], "of": KEY}, "required": ["key"]}
    app.register_mcp_server(
        plain(described("echo", inputSchema=inside)),
        name="box",
        group="basic",
        presets={"*": {"key": "hush"}},
    )
    assert called(app, "echo", {"of": {"key": "a"}}).text == '{"key": "hush", "of": {"key": "a"}}'


def test_a_preset_for_all_is_refused_from_the_model_by_all(app, plain):
    tools = [described("find", inputSchema={"type": "object", **KEY}), "echo"]
    presets = {"*": {"key": "hush"}}
    app.register_mcp_server(plain(*tools), name="box", group="basic", presets=presets)
    assert called(app, "echo", {"key": "mine"}).error_code == "invalid_arguments"
    assert called(app, "echo").text == "{}"


def test_choices_that_are_for_no_tool_are_reported(app, plain):
    app.register_mcp_server(
        plain(described("echo", inputSchema={"type": "object", **KEY}), "a[b"),
        name="box",
        enable=["ehco", "echo", "a*"],
        disable=["put_*"],
        presets={"eco": {"key": 1}, "*": {"kye": 2}, "echo": {"kee": 3, "key": 4}},
    )
    changes_seen = [
        (i.message, i.fix) for i in app.catalog.diagnostics if i.code == "mcp-choice-unknown"
    ]
    why = "which its tool 'echo' does not have"
    assert changes_seen == [
        (
            "MCP server 'box': enable names 'ehco', which matches none of its tools",
            "did you mean echo?",
        ),
        (
            "MCP server 'box': disable names 'put_*', which matches none of its tools",
            "see 'satchel mcp tools'",
        ),
        (
            "MCP server 'box': presets names 'eco', which matches none of its tools",
            "did you mean echo?",
        ),
        (
            "MCP server 'box': presets name the argument 'kye', which none of its tools has",
            "did you mean key?",
        ),
        (
            f"MCP server 'box': presets name the argument 'kee', {why}",
            "did you mean key?",
        ),
    ]
    app.remove_tool("echo")
    app.remove_tool("a_b")
    assert not app.catalog.tools
    assert codes(app).count("mcp-choice-unknown") == 5


def test_arguments_that_do_not_fit_never_reach_the_server(app, plain):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    app.register_mcp_server(plain(described("echo", inputSchema=schema)), group="basic")
    assert called(app, "echo", {"n": "many"}).error_code == "invalid_arguments"


def test_a_tool_and_a_server_can_be_removed(app, plain):
    app.register_mcp_server(plain("echo", "pid"), name="box")
    app.remove_tool("echo")
    assert [*app.catalog.tools] == ["pid"]
    with pytest.raises(NotFoundError, match="did you mean box"):
        app.remove_mcp_servers("boxx")
    app.remove_mcp_servers("box")
    assert not app.catalog.tools
    assert "mcp:box" not in app.catalog.plugins
    app.register_mcp_server(plain("echo"), name="box")
    assert [*app.catalog.tools] == ["echo"]


def test_a_call_that_runs_ends_although_its_server_is_removed(app, on_stdio, tmp_path):
    app.register_mcp_server(on_stdio("count"), name="box", group="basic")

    async def main():
        session = app.session()
        items = session.stream("count", {"to": 3, "wait": 0.2})
        first = await anext(items)
        app.remove_mcp_servers("box")
        return first, [item async for item in items]

    first, rest = asyncio.run(main())
    assert first.metadata == {"progress": {"progress": 1.0, "total": 3.0, "message": "step 1"}}
    assert rest[-1].text == "counted\nwell"


def test_progress_comes_as_chunks_and_the_result_as_it_is(app, on_stdio):
    app.register_mcp_server(on_stdio("count"), name="box", group="basic")

    async def main():
        return [item async for item in app.session().stream("count", {"to": 3, "wait": 0.1})]

    *chunks, result = asyncio.run(main())
    assert chunks
    assert {item.metadata["progress"]["total"] for item in chunks[:-1]} <= {3.0}
    assert [block.text for block in result.content] == ["counted", "well"]
    assert (result.structured, result.is_error) == ({"n": 3}, False)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["on_stdio", "on_http"])
def test_a_call_that_is_interrupted_or_too_slow_ends_at_the_server(app, way, request, tmp_path):
    created = request.getfixturevalue(way)("wait")
    server = getattr(created, "server", created)
    app.register_mcp_server(server, name="box", group="basic", timeout=5)

    async def main(*, interrupts):
        # One for each call: the first may still hold its end when the second begins.
        os.mkfifo(pipe := tmp_path / f"pipe-{interrupts}")
        session = app.session()
        running = asyncio.create_task(session.call("wait", {"pipe": str(pipe)}, call_id="1"))
        with await asyncio.to_thread(pipe.open) as changes_seen:
            assert await asyncio.to_thread(changes_seen.readline) == "begun\n"
            if interrupts:
                session.interrupt("1")
            assert await asyncio.to_thread(changes_seen.readline) == "cancelled\n"
        return await running

    assert asyncio.run(main(interrupts=True)).is_interrupted
    assert asyncio.run(main(interrupts=False)).error_code == "timeout"


# ---- servers that die, and come back --------------------------------------------------------


def test_a_server_that_dies_is_withdrawn_and_comes_back_by_itself(app, changes_seen, plain):
    app.register_mcp_server(plain("die", "pid"), name="box", group="basic")
    app.register_mcp_server(plain("echo", name="other"), name="other", group="basic")
    before = called(app, "pid").text

    async def main():
        session = app.session()
        async with asyncio.TaskGroup() as group:  # which a cancellation would end
            dies = group.create_task(session.call("die"))
            lives = group.create_task(session.call("echo"))
        return dies.result(), lives.result()

    died, lived = asyncio.run(main())
    assert (died.error_code, lived.text) == ("tool_error", "{}")
    assert "disconnected during the call" in died.text
    changes_seen.until(Event.REMOVED, "die")
    changes_seen.until(Event.ADDED, "die")
    assert called(app, "pid").text not in {before, ""}
    assert "mcp-server-down" not in codes(app)


def test_while_a_server_is_down_its_diagnostic_says_why(app, changes_seen, plain):
    server = plain("die", "echo")
    app.register_mcp_server(server, name="box", group="basic")
    book = server.args[1]
    os.remove(book)
    called(app, "die")
    changes_seen.until_true(lambda: "mcp:box" not in app.catalog.plugins)
    assert not app.catalog.tools
    entry = app.catalog.plugin("mcp:box")
    assert entry.state is Status.REVOKED
    changes_seen.until_true(lambda: "FileNotFoundError" in str(app.catalog.diagnostics))
    with open(book, "w") as file:
        json.dump([described("new")], file)
    changes_seen.until(Event.ADDED, "new")


@pytest.mark.parametrize("how", [("child",), ("child", "apart")])
def test_the_end_of_a_server_is_seen_though_its_child_continues(app, changes_seen, plain, how):
    server = plain("die", "pid", how=how)
    app.register_mcp_server(server, name="box", group="basic", timeout=20)
    before = called(app, "pid").text
    assert "disconnected" in called(app, "die").text
    changes_seen.until(Event.ADDED, "die")
    assert called(app, "pid").text != before


def test_what_a_server_started_ends_with_it(plain, tmp_path):
    os.mkfifo(held := tmp_path / "held")
    ended = queue.SimpleQueue()
    threading.Thread(target=lambda: ended.put(held.read_text()), daemon=True).start()
    with satchel_of() as app:
        app.register_mcp_server(plain("echo", how=("child",), env={"HELD": str(held)}))
        assert ended.empty()
    assert ended.get(timeout=ENOUGH) == "begun\n"


@pytest.mark.slow
def test_a_server_over_http_is_killed_and_started_again(app, changes_seen, on_http):
    process = on_http("pid", "wait")
    app.register_mcp_server(process.server, name="web", group="basic")
    before = called(app, "pid").text
    process.kill()
    changes_seen.until(Event.REMOVED, "pid")
    assert called(app, "pid").error_code == "tool_not_found"
    process.start()
    changes_seen.until(Event.ADDED, "pid")
    assert called(app, "pid").text != before


@pytest.mark.slow
def test_a_server_of_the_older_era_is_killed_and_started_again(
    app, changes_seen, on_http, monkeypatch
):
    monkeypatch.setattr(server_supervisor, "connect", older)
    process = on_http("pid")
    app.register_mcp_server(process.server, name="web", group="basic")
    before = called(app, "pid").text
    process.kill()
    changes_seen.until(Event.REMOVED, "pid")
    process.start()
    changes_seen.until(Event.ADDED, "pid")
    assert called(app, "pid").text != before


def older(*args, **options):
    return connect(*args, **{**options, "mode": "legacy"})


def test_a_server_over_sse_is_carried_killed_and_started_again(app, changes_seen, on_http):
    process = on_http("pid", "count", options=("--sse",))
    app.register_mcp_server(process.server, name="old", group="basic")
    before = called(app, "pid").text
    assert called(app, "count", {"to": 2}).structured == {"n": 2}
    process.kill()
    changes_seen.until(Event.REMOVED, "pid")
    process.start()
    changes_seen.until(Event.ADDED, "pid")
    assert called(app, "pid").text != before


def test_a_session_that_is_forgotten_is_begun_again(app, changes_seen, on_http, monkeypatch):
    monkeypatch.setattr(server_supervisor, "connect", older)
    process = on_http("pid")
    app.register_mcp_server(process.server, name="web", group="basic")
    process.kill()
    process.start()  # perhaps before anybody noticed
    # If it was not noticed, the call itself finds a forgotten session, and is sent once more.
    changes_seen.until_true(lambda: not called(app, "pid").is_error)


def test_a_call_over_http_whose_server_is_killed_is_informed(app, on_http, tmp_path):
    process = on_http("wait")
    app.register_mcp_server(process.server, name="web", group="basic")
    os.mkfifo(pipe := tmp_path / "pipe")

    async def main():
        call = asyncio.create_task(app.session().call("wait", {"pipe": str(pipe)}))
        with await asyncio.to_thread(pipe.open) as changes_seen:
            await asyncio.to_thread(changes_seen.readline)
            process.kill()
            return await call

    result = asyncio.run(main())
    assert (result.is_error, result.error_code) == (True, "tool_error")


def test_a_server_that_is_not_there_yet_is_found_once_it_is(app, changes_seen, on_http):
    process = on_http("pid")
    process.kill()
    app.register_mcp_server(process.server, name="web")
    assert codes(app) == ["mcp-server-down"]
    process.start()
    changes_seen.until(Event.ADDED, "pid")
    assert codes(app) == []


# ---- tools that change ---------------------------------------------------------------------


@pytest.mark.parametrize("way", ["on_stdio", "on_http"])
def test_a_notice_of_a_change_is_heard_in_the_newer_era(app, changes_seen, way, request):
    created = request.getfixturevalue(way)("offer")
    app.register_mcp_server(
        getattr(created, "server", created), name="box", group="basic", pin="off"
    )
    called(app, "offer", {"tools": [described("offer"), described("new")]})
    changes_seen.until(Event.ADDED, "new")


def test_a_notice_of_a_change_is_heard_in_the_older_era(app, changes_seen, plain):
    server = plain("announce")
    app.register_mcp_server(server, name="box", group="basic", pin="off")
    plain("announce", "new")
    called(app, "announce")
    changes_seen.until(Event.ADDED, "new")


def test_a_list_is_asked_for_again_when_it_expires(app, changes_seen, on_stdio):
    app.register_mcp_server(on_stdio("pid", env={"TTL": "100"}), name="box", pin="off")
    on_stdio("pid", "new")
    changes_seen.until(Event.ADDED, "new")


@pytest.mark.slow
def test_a_list_over_http_does_not_hold_for_longer_than_the_limit(
    app, changes_seen, on_http, monkeypatch, tmp_path
):
    monkeypatch.setattr(server_supervisor, "_LIST_INTERVAL", 2)
    monkeypatch.setenv("TTL", str(10**12))
    os.mkfifo(pipe := tmp_path / "listed")
    monkeypatch.setenv("LISTED", str(pipe))
    server = on_http("pid").server
    with os.fdopen(os.open(pipe, os.O_RDWR)) as listed:
        app.register_mcp_server(server, name="web", pin="off")
        for _ in range(2):  # at first, and once its notices are heard
            assert listed.readline() == "0\n"
        on_http("pid", "new")  # the same book
        changes_seen.until(Event.ADDED, "new")


def test_a_tool_that_the_server_does_not_know_any_more_is_asked_for(app, changes_seen, plain):
    app.register_mcp_server(plain("old"), name="box", group="basic", pin="off")
    plain("new")
    assert "Unknown tool" in called(app, "old").text
    changes_seen.until(Event.REMOVED, "old")
    assert "new" in app.catalog.tools


def test_a_changed_schema_is_a_changed_tool(app, changes_seen, plain):
    app.register_mcp_server(plain("announce", "a"), name="box", group="basic", pin="off")
    plain("announce", described("a", description="Other words."))
    called(app, "announce")
    changes_seen.until(Event.CHANGED, "a")
    assert app.catalog.tools["a"].description == "Other words."


# ---- servers that mean no good --------------------------------------------------------------


def test_notices_without_end_harms_nothing_else(app, changes_seen, plain):
    app.register_mcp_server(plain("announce"), name="loud", group="basic", pin="off")
    app.register_mcp_server(plain("echo", name="calm"), name="calm", group="basic", pin="off")

    async def main():
        session = app.session()
        flood = asyncio.create_task(session.call("announce", {"times": 5_000}))
        calm = [(await session.call("echo")).text for _ in range(20)]
        return calm, await flood

    calm, flood = asyncio.run(main())
    assert (set(calm), flood.text) == ({"{}"}, "announced")
    assert len(calm) == 20


def test_whatever_a_server_writes_to_its_errors_it_continues(app, plain, capfd):
    app.register_mcp_server(plain("shout"), name="box", group="basic")
    assert called(app, "shout", {"bytes": 3_000_000}).text == "shouted"
    assert "xxx" not in capfd.readouterr().err


def test_a_line_without_an_end_costs_its_server_alone(changes_seen, plain):
    with satchel_of(mcp_message=200_000, result_text=10**7) as app:
        changes_seen = Told(app)
        app.register_mcp_server(plain("drone", "long"), name="box", group="basic")
        assert len(called(app, "long", {"bytes": 150_000}).text) == 150_000
        assert "disconnected" in called(app, "drone").text
        changes_seen.until(Event.REMOVED, "long")
        changes_seen.until(Event.ADDED, "long")
        assert called(app, "long", {"bytes": 150_000}).text


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--sse",)])
def test_an_answer_over_http_without_measure_costs_its_server_alone(on_http, options):
    with satchel_of(mcp_message=3_000_000, result_text=10**7) as app:
        changes_seen = Told(app)
        process = on_http("long", options=options)
        app.register_mcp_server(process.server, name="web", group="basic")
        assert len(called(app, "long", {"bytes": 2_900_000}).text) == 2_900_000
        assert called(app, "long", {"bytes": 9_000_000}).is_error
        changes_seen.until_true(lambda: "long" in app.catalog.tools)
        assert called(app, "long", {"bytes": 1_000}).text


def test_nonsense_between_the_answers_is_passed_over(app, plain):
    app.register_mcp_server(plain("echo", "nonsense", how=("rude",)), name="box", group="basic")
    assert called(app, "echo").text == "{}"
    assert "an invalid response" in called(app, "nonsense").text


def test_of_an_answer_in_many_blocks_so_many_are_kept(app, plain):
    app.register_mcp_server(plain("blocks"), name="box", group="basic")
    result = called(app, "blocks", {"number": 20_000})
    assert len(result.content) == 1_001
    assert result.content[-1].text == "[left out: 19,000 more blocks]"
    assert len(called(app, "blocks", {"number": 1_000}).content) == 1_000


def held(function, monkeypatch, module):
    """Let a function of a module wait for `go_on` at the tool `slow`; return both events."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args):
        if any(getattr(item, "name", "") == "slow" for item in args):
            begun.set()
            assert go_on.wait(ENOUGH)
        return function(*args)

    monkeypatch.setattr(module, function.__name__, slow)
    return begun, go_on


def test_a_slow_answer_does_not_delay_other_servers(app, plain, monkeypatch):
    begun, go_on = held(decode_response, monkeypatch, server_connection)
    app.register_mcp_server(plain("slow"), name="box", group="basic")
    app.register_mcp_server(plain("echo", name="calm"), name="calm", group="basic")

    async def main():
        session = app.session()
        running = asyncio.create_task(session.call("slow"))
        assert await asyncio.to_thread(begun.wait, ENOUGH)
        calm = await session.call("echo")
        go_on.set()
        return calm.text, (await running).text

    assert asyncio.run(main()) == ("{}", "{}")


def test_a_tool_that_asks_a_person_learns_that_no_one_is_there():
    with pytest.raises(ToolError, match="asks for input from a person"):
        decode_response({"resultType": "input_required"}, ToolDefinition(name="ask"))


def test_a_result_that_would_take_long_to_check_is_refused(app, on_stdio):
    part = {"properties": {"c": {"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}}}
    schema = {"type": "object", "$defs": {"n": part}, "$ref": "#/$defs/n"}
    created = {}
    for _ in range(40):
        created = {"c": created}
    app.register_mcp_server(
        on_stdio(described("give", outputSchema=schema)), name="box", group="basic"
    )
    assert called(app, "give", {"structured": {"c": {}}}).structured == {"c": {}}
    assert called(app, "give", {"structured": created}).error_code == "invalid_result"


def test_words_of_progress_are_cut(app, on_stdio):
    app.register_mcp_server(on_stdio("mutter"), name="box", group="basic")

    async def main():
        return [item async for item in app.session().stream("mutter", {"letters": 100_000})]

    chunk = asyncio.run(main())[0]
    assert len(chunk.metadata["progress"]["message"]) == 500


@pytest.mark.slow
def test_a_server_that_answers_only_the_old_handshake_is_reached_at_the_second_try(
    changes_seen, plain
):
    with satchel_of(mcp_connect=4, mcp_startup=4) as app:
        changes_seen = Told(app)
        app.register_mcp_server(plain("echo", how=("mute",)), name="box")
        changes_seen.until_true(lambda: "echo" in app.catalog.tools)


@pytest.mark.slow
def test_a_stateless_client_begins_as_the_server_understands(plain):
    server = plain("echo", how=("mute",))
    with satchel_of(mcp_connect=4, mcp_startup=4) as app:
        changes_seen = Told(app)
        app.register_mcp_server(RemoteClient(server, stateless=True), name="box", group="basic")
        changes_seen.until_true(lambda: "echo" in app.catalog.tools)
        assert called(app, "echo").text == "{}"


@pytest.mark.slow
def test_a_server_that_does_not_list_its_tools_is_down(plain):
    with satchel_of(mcp_connect=4) as app:
        app.register_mcp_server(plain("echo", how=("hang",)), name="box")
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-server-down"]
        assert "not complete within 4 s (limit mcp_connect)" in problem.message


@pytest.mark.slow
def test_a_process_that_hangs_in_call_after_call_is_started_again(plain):
    with satchel_of(mcp_connect=4, mcp_startup=4) as app:
        changes_seen = Told(app)
        app.register_mcp_server(plain("stick", "pid"), name="box", group="basic", timeout=1)
        changes_seen.until(Event.ADDED, "pid")
        before = called(app, "pid").text
        for _ in range(3):
            assert called(app, "stick").error_code == "timeout"
        changes_seen.until(Event.ADDED, "pid")
        assert called(app, "pid").text not in {before, ""}


def test_pages_without_end_come_to_one(app, plain):
    app.register_mcp_server(plain("echo", how=("pages",)), name="box")
    assert [*app.catalog.tools] == ["echo"]


def test_no_more_tools_than_the_limit_are_taken(plain):
    with satchel_of(mcp_tools=3) as app:
        app.register_mcp_server(plain(*"abcde"), name="box")
        assert [*app.catalog.tools] == ["a", "b", "c"]
        assert codes(app) == ["mcp-too-many-tools"]


def test_tools_that_cannot_be_used_count_and_few_of_them_are_named(plain):
    outside = {"type": "object", "$ref": "http://x/y"}
    bad = [described(f"t{n:03}", inputSchema=outside) for n in range(300)]
    with satchel_of(mcp_tools=100) as app:
        app.register_mcp_server(plain(*bad, "echo"), name="box")
        changes_seen = [i.message for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
        assert codes(app) == ["mcp-tool-invalid"] * 21 + ["mcp-too-many-tools"]
        assert changes_seen[20] == "MCP server 'box': 80 more of its tools are left out"
        assert not app.catalog.tools


def test_a_tool_that_is_only_a_task_is_left_out(app, plain):
    tasks = [described(name, execution={"taskSupport": name}) for name in ("required", "optional")]
    app.register_mcp_server(plain(*tasks), name="box")
    assert [*app.catalog.tools] == ["optional"]
    (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
    assert problem.message == (
        "MCP server 'box': tool 'required' is left out: it can only be called as a task of the "
        "protocol, which Satchel does not do"
    )


def test_all_definitions_together_have_a_limit(plain):
    tools = [described(name, description="x" * 3_000) for name in "abcde"]
    with satchel_of(mcp_listing=11_000) as app:
        app.register_mcp_server(plain(*tools), name="box")
        assert [*app.catalog.tools] == ["a", "b", "c"]
        (problem,) = [i for i in app.catalog.diagnostics if i.code.startswith("mcp-")]
        assert "(limit mcp_listing); the rest is left out" in problem.message


def test_only_what_changed_is_judged_again(app, changes_seen, plain, monkeypatch):
    judged = []

    def counted(raw, limits):
        judged.append(raw.name)
        return check_definition(raw, limits)

    monkeypatch.setattr(tool_lister, "check_definition", counted)
    app.register_mcp_server(plain("announce", "a", "b"), name="box", group="basic", pin="off")
    assert judged == ["announce", "a", "b"]
    plain("announce", "a", described("b", description="Other."), "c")
    called(app, "announce")
    changes_seen.until(Event.ADDED, "c")
    assert judged == ["announce", "a", "b", "b", "c"]


def test_a_slow_check_of_tools_does_not_delay_other_servers(app, plain, monkeypatch):
    begun, go_on = held(check_definition, monkeypatch, tool_lister)
    app.register_mcp_server(plain("echo"), name="calm", group="basic")
    other = threading.Thread(
        target=app.register_mcp_server, args=(plain("slow", name="slow"),), kwargs={"name": "box"}
    )
    other.start()
    assert begun.wait(ENOUGH)
    assert called(app, "echo").text == "{}"
    go_on.set()
    other.join(ENOUGH)
    assert "slow" in app.catalog.tools


def deep(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"in": schema}}
    return schema


HOSTILE = {
    "deep": (deep(60), "mcp_schema_depth"),
    "large": ({"type": "object", "description": "x" * 70_000}, "mcp_schema"),
    "broken": (
        {"type": "object", "properties": {"a": {"type": "odd"}}},
        "not a usable JSON Schema",
    ),
    "outside": ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "another"),
    "nan": ({"type": "object", "properties": {"a": {"default": float("nan")}}}, "not valid JSON"),
    "file": ({"type": "object", "allOf": [{"$ref": "file:///etc/passwd"}]}, "another"),
}


def test_a_tool_that_cannot_be_used_is_left_out_and_said_and_the_rest_serves(app, plain):
    tools = [described(name, inputSchema=schema) for name, (schema, _) in HOSTILE.items()]
    app.register_mcp_server(plain(*tools, "echo", "echo"), name="box", group="basic")
    assert [*app.catalog.tools] == ["echo"]
    problems = [i.message for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
    for name, (_, why) in HOSTILE.items():
        assert any(f"'{name}'" in item and why in item for item in problems), name
    assert any("it is in the list twice" in item for item in problems)


def test_what_is_no_tool_costs_none_of_the_others(app, plain):
    odd = [
        {"name": 5},
        {"name": "bare"},
        described("flat", inputSchema={"type": "string"}),
        described("titled", title=5),
    ]
    app.register_mcp_server(plain("pid", *odd, "echo"), name="box", group="basic")
    assert sorted(app.catalog.tools) == ["echo", "pid"]
    problems = [i.message for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
    assert any("'bare' is left out: inputSchema: Field required" in item for item in problems)
    for name in ("a tool without a name", "'flat'", "'titled'"):
        assert any(f"{name} is left out" in item for item in problems), name


def test_of_very_many_that_are_no_tools_few_are_looked_at(plain):
    with satchel_of(mcp_tools=3) as app:
        app.register_mcp_server(plain("echo", *[{"name": 5}] * 9), name="box", group="basic")
        assert [*app.catalog.tools] == ["echo"]
        assert {*codes(app)} == {"mcp-tool-invalid", "mcp-too-many-tools"}


def test_an_answer_with_a_number_that_no_json_has_is_none():
    nan = {"content": [], "structuredContent": {"a": float("inf")}}
    with pytest.raises(ToolError, match="returned an invalid response"):
        decode_response(nan, ToolDefinition(name="a"))


def test_a_server_that_asks_and_does_not_hear_the_answers_is_let_go(
    app, changes_seen, plain, monkeypatch
):
    monkeypatch.setattr(server_transports, "_PATIENCE", 0.1)
    app.register_mcp_server(plain("echo", how=("asks",)), name="box")
    changes_seen.until_true(
        lambda: "sends requests and does not read the responses" in str(app.catalog.diagnostics)
    )


def test_no_schema_is_fetched_from_anywhere(app, plain):
    import http.server

    asked = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{listener.server_port}/schema.json"
        schema = {"type": "object", "properties": {"a": {"$ref": url}}}
        output = {"type": "object", "properties": {"a": {"$dynamicRef": url}}}
        data = {"type": "object", "properties": {"$ref": {"default": {"$ref": url}}}}
        tools = [
            described("one", inputSchema=schema),
            described("two", outputSchema=output),
            described("three", inputSchema=data),
        ]
        app.register_mcp_server(plain(*tools), name="box", group="basic")
        assert not called(app, "three").is_error
        listener.shutdown()
        thread.join()
    assert ([*app.catalog.tools], asked) == (["three"], [])


def test_invisible_letters_reach_no_model(app, plain):
    hidden = "Adds.\U000e0041\u202e"
    schema = {"type": "object", "properties": {"a": {"description": hidden}}}
    app.register_mcp_server(
        plain(described("echo", description=hidden, inputSchema=schema)), group="basic"
    )
    created = app.catalog.tools["echo"].tool
    assert created.description == "Adds."
    assert created.parameters["properties"]["a"]["description"] == "Adds."


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"a{HIDDEN}": {}}},
        {"properties": {"a": {"enum": [f"a{HIDDEN}"]}}},
        {"properties": {"a": {"default": {"x": [HIDDEN]}}}},
        {"required": [HIDDEN]},
    ],
)
def test_a_schema_with_invisible_letters_that_cannot_go_is_refused(schema):
    for field in ("parameters", "output"):
        with pytest.raises(DefinitionError, match="invisible"):
            check_definition(
                ToolDefinition(name="a", **{field: {"type": "object", **schema}}), Limits()
            )


def test_letters_that_are_not_hidden_are_taken():
    schema = {"properties": {"a": {"default": "\r\n\x1f", "enum": ["\N{GREEK SMALL LETTER PI}"]}}}
    assert (
        check_definition(ToolDefinition(name="a", parameters=schema), Limits()).parameters == schema
    )


# ---- the end -------------------------------------------------------------------------------


def test_servers_are_closed_in_reverse_order_of_opening(plain, tmp_path):
    log_file = tmp_path / "closed"
    with satchel_of() as app:
        for name in ("one", "two", "three"):
            env = {"SAY_CLOSED": str(log_file), "NAME": name}
            app.register_mcp_server(plain("echo", env=env), name=name)
    assert log_file.read_text().split() == ["three", "two", "one"]


@pytest.mark.slow
def test_servers_that_do_not_end_do_not_wait_for_each_other(plain):
    with satchel_of() as app:
        for number in range(5):
            app.register_mcp_server(plain("echo", how=("stays",)), name=f"s{number}")
        began = time.monotonic()
    assert time.monotonic() - began < 12  # each takes four seconds


def test_a_satchel_that_is_let_go_lets_go_of_its_servers(plain, tmp_path):
    app = satchel_of()
    os.mkfifo(closed := tmp_path / "closed")
    env = {"SAY_CLOSED": str(closed), "NAME": "one"}
    app.register_mcp_server(plain("echo", env=env), name="one")
    events = queue.SimpleQueue()
    threading.Thread(target=lambda: events.put(closed.read_text()), daemon=True).start()
    del app
    gc.collect()
    assert events.get(timeout=ENOUGH) == "one\n"


def test_a_session_that_outlives_its_satchel_keeps_its_servers(plain, tmp_path):
    gone = threading.Event()

    def begun():
        app = satchel_of()
        weakref.finalize(app, gone.set)  # the oldest is the last to be called
        app.register_mcp_server(plain("echo", env=env), name="one", group="basic")
        return app.session()

    os.mkfifo(closed := tmp_path / "closed")
    env = {"SAY_CLOSED": str(closed), "NAME": "one"}
    session = begun()
    gc.collect()
    assert gone.wait(ENOUGH)
    assert asyncio.run(session.call("echo", {"a": 1})).text == '{"a": 1}'
    events = queue.SimpleQueue()
    threading.Thread(target=lambda: events.put(closed.read_text()), daemon=True).start()
    del session
    gc.collect()
    assert events.get(timeout=ENOUGH) == "one\n"


def test_what_is_not_closed_is_closed_when_the_interpreter_ends(plain, tmp_path):
    import subprocess

    server = plain("echo", env={"SAY_CLOSED": str(tmp_path / "closed"), "NAME": "one"})
    program = (
        "from satchel import Satchel, StdioServer\n"
        "app = Satchel()\n"
        f"app.register_mcp_server(StdioServer(command={server.command!r}, args={server.args!r}, "
        f"env={dict(server.env)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=ENOUGH, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "closed").read_text() == "one\n"


def test_a_stateless_client_can_be_carried_too(app, plain):
    app.register_mcp_server(RemoteClient(plain("pid"), stateless=True), name="box", group="basic")
    assert called(app, "pid").text != called(app, "pid").text


def test_the_user_may_switch_a_server_off(plain, config_folder):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text('disable = ["mcp:box"]\n')
    with satchel_of() as app:
        app.register_mcp_server(plain("echo"), name="box")
        assert not app.catalog.tools
        assert app.catalog.plugin("mcp:box").state is Status.DISABLED
