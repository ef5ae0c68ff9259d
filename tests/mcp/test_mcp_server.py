"""A satchel as a server, asked by the official client in both eras of the protocol."""

import asyncio

import mcp_types as types
import pytest
from clients import ERAS, HANDSHAKE, PATIENCE, STATELESS, client_of, code_of, names_of, run

from satchel import (
    Audio,
    Image,
    Resource,
    ResourceLink,
    Satchel,
    Settings,
    Text,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
)
from satchel.mcp import notifier, pagination, view_cache
from satchel.mcp.mcp_server import SatchelServer, StartWait
from satchel.mcp.served_selection import ServedSelection
from satchel.settings import Limits
from satchel.shared import Memo

every_era = pytest.mark.parametrize("era", ERAS)
PIXEL = b"\x89PNG\r\n\x1a\n\0"


@tool
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    if times < 0:
        raise ToolError("times must not be negative")
    return text * times


@tool(annotations={"readOnlyHint": True, "title": "Weather"})
def forecast(city: str) -> dict[str, int]:
    """Weather for the next days."""
    return {city: 3}


@tool
def route(start: str, end: str) -> str:
    """Find the way between two places."""
    return f"{start} to {end}"


def maps(**choice):
    """Return a server of `echo` in `basic` and `route` in `maps`, which is off."""
    app = Satchel()
    app.create_group("maps", "Geocoding and routes.", notes="Geocode first.")
    app.register_tool(echo)
    app.register_tool(route, group="maps")
    return SatchelServer(app, ServedSelection(**choice)), app


def serving(*tools, **options):
    app = Satchel(**options)
    for created in tools:
        app.register_tool(created)
    return SatchelServer(app)


def asking(server, question, era=HANDSHAKE, **options):
    """Connect, and return what `question(client, told)` comes to."""

    async def ask():
        async with client_of(server, era, **options) as (client, notices):
            return await question(client, notices)

    return run(ask())


# ---- tools ----------------------------------------------------------------------------------


@every_era
def test_tools_are_listed_with_schemas_annotations_and_their_group(era):
    def listed(client, _):
        return client.list_tools()

    (created,) = asking(serving(forecast), listed, era).tools
    assert (created.name, created.title, created.description) == (
        "forecast",
        "Weather",
        "Weather for the next days.",
    )
    assert created.input_schema["required"] == ["city"]
    assert created.output_schema["type"] == "object"
    assert created.annotations.read_only_hint is True
    assert created.meta["dev.satchel/group"] == "basic"


@every_era
def test_a_call_answers_with_content_and_structured(era):
    result = asking(serving(forecast), lambda c, _: c.call_tool("forecast", {"city": "Oslo"}), era)
    assert result.structured_content == {"Oslo": 3}
    assert result.content[0].text == '{"Oslo":3}'
    assert not result.is_error


@every_era
def test_every_kind_of_block_arrives_as_it_is(era):
    blocks = (
        Text("words"),
        Image(PIXEL),
        Audio(b"RIFF"),
        Resource("test://doc", "text", "text/plain"),
        Resource("test://blob", b"bytes"),
        ResourceLink(uri="test://link", name="link"),
    )

    @tool
    def mixed() -> ToolResult:
        """Answer with everything."""
        return ToolResult(content=blocks)

    result = asking(serving(mixed), lambda c, _: c.call_tool("mixed", {}), era)
    sent = [
        item.model_dump(by_alias=True, mode="json", exclude_none=True) for item in result.content
    ]
    assert sent == [block.to_dict() for block in blocks]


@every_era
@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"text": "a", "times": -1}, "times must not be negative"), ({"txt": "a"}, "text")],
)
def test_what_goes_wrong_in_a_tool_is_reported_to_the_model(era, arguments, message):
    result = asking(serving(echo), lambda c, _: c.call_tool("echo", arguments), era)
    assert result.is_error
    assert message in result.content[0].text


@every_era
def test_an_unknown_tool_is_an_error_of_the_protocol_that_names_near_ones(era):
    code, text = asking(serving(echo), lambda c, _: code_of(c.call_tool("ecko", {})), era)
    assert code == types.INVALID_PARAMS
    assert text == "There is no tool 'ecko'. Did you mean echo?"


def test_what_is_no_object_is_structured_only_in_the_later_protocol():
    @tool
    def numbers() -> list[int]:
        """Count."""
        return [1, 2]

    def call(client, _):
        return client.call_tool("numbers", {})

    assert asking(serving(numbers), call, HANDSHAKE).structured_content is None
    assert asking(serving(numbers), call, STATELESS).structured_content == [1, 2]


class Odd(Tool):
    """A tool whose author wrote something that the protocol does not take."""

    description = "Odd."

    def __init__(self, name, **odd):
        self.name, self.parameters = name, {"type": "object", "properties": {}}
        vars(self).update(odd)

    async def execute(self):
        return "fine"


@every_era
def test_a_tool_that_does_not_fit_costs_no_other(era, caplog):
    server = serving(
        echo,
        Odd("hints", annotations={"readOnlyHint": "perhaps"}),
        Odd(
            "number", parameters={"type": "object", "properties": {"a": {"default": float("nan")}}}
        ),
    )

    async def ask(client, _):
        result = await client.call_tool("hints", {})
        return {created.name: created for created in (await client.list_tools()).tools}, result

    tools, result = asking(server, ask, era)
    assert set(tools) == {"echo", "hints"}
    assert tools["hints"].annotations is None
    assert result.content[0].text == "fine"
    assert "hints is served without annotations" in caplog.text
    assert "number is not served" in caplog.text


@every_era
def test_all_pages_of_the_tools_are_served(era, monkeypatch):
    monkeypatch.setattr(pagination, "PAGE", 2)
    app = Satchel()
    names = [f"tool_{number}" for number in range(5)]
    for name in names:
        app.register_tool(echo, name=name)

    async def pages(client, _):
        item, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            item.append([created.name for created in page.tools])
            if (cursor := page.next_cursor) is None:
                return item

    assert asking(SatchelServer(app), pages, era) == [names[:2], names[2:4], names[4:]]


