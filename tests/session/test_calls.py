"""One conversation: calls, their context, what stands around them, and how they are ended."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

import pytest
from leaving_early import WAYS_TO_LEAVE
from pydantic import BaseModel

from satchel import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    Satchel,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
)
from satchel.tools.dialects import DIALECTS

PATIENCE = 120.0


def in_time(main):
    """Run a coroutine; what never ends fails instead of hanging."""

    async def bounded():
        async with asyncio.timeout(PATIENCE):
            return await main

    return asyncio.run(bounded())


def app_of(*tools: Any, **options: Any) -> Satchel:
    app = Satchel()
    app.tools.register_many(tools, **options)
    return app


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
def fail() -> str:
    """Fail."""
    raise ToolError("it broke")


@tool
def count(context: ToolContext) -> int:
    """Count the calls of this session."""
    context.state["calls"] = context.state.get("calls", 0) + 1
    return context.state["calls"]


class Gate:
    """A tool that tells when it began, waits, and tells when it was ended."""

    def __init__(self) -> None:
        self.began, self.go_on, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.starts: asyncio.Queue[None] = asyncio.Queue()
        self.calls = 0

    async def wait(self) -> str:
        """Wait."""
        self.calls += 1
        self.starts.put_nowait(None)
        self.began.set()
        try:
            await self.go_on.wait()
        finally:
            self.ended.set()
        return "went on"

    async def tell_and_wait(self) -> AsyncIterator[str]:
        """Tell one thing, and wait."""
        yield "so far"
        yield await self.wait()


# ---- options of a registration -----------------------------------------------------------------


def test_a_group_a_name_a_description_and_presets_are_taken():
    app = Satchel()
    app.create_group("words")
    app.register_tool(
        echo, group="words", name="say", description="Say it.", presets={"text": "fixed"}
    )
    session = app.session(meta_tool=False)
    assert session.schemas() == []
    session.activate("words")
    (schema,) = session.schemas("anthropic")
    assert (schema["name"], schema["description"]) == ("say", "Say it.")
    assert schema["input_schema"]["properties"] == {}
    assert in_time(session.call("say")).text == "fixed"


def test_a_schema_written_by_hand_is_used_and_never_changed():
    written = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 3, "x-mine": {"deep": [1]}}},
        "required": ["text"],
    }
    before = json.dumps(written)
    app = app_of(echo, parameters=written)
    session = app.session()
    for dialect in DIALECTS:
        for schema in session.schemas(dialect):
            schema.clear()
    (schema,) = session.schemas()
    schema["function"]["parameters"]["properties"]["text"]["maxLength"] = 99
    assert session.schemas()[0]["function"]["parameters"]["properties"]["text"]["maxLength"] == 3
    assert in_time(session.call("echo", {"text": "long one"})).error_code == "invalid_arguments"
    assert in_time(session.call("echo", {"text": "abc"})).text == "abc"
    assert json.dumps(written) == before


async def later(call: ToolCall, result: ToolResult) -> str:
    await asyncio.sleep(0)
    return result.text + " later"


@pytest.mark.parametrize(
    ("postprocess", "text"),
    [
        (lambda _call, _result: None, "hi"),
        (lambda _call, result: result.text.upper(), "HI"),
        (lambda call, _result: {"name": call.name}, '{"name":"echo"}'),
        (later, "hi later"),
    ],
)
def test_a_result_may_be_replaced_or_kept_by_its_owner(postprocess, text):
    app = app_of(echo, postprocess=postprocess)
    assert in_time(app.session().call("echo", {"text": "hi"})).text == text


def test_a_postprocess_that_fails_is_a_failed_call():
    app = app_of(echo, postprocess=lambda _call, _result: 1 / 0)
    result = in_time(app.session().call("echo", {"text": "hi"}))
    assert result.error_code == "tool_failed"
    assert "division" not in result.text


def test_a_postprocess_sees_the_state_of_its_session_and_no_other():
    def note(call: ToolCall, _result: ToolResult) -> str:
        assert call.id == call.context.call_id
        call.context.state["calls"] = call.context.state.get("calls", 0) + 1
        return str(call.context.state["calls"])

    app = app_of(echo, postprocess=note)
    one, other = app.session(), app.session()
    messages = [in_time(s.call("echo", {"text": "x"}, call_id="1")).text for s in (one, one, other)]
    assert messages == ["1", "2", "1"]
    assert (one.state, other.state) == ({"calls": 2}, {"calls": 1})


@pytest.mark.parametrize("times", [1, 2])
def test_a_tool_that_is_there_is_skipped_and_the_one_that_serves_is_returned(times):
    app = Satchel()
    function_tool = app.register_tool(echo)
    for _ in range(times):
        assert app.register_tool(echo, on_conflict="skip") is function_tool
    assert len(app.tools) == 1


def test_a_plugins_tool_is_minded_by_skip_and_rename(tmp_path, write_plugin):
    source = "from satchel import tool\n@tool\ndef echo(text: str) -> str:\n    return 'plugin'\n"
    write_plugin(tmp_path, "demo", "active: true\n", tools=source)
    app = Satchel(plugins=[tmp_path])
    app.register_tool(echo, on_conflict="skip")
    assert in_time(app.session().call("echo", {"text": "a"})).text == "plugin"
    assert app.register_tool(echo, on_conflict="rename").name == "echo_2"
    assert in_time(app.session().call("echo_2", {"text": "a"})).text == "a"


def test_an_overriding_tool_is_the_one_that_is_called():
    app = Satchel()
    app.register_tool(fail, name="echo")
    app.register_tool(echo, on_conflict="override")
    assert in_time(app.session().call("echo", {"text": "a"})).text == "a"


def test_arguments_without_a_name_of_their_own_are_shown_when_they_are_asked_for():
    def gather(*numbers: int, **labels: str) -> str:
        return f"{numbers} {labels}"

    closed = app_of(gather).session()
    assert closed.schemas()[0]["function"]["parameters"]["properties"] == {}
    assert in_time(closed.call("gather", {"numbers": [1]})).error_code == "invalid_arguments"
    session = app_of(gather, include_var_positional=True, include_var_keyword=True).session()
    assert list(session.schemas()[0]["function"]["parameters"]["properties"]) == [
        "numbers",
        "labels",
    ]
    sent = {"numbers": [1, "2"], "labels": {"a": "b"}}
    assert in_time(session.call("gather", sent)).text == "(1, 2) {'a': 'b'}"


# ---- context -----------------------------------------------------------------------------------


def test_state_is_shared_between_the_calls_of_a_session_and_never_between_sessions():
    app = app_of(count)
    one, other = app.session(), app.session()
    for expected in (1, 2):
        assert in_time(one.call("count")).structured == expected
    assert in_time(other.call("count")).structured == 1
    results = in_time(one.execute([ToolCall(name="count"), ToolCall(name="count")]))
    assert {result.structured for result in results} == {3, 4}
    assert one.state == {"calls": 4}


def test_the_host_passes_a_tool_what_it_likes_and_the_session_adds_its_part():
    seen = []

    def look(context: ToolContext) -> None:
        seen.append(context)

    class Looker(Tool):
        name = "look_too"

        async def execute(self, context: ToolContext) -> None:
            seen.append(context)

    session = app_of(look, Looker()).session()
    own_context = ToolContext(
        metadata={"user": "ada"}, config={"lang": "en"}, messages=["hi"], state={"not": "mine"}
    )
    in_time(session.call("look", call_id="c1", context=own_context))
    in_time(session.execute([ToolCall(name="look_too", id="c2", context=own_context)]))
    for context, (call_id, name) in zip(seen, [("c1", "look"), ("c2", "look_too")], strict=True):
        assert (context.call_id, context.tool) == (call_id, name)
        assert context.state is session.state
        assert context.get_metadata("user") == "ada"
        assert context.get_metadata("nobody", "?") == "?"
        assert context.get_config("lang") == "en"
        assert context.get_config("tone") is None
        assert context.messages == ["hi"]
    assert own_context.state == {"not": "mine"}, "what the host made stays as it was"


def test_one_context_for_a_step_wins_over_that_of_a_call():
    def user(context: ToolContext) -> str:
        return context.get_metadata("user")

    call = ToolCall(name="user", context=ToolContext(metadata={"user": "call"}))
    session = app_of(user).session()
    step = ToolContext(metadata={"user": "step"})
    assert in_time(session.execute([call]))[0].text == "call"
    assert in_time(session.execute([call], context=step))[0].text == "step"


# ---- injection ---------------------------------------------------------------------------------


def secretive(city: str, key: str, token: str, context: ToolContext) -> str:
    return f"{city} {key} {token}"


def injecting() -> Satchel:
    app = Satchel(config={"host": {"token": "from config"}})
    app.register_tool(secretive, presets={"key": "from preset"}, state=["token"])
    return app


@pytest.mark.parametrize("name", ["key", "token", "context"])
@pytest.mark.parametrize("value", ["mine", None, {}])
def test_a_model_that_sends_what_only_the_host_sets_is_refused(name, value):
    session = injecting().session()
    sent = {"city": "Oslo", name: value}
    (executed,) = in_time(session.execute([ToolCall(name="secretive", arguments=json.dumps(sent))]))
    for result in (in_time(session.call("secretive", sent)), executed):
        assert result.error_code == "invalid_arguments"
        assert f"{name}: is set by the host" in result.text
        assert "from" not in result.text


def test_a_middleware_that_sends_what_only_the_host_sets_is_refused_as_well():
    app = injecting()

    async def inject(call, inner):
        sent = {**call.arguments, "key": "mine"}
        async for item in inner(ToolCall(name=call.name, arguments=sent, id=call.id)):
            yield item

    app.register_middleware(inject)
    result = in_time(app.session().call("secretive", {"city": "Oslo"}))
    assert result.error_code == "invalid_arguments"


def test_what_is_injected_is_in_no_schema():
    session = injecting().session()
    for dialect in DIALECTS:
        shown = json.dumps(session.schemas(dialect))
        assert "city" in shown
        for name in ("key", "token", "context", "from preset", "from config"):
            assert f'"{name}"' not in shown


# ---- odd calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [5, None, [], {}, b"echo"])
def test_a_name_that_is_no_text_is_an_answer_and_no_error(name):
    result = in_time(app_of(echo).session().call(name))
    assert (result.error_code, result.text) == (
        "tool_not_found",
        "The name of a tool must be a string.",
    )


def test_a_name_that_never_ends_or_cannot_be_seen_is_not_sent_back_whole():
    session = app_of(echo).session()
    assert len(in_time(session.call("x" * 100_000)).text) < 200
    assert "\x1b" not in in_time(session.call("echo\x1b[31m")).text
    assert "Did you mean echo?" in in_time(session.call("ecko")).text


@pytest.mark.parametrize("junk", [None, "echo", {"name": "echo"}, 5])
def test_what_is_no_call_is_refused_before_anything_runs(junk):
    gate = Gate()
    session = app_of(gate.wait).session()
    with pytest.raises(TypeError, match="ToolCall"):
        in_time(session.execute([ToolCall(name="wait"), junk]))
    with pytest.raises(TypeError, match="ToolCall"):
        session.execute_streaming([ToolCall(name="wait"), junk])
    assert gate.calls == 0


@pytest.mark.parametrize("sent", [5, [], "[1]", "{", b"{}", {5: 1}])
def test_invalid_arguments_are_reported(sent):
    session = app_of(echo).session()
    (executed,) = in_time(session.execute([ToolCall(name="echo", arguments=sent)]))
    for result in (in_time(session.call("echo", sent)), executed):
        assert result.error_code == "invalid_arguments"


# ---- middleware --------------------------------------------------------------------------------


def noting(log: list[str], word: str):
    async def layer(call, inner):
        log.append(f"{word} {call.name}")
        async for item in inner(call):
            yield item

    return layer


def test_a_middleware_stands_around_all_one_group_or_one_tool_the_broadest_outermost():
    app = Satchel()
    app.create_group("words", active=True)
    app.register_tool(echo, group="words")
    app.register_tool(echo, name="say", group="words")
    app.register_tool(echo, name="alone")
    log = []
    app.register_middleware(noting(log, "tool"), tool="say")
    app.register_middleware(noting(log, "group"), group="words")
    app.register_middleware(noting(log, "all"))
    app.register_middleware(noting(log, "nobody"), group="words", tool="alone")
    session = app.session()
    for name in ("echo", "say", "alone"):
        in_time(session.call(name, {"text": "x"}))
    assert log == [
        *("all echo", "group echo"),
        *("all say", "group say", "tool say"),
        "all alone",
    ]


def test_a_middleware_can_be_taken_away_again_by_itself():
    app = app_of(echo)
    log = []
    layer = noting(log, "twice")
    undo = app.register_middleware(layer)
    app.register_middleware(layer)
    session = app.session()
    in_time(session.call("echo", {"text": "x"}))
    undo()
    undo()
    in_time(session.call("echo", {"text": "x"}))
    assert len(log) == 3


def test_a_step_that_has_begun_gets_a_middleware_that_comes_later():
    app = app_of(echo)
    log = []
    step = app.session().step()
    in_time(step.call("echo", {"text": "x"}))
    undo = app.register_middleware(noting(log, "late"))
    in_time(step.call("echo", {"text": "x"}))
    undo()
    in_time(step.call("echo", {"text": "x"}))
    assert log == ["late echo"]


def test_a_middleware_sends_a_call_into_the_memory_or_the_background_of_another_tool():
    async def sending(call, inner):
        async for item in inner(replace(call, name=call.arguments["text"], arguments={})):
            yield item

    ran = []

    async def remembered():
        ran.append("remembered")
        return "one"

    async def slow():
        ran.append("slow")
        return "two"

    app = app_of(echo)
    app.register_tool(remembered, idempotent=True)
    app.register_tool(slow, background=True)
    app.register_middleware(sending, tool="echo")
    session = app.session()

    async def main():
        texts = [(await session.call("echo", {"text": "remembered"})).text for _ in range(2)]
        started = await session.call("echo", {"text": "slow"})
        return [*texts, (await session.finished(started)).text]

    assert in_time(main()) == ["one", "one", "two"]
    assert ran == ["remembered", "slow"]


async def no_generator(call, inner):
    return None


@pytest.mark.parametrize("junk", [None, "layer", 5, no_generator])
def test_what_is_no_middleware_is_refused(junk):
    with pytest.raises(DefinitionError, match="async generator"):
        Satchel().register_middleware(junk)


def test_a_middleware_sees_calls_streams_steps_and_the_context():
    app = app_of(echo)
    seen = []

    async def note(call, inner):
        seen.append((call.tool.name, call.group, call.context.get_metadata("user")))
        call.context.state["calls"] = call.context.state.get("calls", 0) + 1
        async for item in inner(call):
            yield item

    app.register_middleware(note)
    session = app.session()
    context = ToolContext(metadata={"user": "ada"})

    async def main():
        await session.call("echo", {"text": "x"}, context=context)
        async for _ in session.stream("echo", {"text": "x"}, context=context):
            pass
        await session.execute([ToolCall(name="echo", arguments={"text": "x"})], context=context)

    in_time(main())
    assert seen == [("echo", "basic", "ada")] * 3
    assert session.state == {"calls": 3}


# ---- several calls -----------------------------------------------------------------------------


def test_results_stand_in_the_order_of_the_calls_and_one_failure_disturbs_no_other():
    async def main():
        gate = Gate()
        session = app_of(gate.wait, echo, fail).session()
        calls = [
            ToolCall(name="wait", id="a"),
            ToolCall(name="fail", id="b"),
            ToolCall(name="nope", id="c"),
            ToolCall(name="echo", arguments={"txt": 1}, id="d"),
            ToolCall(name="echo", arguments="{", id="e"),
            ToolCall(name="echo", arguments={"text": "fine"}, id="f"),
        ]
        gate.go_on.set()
        return await session.execute(calls)

    results = in_time(main())
    assert [result.call_id for result in results] == list("abcdef")
    assert [result.error_code for result in results] == [
        *(None, "tool_error", "tool_not_found"),
        *("invalid_arguments", "invalid_arguments", None),
    ]
    assert results[-1].text == "fine"


def test_answers_come_as_they_are_ready_each_with_the_index_of_its_call():
    async def main():
        gate = Gate()
        session = app_of(gate.wait, echo).session()
        calls = [
            ToolCall(name="wait", id="slow"),
            ToolCall(name="echo", arguments={"text": "quick"}, id="quick"),
        ]
        order = []
        async for index, result in session.execute_streaming(calls):
            order.append((index, result.call_id))
            gate.go_on.set()
        return order

    assert in_time(main()) == [(1, "quick"), (0, "slow")]


@pytest.mark.parametrize("leave", WAYS_TO_LEAVE)
def test_a_caller_that_stops_reading_ends_what_still_runs(leave):
    async def main():
        gate = Gate()
        session = app_of(gate.wait, echo).session()
        calls = [ToolCall(name="wait"), ToolCall(name="echo", arguments={"text": "x"})]
        await leave(session.execute_streaming(calls))
        gc.collect()
        await gate.ended.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert session.interrupt() == 0, "nothing is left behind"

    in_time(main())


def test_leaving_a_stream_ends_its_tool():
    async def main():
        gate = Gate()
        session = app_of(gate.tell_and_wait).session()
        async with aclosing(session.stream("tell_and_wait")) as items:
            assert (await anext(items)).text == "so far"
            reading = asyncio.ensure_future(anext(items))
            await gate.began.wait()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        assert gate.ended.is_set()
        assert session.interrupt() == 0

    in_time(main())


# ---- interrupting ------------------------------------------------------------------------------


async def as_call(session, name):
    return await session.call(name, call_id="c1")


async def as_stream(session, name):
    return [item async for item in session.stream(name, call_id="c1")][-1]


async def as_step(session, name):
    return (await session.execute([ToolCall(name=name, id="c1")]))[0]


async def as_streamed_step(session, name):
    ((_, result),) = [
        item async for item in session.execute_streaming([ToolCall(name=name, id="c1")])
    ]
    return result


WAYS = [as_call, as_stream, as_step, as_streamed_step]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layered", [False, True])
def test_a_call_is_ended_by_its_id_however_it_was_made(way, layered):
    async def main():
        gate = Gate()
        app = app_of(gate.tell_and_wait)
        if layered:
            app.register_middleware(noting([], "layer"))
        session, stranger = app.session(), app.session()
        work = asyncio.create_task(way(session, "tell_and_wait"))
        await gate.began.wait()
        assert stranger.interrupt("c1") == 0
        assert stranger.interrupt() == 0
        assert session.interrupt("another") == 0
        assert session.interrupt("c1") == 1
        result = await work
        assert gate.ended.is_set()
        assert session.interrupt("c1") == 0
        return result

    result = in_time(main())
    assert (result.is_interrupted, result.is_error, result.call_id) == (True, True, "c1")
    assert result.text.startswith("so far")


def test_a_sibling_continues_when_one_call_is_ended():
    async def main():
        gate, other = Gate(), Gate()
        app = Satchel()
        app.register_tool(gate.wait)
        app.register_tool(other.wait, name="other")
        session = app.session()
        calls = [ToolCall(name="wait", id="1"), ToolCall(name="other", id="2")]
        work = asyncio.create_task(session.execute(calls))
        await gate.began.wait()
        await other.began.wait()
        session.interrupt("1")
        await gate.ended.wait()
        other.go_on.set()
        return [result.is_interrupted for result in await work]

    assert in_time(main()) == [True, False]


def test_without_an_id_everything_of_the_session_is_ended():
    async def main():
        gate = Gate()
        session = app_of(gate.wait).session()
        work = asyncio.create_task(session.execute([ToolCall(name="wait", id=i) for i in "abc"]))
        for _ in range(3):
            await gate.starts.get()
        assert session.interrupt() == 3
        return await work

    assert all(result.is_interrupted for result in in_time(main()))


def test_it_may_come_from_another_thread():
    async def main():
        gate = Gate()
        session = app_of(gate.wait).session()
        work = asyncio.create_task(session.call("wait", call_id="c1"))
        await gate.began.wait()
        assert await asyncio.to_thread(session.interrupt, "c1") == 1
        return await work

    assert in_time(main()).is_interrupted


def test_a_call_may_be_ended_by_its_own_first_step():
    app = Satchel()
    session = app.session()

    async def give_up() -> str:
        session.interrupt("c1")
        await asyncio.Event().wait()
        return "never"

    app.register_tool(give_up)
    assert in_time(session.call("give_up", call_id="c1")).is_interrupted


def test_a_background_task_is_ended_by_the_id_of_its_call():
    async def main():
        gate = Gate()
        app = Satchel()
        app.register_tool(gate.tell_and_wait, background=True)
        session, stranger = app.session(), app.session()
        answer = await session.call("tell_and_wait", call_id="c1")
        await gate.began.wait()
        assert stranger.interrupt("c1") == 0
        assert (await stranger.call("view_task", {"task_id": "task_1"})).is_error
        assert session.interrupt("c1") == 1
        await gate.ended.wait()
        return answer, await session.call("wait_task", {"task_id": "task_1"})

    answer, result = in_time(main())
    assert answer.structured == {"task_id": "task_1"}
    assert result.metadata["status"] == "cancelled"
    assert "so far" in result.text


# ---- background --------------------------------------------------------------------------------


def test_a_host_may_wait_for_what_a_result_announces():
    async def wait():
        app = app_of(echo, background=True)
        session = app.session()
        begun = await session.call("echo", {"text": "at last"})
        done = await session.finished(begun)
        return begun, done, await session.finished(done)

    begun, done, again = in_time(wait())
    assert "task_1" in begun.text
    assert done.text == "at last"
    assert again is done


TASK_TOOLS = ["view_task", "wait_task", "cancel_task"]


def names(session) -> list[str]:
    return [schema["name"] for schema in session.schemas("anthropic")]


def test_the_tools_for_tasks_are_there_with_a_background_tool_and_only_then():
    app = Satchel()
    app.create_group("slow")
    app.register_tool(echo, group="slow", background=True)
    session = app.session(meta_tool=False)
    assert names(session) == []
    assert in_time(session.call("view_task", {"task_id": "x"})).error_code == "tool_not_found"
    session.activate("slow")
    assert names(session) == ["echo", *TASK_TOOLS]
    assert in_time(session.call("view_task", {"task_id": "x"})).error_code == "tool_error"


def test_a_task_can_be_looked_after_although_its_tool_is_gone():
    async def main():
        app = app_of(echo, background=True)
        session = app.session()
        await session.call("echo", {"text": "done"})
        app.remove_tool("echo")
        assert names(session) == TASK_TOOLS
        return await session.call("wait_task", {"task_id": "task_1"})

    assert in_time(main()).text.endswith("done")


def test_a_tool_that_comes_later_stands_behind_those_for_tasks():
    """What a provider has cached stays a prefix."""
    app = app_of(echo, background=True)
    session = app.session()
    before = session.schemas()
    app.register_tool(count, name="a_new_one")
    assert session.schemas()[: len(before)] == before
    assert names(session) == ["echo", *TASK_TOOLS, "a_new_one"]


def test_a_tool_of_the_hosts_own_wins_over_one_for_tasks():
    app = app_of(echo, background=True)
    app.register_tool(count, name="view_task")
    session = app.session()
    assert sorted(names(session)) == sorted(["echo", *TASK_TOOLS])
    assert in_time(session.call("view_task")).structured == 1


# ---- idempotent --------------------------------------------------------------------------------


def test_a_repeated_call_is_answered_from_memory_in_its_own_session():
    calls = []

    def look_up(key: str) -> int:
        calls.append(key)
        return len(calls)

    app = app_of(look_up, idempotent=True)
    one, other = app.session(), app.session()
    first = in_time(one.call("look_up", {"key": "a"}, call_id="1"))
    again = in_time(one.call("look_up", '{"key": "a"}', call_id="2"))
    assert (first.structured, again.structured, again.call_id) == (1, 1, "2")
    assert in_time(one.call("look_up", {"key": "b"})).structured == 2
    assert in_time(other.call("look_up", {"key": "a"})).structured == 3


def test_what_is_remembered_lasts_for_a_turn_unless_the_tool_asks_for_the_session():
    count = []

    async def once() -> int:
        count.append(1)
        return len(count)

    satchel = Satchel()
    satchel.register_tool(once, name="turn", idempotent=True)
    satchel.register_tool(once, name="session", idempotent=True, remember="session")
    session = satchel.session()

    async def both():
        return [(await session.call(name)).structured for name in ("turn", "session")]

    assert [asyncio.run(both()) for _ in range(2)] == [[1, 2], [1, 2]]
    session.new_turn()
    assert asyncio.run(both()) == [3, 2]


def test_a_remembered_answer_is_not_given_to_another_user():
    @tool(idempotent=True)
    def mail(context: ToolContext) -> str:
        return f"{context.get_metadata('user')} {context.state.get('folder')}"

    app = Satchel()
    app.register_tool(mail)
    session = app.session()

    def read(user):
        context = ToolContext(metadata={"user": user})
        return in_time(session.call("mail", {}, context=context))

    assert [read(user).text for user in ("al", "bo", "al")] == ["al None", "bo None", "al None"]
    assert read("bo").metadata["cached"]
    session.state["folder"] = "inbox"
    assert read("bo").text == "bo inbox"


def test_a_tool_that_takes_the_place_of_another_runs_again():
    app = Satchel()
    app.register_tool(echo, idempotent=True)
    session = app.session()
    in_time(session.call("echo", {"text": "a"}))
    app.register_tool(
        lambda text: text + " anew", name="echo", idempotent=True, on_conflict="override"
    )
    assert in_time(session.call("echo", {"text": "a"})).text == "a anew"


def test_an_addition_elsewhere_makes_nothing_run_again():
    calls = []

    def look_up() -> int:
        calls.append(1)
        return len(calls)

    app = Satchel(config={"host": {"key": "abc"}})
    app.register_tool(look_up, idempotent=True)
    session = app.session()
    in_time(session.call("look_up"))
    app.register_tool(echo)
    assert in_time(session.call("look_up")).structured == 1


# ---- added models ------------------------------------------------------------------------------


class More(BaseModel):
    unit: str = "C"


class Clash(BaseModel):
    city: str


def open_ended(city: str, **others: Any) -> str:
    return f"{city} {others}"


def test_a_model_adds_arguments_until_it_is_taken_away():
    app = app_of(open_ended)
    session = app.session()
    app.set_extended_model("open_ended", More)
    assert "unit" in session.schemas()[0]["function"]["parameters"]["properties"]
    sent = {"city": "Oslo", "unit": "F"}
    assert in_time(session.call("open_ended", sent)).text == "Oslo {'unit': 'F'}"
    app.set_extended_model(app.tools.get("open_ended"), None)
    assert "unit" not in session.schemas()[0]["function"]["parameters"]["properties"]
    assert in_time(session.call("open_ended", sent)).error_code == "invalid_arguments"


@pytest.mark.parametrize("junk", [{"unit": "C"}, 5, "More", More()])
def test_what_is_no_model_is_refused(junk):
    app = app_of(open_ended)
    with pytest.raises(DefinitionError):
        app.set_extended_model("open_ended", junk)
    assert app.catalog.tools["open_ended"].tool is not None


def test_a_model_that_does_not_fit_is_refused_and_changes_nothing():
    app = app_of(open_ended, echo)
    before = app.catalog
    with pytest.raises(DefinitionError, match="both have city"):
        app.set_extended_model("open_ended", Clash)
    with pytest.raises(DefinitionError, match="no further arguments"):
        app.set_extended_model("echo", More)
    with pytest.raises(NotFoundError, match="did you mean echo"):
        app.set_extended_model("ecko", More)
    assert app.catalog is before


def test_a_tool_of_the_host_that_no_longer_fits_its_model_is_reported():
    app = app_of(open_ended)
    app.set_extended_model("open_ended", More)
    app.register_tool(echo, name="open_ended", on_conflict="override")
    assert "open_ended" not in app.catalog.tools
    assert "tool-unfit" in {item.code for item in app.catalog.diagnostics}
    app.remove_tool("open_ended")
    app.register_tool(echo, name="open_ended")
    assert in_time(app.session().call("open_ended", {"text": "a"})).text == "a"


def test_a_model_is_for_one_tool_and_not_for_another_of_its_name(tmp_path, write_plugin):
    source = (
        "from satchel import tool\n@tool\ndef open_ended(x: int) -> str:\n    return 'plugin'\n"
    )
    write_plugin(tmp_path, "demo", "active: true\n", tools=source)
    app = Satchel(plugins=[tmp_path])
    app.register_tool(open_ended)
    app.set_extended_model("open_ended", More)
    assert app.catalog.tool("demo:open_ended").tool is not None
    assert "tool-unfit" not in {item.code for item in app.catalog.diagnostics}
    app.remove_tool("open_ended")
    assert in_time(app.session().call("open_ended", {"x": 1})).text == "plugin"


# ---- schemas -----------------------------------------------------------------------------------


def test_two_sessions_get_the_same_bytes_in_every_dialect():
    app = app_of(echo, count, fail, open_ended, background=True)
    for dialect in DIALECTS:
        one, other = (json.dumps(app.session().schemas(dialect)) for _ in "ab")
        assert one == other
        assert "echo" in one


@pytest.mark.parametrize("app", [Satchel(), app_of(echo)])
def test_an_unknown_dialect_is_refused_with_the_near_misses(app):
    with pytest.raises(NotFoundError, match="did you mean openai"):
        app.session().schemas("opnai")


def test_a_tool_that_was_only_read_is_not_called_and_not_offered_as_itself(tmp_path, write_plugin):
    source = "from satchel import tool\n@tool\ndef echo(text: str) -> str:\n    return text\n"
    write_plugin(tmp_path, "demo", "active: true\n", tools=source)
    session = Satchel(plugins=[tmp_path], run_code=False).session()
    result = in_time(session.call("echo", {"text": "a"}))
    assert result.error_code == "tool_not_found"
    assert "Did you mean" not in result.text


def test_a_registration_that_names_what_is_taken_says_how_to_continue():
    app = app_of(echo)
    with pytest.raises(ConflictError, match="on_conflict="):
        app.register_tool(echo)
