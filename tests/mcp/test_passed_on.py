"""What MCP servers offer and ask is passed on to the clients that are served."""

import asyncio
import json
import sys
import warnings
from pathlib import Path

import mcp_types as types
import pytest
from clients import ERAS, HANDSHAKE, PATIENCE, STATELESS, client_of, code_of
from mcp import MCPDeprecationWarning

from satchel import Limits, Satchel, Settings, StdioServer
from satchel.mcp.mcp_server import SatchelServer
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp_servers import server_supervisor
from satchel.mcp_servers.remote_client import RemoteClient
from satchel.mcp_servers.server_connection import connect

pytestmark = pytest.mark.usefixtures("quick_starts")

GIFTED = str(Path(__file__).parents[1] / "mcp_servers" / "gifted.py")
ALL = ServedSelection(every_group=True)
BOTH_WAYS = pytest.mark.parametrize(
    ("behind", "era"),
    [
        ("auto", HANDSHAKE),
        ("legacy", STATELESS),
        pytest.param("auto", STATELESS, marks=pytest.mark.slow),
        pytest.param("legacy", HANDSHAKE, marks=pytest.mark.slow),
    ],
    indirect=["behind"],
)
"""Each protocol of the server and of the client."""


@pytest.fixture
def behind(request, monkeypatch):
    """The protocol of the server that is connected."""

    def connected(*args, **options):
        return connect(*args, **{**options, "mode": mode})

    mode = getattr(request, "param", "auto")
    monkeypatch.setattr(server_supervisor, "connect", connected)
    return mode


@pytest.fixture
def app(tmp_path):
    settings = Settings(
        limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"), ask_mcp_clients=True
    )
    with Satchel(settings=settings) as satchel_app:
        server = StdioServer(
            command=sys.executable, args=(GIFTED,), env={"WHO": "one", "KEY": "hush-hush"}
        )
        satchel_app.register_mcp_server(server, name="box")
        yield satchel_app


def second(app):
    server = StdioServer(command=sys.executable, args=(GIFTED,), env={"WHO": "two"})
    app.register_mcp_server(server, name="other")


def serving(app, work, era, **callbacks):
    """Serve, and return what a client gets."""

    async def main():
        async with client_of(SatchelServer(app, ALL), era, **callbacks) as (client, notices):
            return await work(client, notices)

    return asyncio.run(main())


@BOTH_WAYS
def test_prompts_and_resources_are_served_on(behind, app, era):
    async def work(client, notices):
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        greeting = await client.get_prompt("greet_them", {"name": "Ada"})
        dialog = await client.get_prompt("dialog")
        uris = [item.uri for item in (await client.list_resources()).resources]
        templates = [
            item.uri_template
            for item in (await client.list_resource_templates()).resource_templates
        ]
        note = (await client.read_resource("note://today")).contents[0]
        picture = (await client.read_resource("note://picture")).contents[0]
        day = (await client.read_resource("day://monday/notes/a/b")).contents[0]
        refused = await code_of(client.get_prompt("greet_them", {}))
        return prompts, greeting, dialog, uris, templates, (note, picture, day), refused

    prompts, greeting, dialog, uris, templates, contents, refused = serving(app, work, era)
    arguments = [(item.name, bool(item.required)) for item in prompts["greet_them"].arguments]
    assert arguments == [("name", True), ("tone", False)]
    assert "greet-them" not in prompts
    assert greeting.messages[0].content.text == 'Greet: {"name": "Ada"} $1'
    assert [message.role for message in dialog.messages] == ["user", "assistant"]
    assert {"note://today", "note://picture"} <= {*uris}
    assert not any("prompt" in uri or "posing" in uri for uri in uris)
    assert "day://{date}/notes/{+path}" in templates
    assert [item.uri for item in contents] == [
        "note://today",
        "note://picture",
        "day://monday/notes/a/b",
    ]
    assert (contents[0].text, contents[1].blob) == ("one note://today", "AAEC")
    assert "name" in refused[1]


def test_names_that_clash_have_the_server_in_front(app):
    second(app)

    async def work(client, notices):
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        note = (await client.read_resource("other+note://today")).contents[0]
        return names, note

    names, note = serving(app, work, HANDSHAKE)
    assert {"dialog", "other_dialog", "greet_them", "other_greet_them"} <= {*names}
    assert (note.uri, note.text) == ("other+note://today", "two note://today")