@every_era
def test_a_page_of_a_list_that_has_changed_is_refused(era, monkeypatch):
    monkeypatch.setattr(pagination, "PAGE", 1)
    server, app = maps(every_group=True)

    async def half_read(client, _):
        first = await client.list_tools()
        app.register_tool(echo, name="newer")
        return await code_of(client.list_tools(cursor=first.next_cursor))

    code, text = asking(server, half_read, era)
    assert code == types.INVALID_PARAMS
    assert "beginning" in text


@every_era
def test_a_list_is_made_once_for_many_clients(era, monkeypatch):
    server, _ = maps()
    asking(server, lambda c, _: c.list_tools(), era)
    monkeypatch.setattr(pagination.PagedList, "page", lambda *_: pytest.fail("it was made again"))
    assert "echo" in asking(server, lambda c, _: names_of(c), era)


@every_era
@pytest.mark.parametrize("params", [{"cursor": 5}, {"_meta": {"progressToken": []}}])
def test_malformed_requests_are_refused_also_when_the_answer_is_remembered(era, params):
    server, _ = maps()

    async def ask(client, _):
        await client.list_tools()
        request = types.Request[dict, str](method="tools/list", params=params)
        return await code_of(client.session.send_request(request, types.ListToolsResult))

    assert asking(server, ask, era)[0] == types.INVALID_PARAMS


# ---- while a call runs ----------------------------------------------------------------------


@tool
async def counting(upto: int):
    """Count, a part at a time."""
    for number in range(upto):
        yield f"{number} "


def test_the_parts_of_a_stream_are_sent_as_progress_and_are_the_result():
    async def call(client, notices):
        result = await client.call_tool("counting", {"upto": 3}, progress_callback=notices.step)
        return result, notices.progress

    result, progress = asking(serving(counting), call)
    assert result.content[0].text == "0 1 2 "
    assert progress == [(1, None, "0 "), (2, None, "1 "), (3, None, "2 ")]


@tool
async def working(context: ToolContext) -> str:
    """Tell how far it is, and what it does."""
    client = context.get_metadata("mcp")
    await client.log("debug", "details")
    await client.log("info", {"step": 1}, logger="work")
    for done in (0, 50, 50, 20, 100):
        await client.progress(done, 100, f"{done} of 100")
    await client.log("error", "oh")
    return client.protocol_version


@every_era
def test_a_tool_sends_its_client_progress_which_only_grows(era):
    async def call(client, notices):
        await client.call_tool("working", {}, progress_callback=notices.step)
        return notices.progress

    steps = asking(serving(working), call, era)
    assert steps == [(done, 100, f"{done} of 100") for done in (0, 50, 100)]


def test_a_client_with_a_handshake_gets_log_lines_of_the_level_that_it_set():
    async def call(client, notices):
        await client.call_tool("working", {})
        first, notices.logged = notices.logged, []
        params = types.SetLevelRequestParams(level="error")
        await client.session.send_request(types.SetLevelRequest(params=params), types.EmptyResult)
        await client.call_tool("working", {})
        return first, notices.logged

    first, second = asking(serving(working), call)
    assert first == [("info", {"step": 1}), ("error", "oh")]
    assert second == [("error", "oh")]


@pytest.mark.parametrize(("level", "lines"), [(None, 0), ("debug", 3), ("error", 1)])
def test_a_request_that_stands_alone_gets_the_log_lines_that_it_asks_for(level, lines):
    async def call(client, notices):
        await client.call_tool("working", {})
        return notices.logged

    assert len(asking(serving(working), call, STATELESS, log_level=level)) == lines


@every_era
def test_a_call_that_its_client_gives_up_is_cancelled(era):
    async def ask():
        begun, ended = asyncio.Event(), asyncio.Event()

        @tool
        async def endless() -> str:
            """Never end."""
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with client_of(serving(endless), era) as (client, _):
            call = asyncio.create_task(client.call_tool("endless", {}))
            await begun.wait()
            call.cancel()
            await ended.wait()

    run(ask())


@every_era
def test_several_calls_of_one_client_run_at_once(era):
    async def ask():
        both = asyncio.Barrier(2)

        @tool
        async def meet() -> str:
            """Wait for another one."""
            await both.wait()
            return "met"

        async with client_of(serving(meet), era) as (client, _):
            calls = [client.call_tool("meet", {}) for _ in range(2)]
            return [result.content[0].text for result in await asyncio.gather(*calls)]

    assert run(ask()) == ["met", "met"]


# ---- what lasts -----------------------------------------------------------------------------


@tool
async def remember(context: ToolContext) -> int:
    """Count the calls."""
    context.state["calls"] = context.state.get("calls", 0) + 1
    return context.state["calls"]


async def thrice(client, _):
    return [(await client.call_tool("remember", {})).content[0].text for _ in range(3)]


def test_a_connection_has_a_session_of_its_own():
    server = serving(remember)
    assert asking(server, thrice) == ["1", "2", "3"]
    assert asking(server, thrice) == ["1", "2", "3"]


def test_a_request_that_stands_alone_remembers_nothing():
    assert asking(serving(remember), thrice, STATELESS) == ["1", "1", "1"]


def test_where_there_is_one_client_its_session_lasts_whatever_it_speaks():
    app = Satchel()
    app.register_tool(remember)
    assert asking(SatchelServer(app, single=True), thrice, STATELESS) == ["1", "2", "3"]


@tool(background=True)
async def long_work() -> str:
    """Take a while."""
    await asyncio.sleep(0)
    return "done at last"


def test_a_connection_can_look_after_its_background_tasks():
    async def ask(client, _):
        begun = await client.call_tool("long_work", {})
        task = begun.structured_content["task_id"]
        return await names_of(client), await client.call_tool("wait_task", {"task_id": task})

    names, result = asking(serving(long_work), ask)
    assert "wait_task" in names
    assert result.content[-1].text == "done at last"


def test_where_nothing_lasts_background_work_is_waited_for():
    async def ask(client, _):
        return await names_of(client), await client.call_tool("long_work", {})

    names, result = asking(serving(long_work), ask, STATELESS)
    assert names == ["long_work"]
    assert result.content[-1].text == "done at last"


def test_what_is_waited_for_is_the_result_itself():
    @tool(background=True)
    async def measured() -> dict[str, int]:
        """Measure."""
        return {"length": 3}

    result = asking(serving(measured), lambda c, _: c.call_tool("measured", {}), STATELESS)
    assert result.structured_content == {"length": 3}
    assert [block.text for block in result.content] == ['{"length":3}']


