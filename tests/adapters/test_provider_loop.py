"""The loops over providers' libraries, with clients that only look like theirs."""

import asyncio
import json
from inspect import signature
from types import SimpleNamespace

import pytest

from satchel import Recording, Satchel, SatchelError, ToolCall, ToolChunk, ToolResult, replay
from satchel.adapters.anthropic import run_anthropic, run_anthropic_sync, stream_anthropic
from satchel.adapters.openai import run_openai, run_openai_sync, stream_openai
from satchel.testing import ScriptedClient

ADD = [ToolCall(name="add", arguments={"a": 2, "b": 3}, id="add")]


class Streaming(ScriptedClient):
    """A client that streams prepared pieces."""

    def _complete(self, **arguments):
        return self._given(self._next(arguments))

    def _next(self, arguments):
        return self._answers.pop(0)


@pytest.fixture
def session():
    app = Satchel()

    def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    app.register_tool(add)
    app.create_group("notes", notes="Be exact.", active=True)
    app.register_tool(lambda: "x", name="more", description="Do more.", group="notes")
    return app.session()


@pytest.mark.parametrize(
    ("run", "variant"),
    [
        (run_openai, run_openai_sync),
        (run_openai, stream_openai),
        (run_anthropic, run_anthropic_sync),
        (run_anthropic, stream_anthropic),
    ],
)
def test_all_variants_of_a_loop_have_the_same_parameters(run, variant):
    assert signature(run).parameters == signature(variant).parameters


ASKED = [{"role": "user", "content": "2 + 3?"}]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_loop_asks_calls_and_ends_with_the_text(session, is_async):
    client = ScriptedClient(ADD, "done", blocking=not is_async)
    messages = list(ASKED)
    if is_async:
        text = asyncio.run(run_openai(client, session, messages, model="m", system="Hello."))
    else:
        text = run_openai_sync(client, session, messages, model="m", system="Hello.")
    assert text == "done"
    assert [item["role"] for item in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[2] == {"role": "tool", "tool_call_id": "add", "content": "5"}
    first = client.requests[0]["messages"][0]
    assert first["role"] == "system"
    assert first["content"].startswith("Hello.\n\n")
    assert "Be exact." in first["content"]


@pytest.mark.parametrize("is_async", [True, False])
def test_the_same_for_anthropic(session, is_async):
    client = ScriptedClient(ADD, "done", blocking=not is_async)
    messages = list(ASKED)
    if is_async:
        text = asyncio.run(run_anthropic(client, session, messages, model="m", max_tokens=7))
    else:
        text = run_anthropic_sync(client, session, messages, model="m", max_tokens=7)
    assert text == "done"
    assert [item["role"] for item in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[2]["content"][0]["content"] == [{"type": "text", "text": "5"}]
    assert "Be exact." in client.requests[0]["system"]
    assert client.requests[0]["max_tokens"] == 7


def test_a_group_that_is_activated_is_in_the_next_request(session):
    session.deactivate("notes")
    switch = ToolCall(name="reset_equipped_tools", arguments='{"notes": true}')
    client = ScriptedClient([switch], "done")
    asyncio.run(run_openai(client, session, list(ASKED), model="m"))
    names = [[tool["function"]["name"] for tool in item["tools"]] for item in client.requests]
    assert ["more" in offered for offered in names] == [False, True]


def test_tools_that_the_provider_runs_are_kept(session):
    search = {"type": "web_search"}
    client = ScriptedClient("done")
    asyncio.run(run_anthropic(client, session, list(ASKED), model="m", tools=[search]))
    assert client.requests[0]["tools"][0] == search
    assert len(client.requests[0]["tools"]) > 1


def test_a_cancelled_run_leaves_no_half_turn():
    began = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()
        return ""

    app = Satchel()
    app.register_tool(wait)
    messages = list(ASKED)

    async def main():
        work = run_openai(
            ScriptedClient([ToolCall(name="wait")]), app.session(), messages, model="m"
        )
        task = asyncio.ensure_future(work)
        async with asyncio.timeout(20):
            await began.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    assert messages == ASKED, "half a turn would make the next request invalid"


def cut_off(response, reason):
    """Return the response with another reason why the model stopped."""
    place = response.choices[0] if hasattr(response, "choices") else response
    place.finish_reason = place.stop_reason = reason
    return response


class CutOff(ScriptedClient):
    """A client whose first answer stops for some reason."""

    reason = None

    def _given(self, response):
        reason = self.reason if len(self.requests) == 1 else "stop"
        return super()._given(cut_off(response, reason))


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("reason", "run", "run_sync"),
    [
        ("length", run_openai, run_openai_sync),
        ("content_filter", run_openai, run_openai_sync),
        ("max_tokens", run_anthropic, run_anthropic_sync),
        ("model_context_window_exceeded", run_anthropic, run_anthropic_sync),
        ("refusal", run_anthropic, run_anthropic_sync),
    ],
)
def test_a_call_of_an_answer_that_was_cut_off_is_not_run(reason, run, run_sync, is_async):
    app, ran = Satchel(), []
    app.register_tool(lambda folder="/": ran.append(folder), name="wipe", description="Wipe.")
    client = CutOff([ToolCall(name="wipe", id="w")], "done", blocking=not is_async)
    client.reason, messages, record = reason, list(ASKED), Recording()
    ask = {"model": "m", "record": record}
    if is_async:
        text = asyncio.run(run(client, app.session(), messages, **ask))
    else:
        text = run_sync(client, app.session(), messages, **ask)
    assert (text, ran) == ("done", [])
    assert f"the answer was cut off ({reason}), so this call was not run" in str(messages[2])
    assert len(client.requests) == 2
    assert asyncio.run(replay(record, app.session(), run=True)) == ()
    assert ran == []


def test_a_text_that_was_cut_off_is_logged(session, caplog):
    client = CutOff("hal")
    client.reason = "length"
    assert asyncio.run(run_openai(client, session, list(ASKED), model="m")) == "hal"
    assert "the model's answer was cut off (length)" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "ends", "reason"),
    [
        ("", [], "the stream ended early"),
        ('{"a": 1, "b"', [], "the stream ended early"),
        ('{"a": 1, "b": 1}', ["length"], "length"),
    ],
)
def test_a_streamed_call_that_was_cut_off_is_not_run(session, arguments, ends, reason):
    call = add_call(0, "a", arguments)
    first = pieces(call, *(given({}, finish_reason) for finish_reason in ends))
    messages = list(ASKED)
    client = Streaming(first, pieces(piece("done"), END))
    items = asyncio.run(collect(stream_openai(client, session, messages, model="m")))
    assert [item.error_code for item in items if isinstance(item, ToolResult)] == ["cut_off"]
    assert items[-1] == "done"
    assert f"cut off ({reason})" in messages[2]["content"]