def test_the_instructions_are_in_the_prompt_of_its_clients(app, tmp_path):
    (tmp_path / "text").write_text("Ask first.")
    server = StdioServer(command=sys.executable, args=(GIFTED, str(tmp_path / "text")))
    app.register_mcp_server(server, name="told")

    async def work(client, notices):
        return client.instructions

    assert "> Ask first." in serving(app, work, HANDSHAKE)


async def pick(ctx, params):
    assert params.message == "Which colour?"
    meta = {name: value for name, value in (params.meta or {}).items() if name.startswith("com.")}
    return types.ElicitResult(
        action="accept", content={"colour": "blue"}, _meta={**meta, "com.example/by": "Ada"}
    )


async def think(ctx, params):
    text = types.TextContent(text="Well.")
    return types.CreateMessageResult(role="assistant", model="m", content=text)


async def look(ctx):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


ABLE = {"elicitation_callback": pick, "sampling_callback": think, "list_roots_callback": look}


def calling(name):
    async def work(client, notices):
        result = await client.call_tool(name)
        return result.content[0].text, notices

    return work


@pytest.mark.parametrize(
    ("behind", "era"),
    [(behind, era) for behind in ("auto", "legacy") for era in ERAS],
    indirect=["behind"],
)
def test_questions_go_to_the_client_that_called(behind, app, era):
    picked, _ = serving(app, calling("pick"), era, **ABLE)
    assert json.loads(picked)["content"] == {"colour": "blue"}
    # The later protocol has none for the questions of a result.
    asked = {"com.example/why": "to paint"} if behind == era == HANDSHAKE else {}
    assert json.loads(picked)["_meta"] == {**asked, "com.example/by": "Ada"}
    thought, _ = serving(app, calling("think"), era, **ABLE)
    assert json.loads(thought)["content"]["text"] == "Well."
    looked, _ = serving(app, calling("look"), era, **ABLE)
    assert json.loads(looked)["roots"][0]["uri"] == "file:///work"


@pytest.fixture
def two_deep(tmp_path, behind):
    """A satchel that has another `satchel serve` as its server, which has one of its own."""
    table = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(GIFTED)}]\n"
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "satchel.toml").write_text(f"[mcp.box]\nactive = true\n{table}")
    folders = dict.fromkeys(("SATCHEL_CONFIG_DIR", "SATCHEL_DATA_DIR", "HOME"), str(inner))
    line = ("-P", "-m", "satchel", "serve", "--group", "all")
    settings = Settings(
        limits=Limits(mcp_startup=PATIENCE),
        state_folder=str(tmp_path / "state"),
        ask_mcp_clients=True,
    )
    with Satchel(settings=settings) as app:
        server = StdioServer(command=sys.executable, args=line, env=folders, cwd=str(inner))
        # Not pinned: tools of the inner server may come after the first list.
        app.register_mcp_server(server, name="mid", pin="off")
        yield app


@BOTH_WAYS
def test_questions_go_through_two_satchels_to_the_client(two_deep, era):
    async def work(client, notices):
        async with asyncio.timeout(PATIENCE):
            while "pick" not in {tool.name for tool in (await client.list_tools()).tools}:
                await asyncio.sleep(0.05)  # the inner server may start late
        texts = [(await client.call_tool(name)).content[0].text for name in ("pick", "think")]
        return [json.loads(text)["content"] for text in texts]

    picked, thought = serving(two_deep, work, era, **ABLE)
    assert (picked, thought["text"]) == ({"colour": "blue"}, "Well.")


@BOTH_WAYS
def test_a_client_that_cannot_answer_is_not_asked(behind, app, era):
    assert json.loads(serving(app, calling("pick"), era)[0]) == {"action": "cancel"}
    assert json.loads(serving(app, calling("look"), era)[0]) == {"roots": []}


@pytest.mark.parametrize("behind", ["auto", "legacy"], indirect=True)
def test_log_lines_go_to_the_client_that_called(behind, app):
    _, notices = serving(app, calling("mutter"), HANDSHAKE)
    assert notices.logged == [("warning", {"said": "hm"})]
    assert notices.metas == [{"com.example/line": {"said": "hm"}}]
    _, notices = serving(app, calling("leak"), HANDSHAKE)
    assert [level for level, _ in notices.logged] == ["error"]
    assert "hush" not in str((notices.logged, notices.metas))