@every_era
def test_a_result_that_speaks_of_a_task_of_another_client_is_a_result(era):
    @tool
    def file_job() -> ToolResult:
        """File a job elsewhere."""
        return ToolResult(content=(Text("filed"),), metadata={"task_id": "job-77"})

    result = asking(serving(file_job), lambda c, _: c.call_tool("file_job", {}), era)
    assert (result.is_error, result.content[0].text) == (False, "filed")


def test_a_tool_of_the_host_is_not_taken_for_what_waits():
    @tool
    def wait_task(task_id: str, timeout: float = 1) -> str:
        """Wait for a task of the host."""
        return "it is not asked"

    server = serving(long_work, wait_task)
    result = asking(server, lambda c, _: c.call_tool("long_work", {}), STATELESS)
    assert result.content[-1].text == "done at last"


class Endless:
    """A background tool that never ends by itself."""

    def __init__(self):
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

        @tool(background=True)
        async def endless() -> str:
            """Never end."""
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()

        self.tool = endless


def test_where_nothing_lasts_giving_a_call_up_ends_its_background_work():
    async def ask():
        work = Endless()
        async with client_of(serving(work.tool), STATELESS) as (client, _):
            call = asyncio.create_task(client.call_tool("endless", {}))
            await work.begun.wait()
            call.cancel()
            await work.ended.wait()

    run(ask())


@pytest.mark.parametrize(("era", "single"), [(HANDSHAKE, False), (STATELESS, True)])
def test_background_work_ends_with_the_connection(era, single):
    async def ask():
        work, app = Endless(), Satchel()
        app.register_tool(work.tool)
        async with client_of(SatchelServer(app, single=single), era) as (client, _):
            await client.call_tool("endless", {})
            await work.begun.wait()
        async with asyncio.timeout(PATIENCE):
            await work.ended.wait()

    run(ask())


# ---- groups ---------------------------------------------------------------------------------


def test_a_client_with_a_connection_switches_groups_and_is_notified_of_its_new_tools():
    server, _ = maps()

    async def ask(client, notices):
        before = await names_of(client)
        answer = await client.call_tool("reset_equipped_tools", {"maps": True})
        await notices.until("notifications/tools/list_changed")
        return before, await names_of(client), answer.content[0].text

    before, after, text = asking(server, ask)
    assert before == ["echo", "reset_equipped_tools"]
    assert after == ["echo", "route", "reset_equipped_tools"]
    assert "Geocode first." in text


def test_what_one_client_activates_is_not_on_for_another():
    server, _ = maps()

    async def ask():
        async with client_of(server) as (one, _), client_of(server) as (other, _):
            await one.call_tool("reset_equipped_tools", {"maps": True})
            return await names_of(one), await names_of(other)

    one, other = run(ask())
    assert "route" in one
    assert "route" not in other


def test_a_tool_of_a_group_that_is_off_is_explained_where_it_can_be_activated():
    server, _ = maps()
    arguments = {"start": "a", "end": "b"}
    result = asking(server, lambda c, _: c.call_tool("route", arguments))
    assert result.is_error
    assert "reset_equipped_tools" in result.content[0].text
    code, _ = asking(server, lambda c, _: code_of(c.call_tool("route", arguments)), STATELESS)
    assert code == types.INVALID_PARAMS


def test_lists_do_not_differ_by_connection_in_the_later_protocol():
    server, _ = maps()
    asking(server, lambda c, _: c.call_tool("reset_equipped_tools", {"maps": True}))
    assert asking(server, lambda c, _: names_of(c), STATELESS) == ["echo"]


@every_era
def test_a_group_that_the_host_chose_is_on(era):
    server, _ = maps(groups=frozenset({"maps"}))
    assert "route" in asking(server, lambda c, _: names_of(c), era)
    arguments = {"start": "a", "end": "b"}
    result = asking(server, lambda c, _: c.call_tool("route", arguments), era)
    assert result.content[0].text == "a to b"


@every_era
def test_a_tool_that_the_host_disabled_is_neither_listed_nor_called(era):
    server, _ = maps(every_group=True, disable=("route",))
    arguments = {"start": "a", "end": "b"}

    async def ask(client, _):
        return await names_of(client), await code_of(client.call_tool("route", arguments))

    names, (code, text) = asking(server, ask, era)
    assert "route" not in names
    assert code == types.INVALID_PARAMS
    assert text == "There is no tool 'route'."


def test_a_tool_that_the_host_disabled_is_announced_by_no_one(tmp_path):
    app = Satchel()
    app.create_group("maps")  # is described by the names of its tools
    for number in range(40):
        app.register_tool(route, name=f"route_{number}", group="maps")
    app.register_tool(route, name="secret_route", group="maps")

    async def ask(client, _):
        result = await client.call_tool("search_tools", {"words": "secret route"})
        wrong = await code_of(client.call_tool("route_99", {}))
        on = await client.call_tool("reset_equipped_tools", {"maps": True})
        return result, wrong, on, await client.list_tools()

    messages = [
        str(answer)
        for answer in asking(SatchelServer(app, ServedSelection(disable=("secret_*",))), ask)
    ]
    assert "route_1" in messages[0]
    assert "route_1" in messages[3]
    assert not any("secret" in text for text in messages)


@every_era
def test_where_groups_are_fixed_no_one_can_switch_another_on(era, tmp_path, write_skill):
    app = Satchel()
    app.create_group("maps", "Geocoding and routes.")
    app.create_group("web", "Reading pages.")
    app.register_tool(echo, group="web")
    app.register_tool(route, group="maps")
    text = "---\nname: sly\ndescription: D.\ngroups: maps\n---\nBody\n"
    app.register_skill(write_skill(tmp_path, "sly", text=text))
    server = SatchelServer(app, ServedSelection().only(["web"]), single=True)

    async def ask(client, _):
        names = await names_of(client)
        await client.call_tool("load_skill", {"name": "sly"})
        await client.get_prompt("sly")
        refused = await code_of(client.call_tool("route", {"start": "a", "end": "b"}))
        return names, await names_of(client), refused[0]

    assert asking(server, ask, era) == (["echo", "load_skill"],) * 2 + (types.INVALID_PARAMS,)