def test_a_whole_streamed_call_is_run_though_the_server_gives_no_reason(session):
    messages = list(ASKED)
    client = Streaming(pieces(add_call(0, "a", '{"a": 1, "b": 1}')), pieces(piece("done")))
    items = asyncio.run(collect(stream_openai(client, session, messages, model="m")))
    assert [item.text for item in items if isinstance(item, ToolResult)] == ["2"]


class AnthropicStream:
    """A stream of Anthropic's library with its last message."""

    def __init__(self, stop_reason, *content):
        self._message = SimpleNamespace(content=list(content), stop_reason=stop_reason)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    @property
    async def text_stream(self):
        for part in self._message.content:
            if part["type"] == "text":
                yield part["text"]

    async def get_final_message(self):
        return self._message


def anthropic_streams(*streams):
    """Return a client that gives these streams, and a list of the requests."""
    left, requests = list(streams), []

    def stream(**arguments):
        requests.append(arguments)
        return left.pop(0)

    return SimpleNamespace(messages=SimpleNamespace(stream=stream)), requests


DONE = AnthropicStream("end_turn", {"type": "text", "text": "done"})


@pytest.mark.parametrize("reason", [None, "max_tokens"])
def test_a_call_that_anthropic_streamed_in_part_is_not_run(session, reason):
    use = {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1, "b": 1}}
    client, requests = anthropic_streams(AnthropicStream(reason, use), DONE)
    items = asyncio.run(collect(stream_anthropic(client, session, list(ASKED), model="m")))
    assert [item.error_code for item in items if isinstance(item, ToolResult)] == ["cut_off"]
    assert items[-1] == "done"
    assert len(requests) == 2


PAUSED = [
    {"type": "text", "text": "searching"},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
]