def test_a_client_without_a_handshake_gets_the_log_lines_that_it_wants(behind, app):
    async def work(client, notices):
        await client.call_tool("mutter", meta={types.LOG_LEVEL_META_KEY: "info"})
        await client.call_tool("mutter")
        return notices.logged

    assert serving(app, work, STATELESS) == [("warning", {"said": "hm"})]


def test_no_client_gets_the_question_of_another(app, monkeypatch):
    """In the older protocol a question does not say to which call it belongs."""

    def connected(*args, **options):
        return connect(*args, **{**options, "mode": "legacy"})

    monkeypatch.setattr(server_supervisor, "connect", connected)
    app.remove_mcp_servers("box")
    server = StdioServer(command=sys.executable, args=(GIFTED,))
    app.register_mcp_server(server, name="box")

    async def main():
        begun = asyncio.Event()
        go_on = asyncio.Event()

        async def slow(ctx, params):
            begun.set()
            await go_on.wait()
            return types.ElicitResult(action="accept", content={"colour": "blue"})

        served = SatchelServer(app, ALL)
        async with (
            client_of(served, HANDSHAKE, elicitation_callback=slow) as (one, _),
            client_of(served, HANDSHAKE, elicitation_callback=pick) as (other, _),
        ):
            first = asyncio.create_task(one.call_tool("pick"))
            await begun.wait()
            second = await other.call_tool("pick")
            go_on.set()
            return json.loads((await first).content[0].text), json.loads(second.content[0].text)

    first, second = asyncio.run(main())
    assert first["content"] == {"colour": "blue"}
    assert second == {"action": "cancel"}


@BOTH_WAYS
def test_arguments_are_completed_by_the_server(behind, app, era):
    second(app)

    async def work(client, notices):
        prompt = types.PromptReference(name="other_greet_them")
        day = types.ResourceTemplateReference(uri="other+day://{date}/notes/{+path}")
        typed = {"name": "name", "value": "A"}
        one = await client.complete(prompt, typed, context_arguments={"tone": "dry"})
        other = await client.complete(day, {"name": "date", "value": ""})
        return one.completion, other.completion

    one, other = serving(app, work, era)
    assert one.values == ["greet_them/name/A", "tone"]
    assert (one.total, one.has_more) == (7, True)
    assert other.values == ["day://{date}/notes/{+path}/date/"]


async def followed(client):
    result = await client.call_tool("followed")
    return None if result.is_error else json.loads(result.content[0].text)


async def until_followed(client, expected):
    async with asyncio.timeout(PATIENCE):
        while await followed(client) != expected:
            await asyncio.sleep(0.01)


@BOTH_WAYS
def test_changes_of_a_resource_reach_those_who_subscribed(behind, app, era):
    second(app)

    async def work(client, notices):
        if era == HANDSHAKE:
            await client.session.subscribe_resource("note://today")
            await until_followed(client, ["note://today"])
            await client.call_tool("touch")
            await notices.until("notifications/resources/updated")
            await client.session.unsubscribe_resource("note://today")
        else:
            async with client.listen(resource_subscriptions=["note://today"]) as changes:
                await until_followed(client, ["note://today"])
                await client.call_tool("touch")
                assert (await anext(changes)).uri == "note://today"
        await until_followed(client, [])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        serving(app, work, era)


def test_a_client_that_leaves_is_subscribed_no_more(behind, app):
    async def work(client, notices):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.session.subscribe_resource("note://today")
        await until_followed(client, ["note://today"])

    serving(app, work, HANDSHAKE)
    serving(app, lambda client, notices: until_followed(client, []), HANDSHAKE)


@pytest.mark.parametrize("behind", ["auto", "legacy"], indirect=True)
def test_a_subscription_outlives_the_connection_to_the_server(behind, app):
    async def work(client, notices):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.session.subscribe_resource("note://today")
        await client.call_tool("die")
        # It may have changed while nobody listened.
        await notices.until("notifications/resources/updated")
        await until_followed(client, ["note://today"])

    serving(app, work, HANDSHAKE)


@pytest.mark.parametrize("stateless", [False, True])
def test_a_server_that_does_not_report_changes_is_not_subscribed_to(app, stateless):
    env = {"WHO": "other"} if stateless else {"QUIET": "1", "WHO": "other"}
    server = StdioServer(command=sys.executable, args=(GIFTED,), env=env)
    app.register_mcp_server(RemoteClient(server, stateless=stateless), name="other")

    async def work(client, notices):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            return await code_of(client.session.subscribe_resource("other+note://today"))

    assert "does not report changes" in serving(app, work, HANDSHAKE)[1]