def test_where_no_one_can_switch_what_visible_skills_ask_for_is_on(tmp_path, write_skill):
    server, app = maps()
    text = "---\nname: trip\ndescription: D.\ngroups: maps\n---\nBody\n"
    app.register_skill(write_skill(tmp_path, "trip", text=text))
    assert "route" in asking(server, lambda c, _: names_of(c), STATELESS)
    assert "route" not in asking(server, lambda c, _: names_of(c), HANDSHAKE)


# ---- changes --------------------------------------------------------------------------------

LISTS = ("tools", "prompts", "resources")


def test_an_idle_client_is_notified_of_what_changed_and_of_nothing_else(tmp_path, write_skill):
    server, app = maps()

    async def ask(client, notices):
        await client.list_tools()
        app.register_tool(echo, name="newer")
        await notices.until("notifications/tools/list_changed")
        first, notices.messages = notices.messages, []
        app.register_skill(write_skill(tmp_path, "pdf"))
        await notices.until("notifications/resources/list_changed")
        return first, notices.messages, await names_of(client)

    first, second, names = asking(server, ask)
    assert first == ["notifications/tools/list_changed"]
    assert second == [f"notifications/{kind}/list_changed" for kind in LISTS]
    assert {"newer", "load_skill"} <= set(names)


def test_a_client_that_does_not_read_for_a_while_is_notified_once_it_does(monkeypatch):
    server, app = maps()
    sent, sending = [], notifier.send

    async def send(event, talk):
        sent.append(event)
        if len(sent) == 1:
            await asyncio.Event().wait()
        await sending(event, talk)

    monkeypatch.setattr(notifier, "send", send)
    monkeypatch.setattr(notifier, "_PATIENCE", 0.05)

    async def ask(client, notices):
        await client.list_tools()
        app.register_tool(echo, name="newer")
        await notices.until("notifications/tools/list_changed")
        return notices.messages

    assert asking(server, ask) == ["notifications/tools/list_changed"]


def test_a_client_that_listens_is_notified_on_its_stream(tmp_path, write_skill):
    server, app = maps()

    async def ask(client, _):
        kinds = dict.fromkeys((f"{kind}_list_changed" for kind in LISTS), True)
        async with client.listen(**kinds) as stream:
            app.register_tool(echo, name="newer")
            first = await anext(stream)
            app.register_skill(write_skill(tmp_path, "pdf"))
            rest = [await anext(stream) for _ in range(3)]
        return [type(event).__name__ for event in (first, *rest)]

    assert asking(server, ask, STATELESS) == [
        "ToolsListChanged",
        "ToolsListChanged",
        "PromptsListChanged",
        "ResourcesListChanged",
    ]


def test_what_is_shown_is_kept_for_a_few_choices_of_groups_only():
    app = Satchel()
    for number in range(5):
        app.create_group(f"group_{number}", "Some.")
        app.register_tool(echo, name=f"echo_{number}", group=f"group_{number}")
    server = SatchelServer(app)

    async def switch(client, _):
        for chosen in range(32):
            on = {f"group_{number}": bool(chosen >> number & 1) for number in range(5)}
            await client.call_tool("reset_equipped_tools", on)
            assert len(await names_of(client)) == sum(on.values()) + 1
        return len(app.catalog_cache.get_or_make(server._views._key, Memo)._values)

    assert 0 < asking(server, switch) <= view_cache._MOST


@every_era
def test_a_list_that_a_change_did_not_touch_is_not_made_again(era, skilled, monkeypatch):
    server = SatchelServer(skilled)

    async def ask(client, notices):
        before = await client.list_resources()
        skilled.register_tool(echo, name="newer")
        await client.list_tools()
        monkeypatch.setattr(
            pagination.PagedList, "page", lambda *_: pytest.fail("it was made again")
        )
        return before, await client.list_resources()

    before, after = asking(server, ask, era)
    assert before.resources == after.resources


def test_a_change_of_what_no_one_is_shown_is_not_reported():
    server, app = maps()

    async def ask(client, notices):
        await client.list_tools()
        app.register_tool(echo, name="hidden", group="maps")
        app.register_tool(echo, name="newer")
        await notices.until("notifications/tools/list_changed")
        await client.list_tools()
        return notices.messages

    assert asking(server, ask) == ["notifications/tools/list_changed"]


def subscription(client, request, uri):
    """Ask as clients of the time did; the official one warns of its own method by now."""
    return client.session.send_request(request(params={"uri": uri}), types.EmptyResult)


@every_era
def test_only_the_resource_that_was_asked_for_is_reported(era, tmp_path, write_skill):
    folder = write_skill(tmp_path, "pdf")
    (folder / "a.md").write_text("a")
    (folder / "b.md").write_text("b")
    app = Satchel(skills=[tmp_path])
    updated = "notifications/resources/updated"

    def edit():
        (folder / "a.md").write_text("other a")
        (folder / "b.md").write_text("other b")
        app.refresh()

    async def ask(client, notices):
        if era == STATELESS:
            async with client.listen(resource_subscriptions=["skill://pdf/b.md"]) as stream:
                edit()
                return [(await anext(stream)).uri]
        await subscription(client, types.SubscribeRequest, "skill://pdf/b.md")
        edit()
        await notices.until(updated)
        await subscription(client, types.UnsubscribeRequest, "skill://pdf/b.md")
        count = notices.messages.count(updated)
        return ["skill://pdf/b.md"] * count

    assert asking(SatchelServer(app), ask, era) == ["skill://pdf/b.md"]


def test_clients_that_left_are_forgotten():
    server, _ = maps()
    asking(server, lambda c, _: c.list_tools())
    assert not len(server.notifier)


# ---- prompts, resources, skills -------------------------------------------------------------


@pytest.fixture
def skilled(tmp_path, write_skill):
    folder = write_skill(tmp_path / "skills", "pdf", body="Read the pages.\n")
    (folder / "references").mkdir()
    (folder / "references" / "guide.md").write_text("The guide.")
    hidden = "---\nname: deploy\ndescription: D.\ndisable-model-invocation: true\n---\nShip it.\n"
    write_skill(tmp_path / "skills", "deploy", text=hidden)
    app = Satchel(skills=[tmp_path / "skills"])
    app.create_group("maps", "Maps.", notes="Geocode first.", active=True)
    return app