class Pausing(ScriptedClient):
    """A client that pauses its first answers."""

    pauses = 1

    def _given(self, response):
        if len(self.requests) <= self.pauses:
            response = SimpleNamespace(content=PAUSED, stop_reason="pause_turn")
        return super()._given(response)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_turn_that_anthropic_pauses_continues(session, is_async):
    client, messages = Pausing("", "3 results", blocking=not is_async), list(ASKED)
    if is_async:
        text = asyncio.run(run_anthropic(client, session, messages, model="m"))
    else:
        text = run_anthropic_sync(client, session, messages, model="m")
    assert text == "3 results"
    paused = {"role": "assistant", "content": PAUSED}
    assert client.requests[1]["messages"] == [*ASKED, paused]
    assert messages[:2] == [*ASKED, paused]


def test_a_streamed_turn_that_is_paused_continues():
    client, requests = anthropic_streams(AnthropicStream("pause_turn", *PAUSED), DONE)
    stream = stream_anthropic(client, Satchel().session(), list(ASKED), model="m")
    assert asyncio.run(collect(stream)) == ["searching", "done"]
    assert requests[1]["messages"][1] == {"role": "assistant", "content": PAUSED}


def test_a_turn_that_is_paused_for_ever_is_asked_only_so_often(session):
    client = Pausing(*[""] * 9)
    client.pauses = 9
    with pytest.raises(SatchelError, match="asked 3 times"):
        asyncio.run(run_anthropic(client, session, list(ASKED), model="m", max_requests=3))
    assert len(client.requests) == 3


def test_a_system_of_blocks_is_kept_for_anthropic(session):
    host = {"type": "text", "text": "HOST", "cache_control": {"type": "ephemeral"}}
    client, blocks = ScriptedClient(ADD, "done"), [host]
    asyncio.run(run_anthropic(client, session, list(ASKED), model="m", system=blocks))
    for request in client.requests:
        assert request["system"][0] == host
        assert "Be exact." in request["system"][1]["text"]
        assert len(request["system"]) == 2
    assert blocks == [host]


HALF = "half of an emoji \ud83d"


@pytest.mark.parametrize("run", [run_openai, run_anthropic])
def test_half_an_emoji_is_answered_and_the_conversation_continues(session, run, caplog):
    text = json.dumps({"a": HALF}, ensure_ascii=False)
    sent = text if run is run_openai else {"a": HALF}
    client, messages = ScriptedClient([ToolCall(name="add", arguments=sent)], HALF), list(ASKED)
    asyncio.run(run(client, session, messages, model="m"))
    assert "invalid arguments for add" in str(messages[2])
    assert "Traceback" not in caplog.text
    json.dumps(messages, ensure_ascii=False).encode()
    assert "half of an emoji \ufffd" in str(messages[1])
    assert "half of an emoji \ufffd" in str(messages[3])


def piece(text=None, index=None, name=None, arguments=None):
    """Return one chunk of a stream of OpenAI."""
    function = {"name": name, "arguments": arguments}
    calls = None if index is None else [{"index": index, "id": name, "function": function}]
    return given({"role": "assistant", "content": text, "tool_calls": calls})


def given(delta, finish_reason=None):
    """Return a chunk with this delta."""
    return SimpleNamespace(choices=[SimpleNamespace(delta=delta, finish_reason=finish_reason)])


END = given({}, "stop")


async def pieces(*items):
    for item in items:
        yield item


def test_a_stream_yields_text_chunks_and_results_as_they_come():
    app = Satchel()

    async def count():
        """Count in parts."""
        yield "1"
        yield "2"

    app.register_tool(count)
    client = Streaming(
        pieces(
            piece("I "),
            piece("count."),
            piece(None, 0, "count", "{"),
            piece(None, 0, None, "}"),
            END,
            SimpleNamespace(choices=[]),
        ),
        pieces(SimpleNamespace(choices=[]), piece("done")),
    )
    messages = list(ASKED)

    async def main():
        return [item async for item in stream_openai(client, app.session(), messages, model="m")]

    got = asyncio.run(main())
    assert [item for item in got if isinstance(item, str)] == ["I ", "count.", "done"]
    assert [item.text for item in got if isinstance(item, ToolChunk)] == ["1", "2"]
    assert [item.call_id for item in got if isinstance(item, ToolResult)] == ["count"]
    assert messages[1]["content"] == "I count."
    assert messages[2]["tool_call_id"] == "count"


def add_call(index, call_id, arguments, **others):
    """Return a chunk with a call of `add` that has its name in each piece."""
    function = {"name": "add", "arguments": arguments}
    return given({"tool_calls": [{"index": index, "id": call_id, "function": function, **others}]})