@every_era
@pytest.mark.parametrize("chosen", [{"enable": ("tool:route",)}, {"disable": ("pdf",)}])
def test_patterns_of_tools_hide_no_skill(era, skilled, chosen):
    skilled.register_tool(route, name="route")

    async def ask(client, _):
        return (await client.list_resources()).resources, (await client.list_tools()).tools

    resources, tools = asking(SatchelServer(skilled, ServedSelection(**chosen)), ask, era)
    assert "skill://pdf/SKILL.md" in [str(item.uri) for item in resources]
    assert "route" in [tool.name for tool in tools]


@every_era
def test_there_is_a_prompt_for_the_skills_the_notes_and_each_skill(era, skilled):
    async def ask(client, _):
        prompts = (await client.list_prompts()).prompts
        texts = {
            item.name: (await client.get_prompt(item.name)).messages[0].content.text
            for item in prompts
        }
        return prompts, texts

    prompts, texts = asking(SatchelServer(skilled), ask, era)
    assert [item.name for item in prompts] == ["skill_prompt", "activated_notes", "deploy", "pdf"]
    assert "<available_skills>" in texts["skill_prompt"]
    assert "deploy" not in texts["skill_prompt"]
    assert "Geocode first." in texts["activated_notes"]
    assert "Read the pages." in texts["pdf"]
    assert "Ship it." in texts["deploy"]


@every_era
def test_what_a_user_writes_behind_a_skill_follows_its_text(era, skilled):
    def ask(client, _):
        return client.get_prompt("pdf", {"arguments": "merge a and b"})

    messages = asking(SatchelServer(skilled), ask, era).messages
    assert [item.role for item in messages] == ["user", "user"]
    assert messages[1].content.text == "merge a and b"


@every_era
def test_an_unknown_prompt_is_refused(era, skilled):
    code, _ = asking(SatchelServer(skilled), lambda c, _: code_of(c.get_prompt("nothing")), era)
    assert code == types.INVALID_PARAMS


@every_era
def test_skills_are_resources_also_those_for_the_user_alone(era, skilled):
    async def ask(client, _):
        listed = (await client.list_resources()).resources
        read = await client.read_resource("skill://pdf/references/guide.md")
        templates = (await client.list_resource_templates()).resource_templates
        return listed, read.contents[0], templates

    listed, content, templates = asking(SatchelServer(skilled), ask, era)
    assert [item.uri for item in listed] == ["skill://deploy/SKILL.md", "skill://pdf/SKILL.md"]
    assert (listed[1].name, listed[1].mime_type) == ("pdf", "text/markdown")
    assert (content.text, content.mime_type) == ("The guide.", "text/markdown")
    assert [item.uri_template for item in templates] == ["skill://{name}/{+path}"]


@pytest.mark.parametrize(
    ("era", "error_code"), [(HANDSHAKE, -32002), (STATELESS, types.INVALID_PARAMS)]
)
@pytest.mark.parametrize(
    "uri",
    ["skill://pdf/no.md", "skill://pdf/../deploy/SKILL.md", "skill://pdf", "file:///etc/hosts"],
)
def test_a_resource_that_there_is_not_is_refused(era, error_code, uri, skilled):
    code, _ = asking(SatchelServer(skilled), lambda c, _: code_of(c.read_resource(uri)), era)
    assert code == error_code


def extension(client, method, **params):
    request = types.Request[dict, str](method=method, params=params)
    return client.session.send_request(request, Answer)


class Answer(types.Result, extra="allow"):
    """Whatever an extension answers."""


@every_era
def test_the_extension_lists_the_skills_for_models_with_all_their_files(era, skilled):
    answer = asking(
        SatchelServer(skilled), lambda c, _: extension(c, "skills/list"), era
    ).model_extra
    assert [entry["uri"] for entry in answer["skills"]] == ["skill://pdf/SKILL.md"]
    files = [file["uri"] for file in answer["skills"][0]["resources"]]
    assert files == ["skill://pdf/SKILL.md", "skill://pdf/references/guide.md"]
    assert (answer["ttlMs"], answer["cacheScope"]) == (0, "private")
    assert answer["resultType"] == "complete"


@every_era
def test_the_extension_gets_one_skill_also_one_that_is_not_listed(era, skilled):
    async def ask(client, _):
        results = [
            (await extension(client, "skills/get", uri=f"skill://{name}/SKILL.md")).model_extra
            for name in ("pdf", "deploy")
        ]
        return results, await code_of(extension(client, "skills/get", uri="skill://pdf"))

    results, (code, _) = asking(SatchelServer(skilled), ask, era)
    assert [item["skill"]["frontmatter"]["name"] for item in results] == ["pdf", "deploy"]
    assert results[1]["skill"]["frontmatter"]["disable-model-invocation"] is True
    assert code == types.INVALID_PARAMS


@every_era
def test_the_extension_reads_folders(era, skilled):
    method = "resources/directory/read"

    async def ask(client, _):
        results = [
            (await extension(client, method, uri=uri)).model_extra["resources"]
            for uri in ("skill://pdf", "skill://pdf/references")
        ]
        return results, [
            (await code_of(extension(client, method, uri=uri)))[0]
            for uri in ("skill://pdf/SKILL.md", "skill://other", "skill://pdf/no")
        ]

    results, codes = asking(SatchelServer(skilled), ask, era)
    assert [[item["name"] for item in items] for items in results] == [
        ["SKILL.md", "references"],
        ["guide.md"],
    ]
    assert codes == [types.INVALID_PARAMS] * 3


def test_the_extension_is_declared(skilled):
    async def ask(client, _):
        return client.server_capabilities.extensions

    declared = asking(SatchelServer(skilled), ask, STATELESS)
    assert declared == {"io.modelcontextprotocol/skills": {"directoryRead": True}}


@every_era
def test_lists_are_announced_as_changing(era, skilled):
    async def ask(client, _):
        return client.server_capabilities

    capabilities = asking(SatchelServer(skilled), ask, era)
    assert all(
        [
            capabilities.tools.list_changed,
            capabilities.prompts.list_changed,
            capabilities.resources.list_changed,
        ]
    )


@every_era
def test_a_model_loads_a_skill_and_reads_its_files_as_often_as_it_likes(era, skilled):
    async def ask(client, _):
        texts = []
        for _ in range(2):
            loaded = await client.call_tool("load_skill", {"name": "pdf"})
            arguments = {"skill": "pdf", "path": "references/guide.md"}
            read = await client.call_tool("read_skill_file", arguments)
            texts.append((loaded.content[0].text, read.content[0].text))
        return texts

    first, second = asking(SatchelServer(skilled), ask, era)
    assert first == second
    assert "Read the pages." in first[0]
    assert first[1] == "The guide."


@every_era
@pytest.mark.parametrize("local", [True, False])
def test_only_clients_of_this_machine_hear_where_skills_lie(era, local, skilled, tmp_path):
    async def ask(client, _):
        loaded = await client.call_tool("load_skill", {"name": "pdf"})
        prompt = await client.get_prompt("pdf")
        listed = await client.get_prompt("skill_prompt")
        texts = [loaded.content[0].text, prompt.messages[0].content.text]
        return texts, [listed.messages[0].content.text, client.instructions]

    texts, listings = asking(SatchelServer(skilled, local=local), ask, era)
    assert [str(tmp_path) in text for text in texts] == [local, local]
    assert ["skill://pdf" in text for text in texts] == [not local, not local]
    assert not any(str(tmp_path) in text for text in listings)


@every_era
@pytest.mark.parametrize("local", [True, False])
def test_without_a_tool_that_loads_skills_other_clients_hear_an_address_that_they_can_read(
    era, local, skilled, tmp_path
):
    async def ask(client, _):
        listed = await client.get_prompt("skill_prompt")
        return [listed.messages[0].content.text, client.instructions]

    server = SatchelServer(skilled, ServedSelection(skill_tools=False), local=local)
    for text in asking(server, ask, era):
        assert (str(tmp_path) in text) is local
        assert ("<location>skill://pdf/SKILL.md</location>" in text) is not local


def test_what_a_search_answers_names_no_folder_of_this_machine(tmp_path, write_skill):
    app = Satchel(skills=[tmp_path / "a & b"])
    app.create_group("maps", "Maps.")
    for number in range(40):  # so many that there is a search
        app.register_skill(write_skill(tmp_path / "of maps", f"maps-{number}"), group="maps")
    app.register_skill(write_skill(tmp_path / "a & b", "pdf"))

    async def search(client, _):
        return (await client.call_tool("search_skills", {"words": "pdf"})).content[0].text

    text = asking(SatchelServer(app, ServedSelection(skill_tools=False), local=False), search)
    assert "read skill://pdf/SKILL.md" in text
    assert str(tmp_path) not in text


@every_era
def test_the_instructions_are_what_a_system_prompt_would_be(era, skilled):
    async def ask(client, _):
        return client.instructions

    text = asking(SatchelServer(skilled), ask, era)
    assert "<available_skills>" in text
    assert "Geocode first." in text


def test_the_instructions_name_the_groups_that_are_on_in_that_protocol(tmp_path, write_skill):
    _, app = maps()
    text = "---\nname: trip\ndescription: D.\ngroups: maps\n---\nBody\n"
    app.register_skill(write_skill(tmp_path, "trip", text=text))
    server = SatchelServer(app)

    async def ask(client, _):
        return client.instructions

    assert "Geocode first." in asking(server, ask, STATELESS)
    assert "Geocode first." not in asking(server, ask, HANDSHAKE)


@every_era
def test_parts_of_an_address_are_completed(era, skilled):
    reference = types.ResourceTemplateReference(uri="skill://{name}/{+path}")

    async def ask(client, _):
        name = await client.complete(reference, {"name": "name", "value": "p"})
        path = await client.complete(
            reference, {"name": "path", "value": "ref"}, context_arguments={"name": "pdf"}
        )
        return name.completion.values, path.completion.values

    assert asking(SatchelServer(skilled), ask, era) == (["pdf"], ["references/guide.md"])


@every_era
@pytest.mark.parametrize(
    "reference",
    [types.PromptReference(name="none"), types.ResourceTemplateReference(uri="none://{a}")],
)
def test_what_is_not_there_is_not_completed(era, skilled, reference):
    async def ask(client, _):
        return await code_of(client.complete(reference, {"name": "a", "value": ""}))

    code, _ = asking(SatchelServer(skilled), ask, era)
    assert code == types.INVALID_PARAMS


@every_era
def test_what_has_no_words_is_completed_by_none(era, skilled):
    async def ask(client, _):
        reference = types.PromptReference(name="pdf")
        return (await client.complete(reference, {"name": "arguments", "value": ""})).completion

    assert asking(SatchelServer(skilled), ask, era).values == []


# ---- what plugins offer beside tools and skills ---------------------------------------------


OFFERS = '''
from satchel import Image, McpPrompt, McpResource, Resource, Text, ToolContext, hookimpl, tool

def review(code: str, language: str = "python") -> str:
    """Review some code.

    Args:
        code: What to review.
        language: What it is written in.
    """
    return f"Review this {language}: {code}"

def shown() -> list:
    """Look at this."""
    return [Text("Look:"), Image(b"png")]

async def hello(context: ToolContext) -> str:
    """Say hello to whoever it is."""
    question = {"method": "elicitation/create", "params": {
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }}
    answers = await context.get_metadata("mcp").ask({"who": question})
    return f"Hello {answers['who']['content']['name']}"

def motto() -> str:
    """What we say."""
    return "Simple first."

def day(when: str) -> dict:
    """What was on a day."""
    return {"day": when}

def blob() -> Resource:
    """Some bytes."""
    return Resource("notes://blob", b"bytes", "application/zip")

@tool
async def greet(context: ToolContext) -> str:
    "Ask for two names, one after the other."
    client, names = context.get_metadata("mcp"), []
    for key in ("first", "second"):
        answers = await client.ask({key: {"method": "elicitation/create", "params": {
            "mode": "form", "message": key, "requestedSchema": {"type": "object", "properties": {}},
        }}})
        names.append(answers[key]["content"]["name"])
    return " and ".join(names)

@hookimpl
def satchel_mcp():
    return [
        McpPrompt(review, complete=lambda _, begun: [w for w in ("go", "rust") if w[0] == begun]),
        McpPrompt(shown),
        McpPrompt(hello),
        McpResource("notes://motto", motto, mime_type="text/plain"),
        McpResource("notes://{when}/day", day, mime_type="application/json"),
        McpResource("notes://blob", blob),
    ]
'''