def streamed(session, *streams):
    """Return the texts and the messages of a streamed run."""
    messages = list(ASKED)

    async def main():
        items = stream_openai(Streaming(*streams), session, messages, model="m")
        return [item async for item in items if isinstance(item, str)]

    return asyncio.run(main()), messages


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_a_server_gives_one_index_stay_apart(session, index):
    extra = {"google": {"thought_signature": "S"}}
    first = pieces(
        add_call(index, "a", '{"a": 1', extra_content=extra),
        add_call(index, "a", ', "b": 1}'),
        add_call(index, "b", '{"a": 2, "b": 2}'),
        END,
    )
    _, messages = streamed(session, first, pieces(piece("done")))
    created = messages[1]["tool_calls"]
    assert [call["function"]["name"] for call in created] == ["add", "add"]
    assert [call.get("extra_content") for call in created] == [extra, None]
    assert [item["content"] for item in messages[2:4]] == ["2", "4"]


def test_a_refusal_is_the_text_and_an_empty_delta_is_nothing(session):
    refusal = pieces(given(None), given({"refusal": "I "}), given({"refusal": "cannot."}))
    texts, messages = streamed(session, refusal)
    assert texts == ["I ", "cannot."]
    assert messages[1] == {"role": "assistant", "content": None, "refusal": "I cannot."}


@pytest.mark.parametrize("is_async", [True, False])
def test_a_model_that_never_stops_is_asked_only_so_often(session, is_async):
    client, messages = ScriptedClient(*[ADD] * 9, blocking=not is_async), list(ASKED)
    with pytest.raises(SatchelError, match="asked 3 times"):
        if is_async:
            asyncio.run(run_openai(client, session, messages, model="m", max_requests=3))
        else:
            run_openai_sync(client, session, messages, model="m", max_requests=3)
    assert len(client.requests) == 3
    assert [item["role"] for item in messages[1:]] == ["assistant", "tool"] * 3
    assert "max_requests" not in client.requests[0]
    stopped = pieces(add_call(0, "a", '{"a": 1, "b": 1}'), END)
    items = stream_openai(Streaming(stopped), session, list(ASKED), model="m", max_requests=1)
    with pytest.raises(SatchelError, match="asked 1 times"):
        asyncio.run(collect(items))


async def collect(items):
    return [item async for item in items]


def test_leaving_a_stream_ends_the_calls():
    app, ended = Satchel(), asyncio.Event()

    async def count():
        """Count without end."""
        try:
            while True:
                yield "again"
                await asyncio.sleep(0)
        finally:
            ended.set()

    app.register_tool(count)
    client = Streaming(pieces(piece(None, 0, "count", "{}"), END))

    async def main():
        stream = stream_openai(client, app.session(), list(ASKED), model="m")
        async for item in stream:
            if isinstance(item, ToolChunk):
                break
        await stream.aclose()
        await asyncio.wait_for(ended.wait(), 20)

    asyncio.run(main())


@pytest.mark.parametrize("is_async", [True, False])
def test_a_recording_has_the_question_the_steps_and_the_calls_of_every_turn(session, is_async):
    messages, recording = list(ASKED), Recording()
    for answer in ("5", "9"):
        client = ScriptedClient(ADD, answer, blocking=not is_async)
        if is_async:
            asyncio.run(run_openai(client, session, messages, model="m", record=recording))
        else:
            run_openai_sync(client, session, messages, model="m", record=recording)
        messages.append({"role": "user", "content": "And 4 + 5?"})
    kinds = [item["kind"] for item in recording]
    assert kinds == ["message", "step", "message", "call", "step", "message"] * 2
    asked = [it["message"]["content"] for it in recording if it["kind"] == "message"]
    assert asked == ["2 + 3?", None, "5", "And 4 + 5?", None, "9"]
    assert asyncio.run(replay(recording, session)) == ()


def test_a_tool_of_the_provider_hides_one_of_the_session_with_its_name(session, caplog):
    client, own = ScriptedClient("done"), {"type": "web_search", "name": "add"}
    asyncio.run(run_anthropic(client, session, list(ASKED), model="m", tools=[own]))
    offered = [tool for tool in client.requests[0]["tools"] if tool["name"] == "add"]
    assert offered == [own]
    assert "'add'" in caplog.text