@pytest.fixture
def offering(tmp_path, write_plugin):
    write_plugin(tmp_path, "notes", tools=OFFERS)
    return Satchel(plugins=[tmp_path])


@every_era
def test_a_plugin_offers_prompts_whose_arguments_are_those_of_a_function(era, offering):
    async def ask(client, _):
        listed = {item.name: item for item in (await client.list_prompts()).prompts}
        created = await client.get_prompt("review", {"code": "x = 1"})
        return listed["review"], created, await client.get_prompt("shown")

    review, created, shown = asking(SatchelServer(offering), ask, era)
    assert review.description == "Review some code."
    arguments = [(item.name, item.description, item.required) for item in review.arguments]
    assert arguments == [
        ("code", "What to review.", True),
        ("language", "What it is written in.", False),
    ]
    assert [item.content.text for item in created.messages] == ["Review this python: x = 1"]
    assert [item.content.type for item in shown.messages] == ["text", "image"]


@every_era
def test_a_prompt_without_what_it_needs_is_refused(era, offering):
    code, text = asking(SatchelServer(offering), lambda c, _: code_of(c.get_prompt("review")), era)
    assert code == types.INVALID_PARAMS
    assert "code" in text


@every_era
def test_a_plugin_offers_resources_and_whole_families_of_them(era, offering):
    async def ask(client, _):
        listed = [item.uri for item in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        uris = ("notes://motto", "notes://monday/day", "notes://blob")
        read = [(await client.read_resource(uri)).contents[0] for uri in uris]
        return listed, [item.uri_template for item in templates], read

    listed, templates, (motto, day, blob) = asking(SatchelServer(offering), ask, era)
    assert listed == ["notes://motto", "notes://blob"]
    assert templates == ["skill://{name}/{+path}", "notes://{when}/day"]
    assert (motto.text, motto.mime_type) == ("Simple first.", "text/plain")
    assert (day.text, day.mime_type) == ('{"day":"monday"}', "application/json")
    assert (blob.blob, blob.mime_type) == ("Ynl0ZXM=", "application/zip")


def test_a_resource_of_a_plugin_is_announced_as_updated_when_the_plugin_is(offering, tmp_path):
    motto = "notes://motto"

    async def ask(client, notices):
        await subscription(client, types.SubscribeRequest, motto)
        tools = tmp_path / "notes" / "tools.py"
        tools.write_text(tools.read_text().replace("Simple first.", "Simple last."))
        offering.refresh()
        await notices.until("notifications/resources/updated")
        return (await client.read_resource(motto)).contents[0].text

    assert asking(SatchelServer(offering), ask) == "Simple last."


def test_what_no_one_can_watch_is_not_subscribed_to(offering):
    async def ask(client, _):
        return await code_of(subscription(client, types.SubscribeRequest, "notes://monday/day"))

    code, text = asking(SatchelServer(offering), ask)
    assert code == -32002
    assert "changes" in text


@every_era
def test_what_a_plugin_offers_is_completed_by_it(era, offering):
    async def ask(client, _):
        reference = types.PromptReference(name="review")
        return (await client.complete(reference, {"name": "language", "value": "r"})).completion

    assert asking(SatchelServer(offering), ask, era).values == ["rust"]


ODD_OFFERS = """
from satchel import McpPrompt, McpResource, Tool, hookimpl

class Odd(Tool):
    name, description = "odd", "Odd."
    parameters = {"type": "object", "properties": {"a": {"type": "string", "description": 5}}}

    async def execute(self, a=""):
        return a

class Later(McpResource):
    mime_type = property(lambda self: 5, lambda self, given: None)

def fine() -> str:
    return "Fine."

@hookimpl
def satchel_mcp():
    return [
        *(McpPrompt(Odd()), McpPrompt(fine)),
        *(Later("odd://one", fine), Later("odd://{a}", Odd()), McpResource("fine://one", fine)),
    ]
"""


@every_era
def test_an_offer_that_does_not_fit_costs_no_other(era, tmp_path, write_plugin, caplog):
    write_plugin(tmp_path, "odd", tools=ODD_OFFERS)

    async def ask(client, _):
        prompts = [item.name for item in (await client.list_prompts()).prompts]
        resources = [item.uri for item in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        return prompts, resources, len(templates)

    assert asking(SatchelServer(Satchel(plugins=[tmp_path])), ask, era) == (
        ["fine"],
        ["fine://one"],
        1,
    )
    assert caplog.text.count("is not served") == 3


TAKING = """
from satchel import McpResource, hookimpl

def other(kind: str, name: str, file: str) -> str:
    return "Something else."

@hookimpl
def satchel_mcp():
    return [McpResource("{kind}://{name}/{file}", other)]
"""


@every_era
def test_no_plugin_takes_the_place_of_a_file_of_a_skill(era, tmp_path, write_plugin, write_skill):
    write_plugin(tmp_path / "plugins", "taking", tools=TAKING)
    write_skill(tmp_path / "skills", "pdf")
    app = Satchel(skills=[tmp_path / "skills"], plugins=[tmp_path / "plugins"])

    async def ask(client, _):
        uris = ("skill://pdf/SKILL.md", "skill://pdf/OTHER.md")
        return [(await client.read_resource(uri)).contents[0].text for uri in uris]

    skill, other = asking(SatchelServer(app), ask, era)
    assert skill.startswith("---\nname: pdf")
    assert other == "Something else."


CANCELS = """
import asyncio
from satchel import McpPrompt, McpResource, hookimpl, tool

async def gone() -> str:
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return "It went on."

@tool
async def leave() -> str:
    "Cancel yourself."
    return await gone()

@hookimpl
def satchel_mcp():
    return [McpPrompt(gone), McpResource("gone://one", gone)]
"""


@every_era
def test_what_cancels_itself_ends_nothing_else(era, tmp_path, write_plugin):
    write_plugin(tmp_path, "leaving", tools=CANCELS)
    server = SatchelServer(Satchel(plugins=[tmp_path]), single=True)

    async def ask(client, _):
        called = await client.call_tool("leave", {})
        refused = [await code_of(client.get_prompt("gone"))]
        refused.append(await code_of(client.read_resource("gone://one")))
        return called, {code for code, _ in refused}, await names_of(client)

    called, codes, names = asking(server, ask, era)
    assert called.is_error
    assert "failed" in called.content[0].text
    assert codes == {types.INTERNAL_ERROR}
    assert "leave" in names


COMPLETES = """
import sys
from itertools import count
from threading import Event
from satchel import McpPrompt, hookimpl

def odd(about, begun):
    return {
        "wrong": lambda: 1 / 0,
        "leaving": sys.exit,
        "nothing": lambda: None,
        "mixed": lambda: ["a", None, 1, "a\\ud800", "a\\u200b", "ab"],
        "endless": lambda: (f"a{n}" for n in count()),
        "stuck": lambda: Event().wait(20),
    }[about]()

def made(wrong: str = "") -> str:
    return wrong

@hookimpl
def satchel_mcp():
    return [McpPrompt(made, complete=odd)]
"""


@every_era
def test_what_goes_wrong_in_completing_costs_only_the_words(era, tmp_path, write_plugin):
    write_plugin(tmp_path, "odd", tools=COMPLETES)
    server = SatchelServer(Satchel(plugins=[tmp_path]), limits=Limits(hook=0.5))

    async def ask(client, _):
        results = {}
        for about in ("wrong", "leaving", "nothing", "mixed", "endless", "stuck"):
            reference = types.PromptReference(name="made")
            done = await client.complete(reference, {"name": about, "value": "a"})
            results[about] = done.completion.values
        return results

    results = asking(server, ask, era)
    assert len(results.pop("endless")) == 100
    assert results == {"wrong": [], "leaving": [], "nothing": [], "mixed": ["a", "ab"], "stuck": []}


def test_completing_keeps_no_one_waiting(tmp_path, write_plugin):
    write_plugin(tmp_path, "odd", tools=COMPLETES)
    server = SatchelServer(Satchel(plugins=[tmp_path]), limits=Limits(hook=PATIENCE * 2))

    async def ask(client, _):
        reference = types.PromptReference(name="made")
        stuck = asyncio.create_task(client.complete(reference, {"name": "stuck", "value": ""}))
        await client.get_prompt("made", {"wrong": "no"})
        is_waiting = not stuck.done()
        stuck.cancel()
        return is_waiting

    assert asking(server, ask)


@every_era
def test_what_a_plugin_offers_is_there_while_one_of_its_groups_is(era, tmp_path, write_plugin):
    write_plugin(tmp_path, "notes", "active: false\n", tools=OFFERS)
    app = Satchel(plugins=[tmp_path])

    async def ask(client, _):
        return [item.name for item in (await client.list_prompts()).prompts]

    assert asking(SatchelServer(app), ask, era) == []
    assert "review" in asking(SatchelServer(app, ServedSelection(every_group=True)), ask, era)


def answering(*names):
    """Return a user who answers one question after the other, and what they were asked."""
    left, asked = list(names), []

    async def answer(_context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": left.pop(0)})

    return answer, asked


@every_era
def test_a_tool_asks_the_user_and_continues_with_the_answers(era, offering):
    answer, asked = answering("Ann", "Bob")

    def call(client, _):
        return client.call_tool("greet", {})

    result = asking(SatchelServer(offering), call, era, elicitation_callback=answer)
    assert result.content[0].text == "Ann and Bob"
    assert asked == ["first", "second"]


@every_era
def test_a_prompt_asks_the_user_as_well(era, offering):
    answer, _ = answering("Ann")

    def get(client, _):
        return client.get_prompt("hello")

    result = asking(SatchelServer(offering), get, era, elicitation_callback=answer)
    assert result.messages[0].content.text == "Hello Ann"


def test_a_client_that_cannot_be_asked_is_not(offering):
    def call(client, _):
        return client.call_tool("greet", {})

    result = asking(SatchelServer(offering), call, HANDSHAKE)
    assert result.is_error
    assert "cannot be asked" in result.content[0].text
    code, _ = asking(SatchelServer(offering), lambda c, _: code_of(call(c, _)), STATELESS)
    assert code == types.MISSING_REQUIRED_CLIENT_CAPABILITY


def test_answers_that_a_client_made_up_are_refused(offering):
    answer, _ = answering()

    async def ask(client, _):
        first = await client.session.call_tool("greet", {}, allow_input_required=True)
        forged = first.request_state[:-2] + ("AA" if first.request_state[-2:] != "AA" else "BB")
        return await code_of(
            client.session.call_tool("greet", {}, request_state=forged, allow_input_required=True)
        )

    code, text = asking(SatchelServer(offering), ask, STATELESS, elicitation_callback=answer)
    assert code == types.INVALID_PARAMS
    assert "requestState" in text


@every_era
def test_while_a_skill_is_broken_its_last_good_version_continues(era, tmp_path, write_skill):
    app = Satchel(skills=[tmp_path])
    folder = write_skill(tmp_path, "pdf", body="Read the pages.\n")
    app.refresh()
    (folder / "SKILL.md").write_text("---\nname: pdf\n---\nBroken.\n")
    app.refresh()

    async def ask(client, _):
        prompt = await client.get_prompt("pdf")
        listed = (await extension(client, "skills/list")).model_extra["skills"]
        return prompt.messages[0].content.text, listed

    text, listed = asking(SatchelServer(app), ask, era)
    assert "Read the pages." in text
    assert listed == []


def test_a_list_waits_for_slow_plugins_and_the_handshake_does_not(tmp_path, write_plugin):
    waits = f"""
        import time
        from pathlib import Path
        from satchel import tool

        while not Path({str(tmp_path / "go")!r}).exists():
            time.sleep(0.01)

        @tool
        def slow() -> str:
            "Be slow."
            return "s"
    """
    write_plugin(tmp_path / "plugins", "slow", "active: true\n", tools=waits)
    settings = Settings(plugin_wait=0.01, mcp_servers=False)

    async def ask():
        with Satchel(plugins=[tmp_path / "plugins"], settings=settings) as app:
            server = SatchelServer(app, start_wait=StartWait.from_now(PATIENCE, PATIENCE))
            async with app.watch(), client_of(server) as (client, _):
                assert app.is_importing  # and the handshake is over
                (tmp_path / "go").touch()
                return await names_of(client)

    assert "slow" in run(ask())
