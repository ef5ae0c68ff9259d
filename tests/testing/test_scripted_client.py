import asyncio

import pytest

from satchel import ToolCall, calls_in
from satchel.testing import ScriptedClient

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CALLS = [
    ToolCall(name="add", arguments={"a": 1}),
    ToolCall(name="add", arguments='{"a": 2}', id="x"),
]


def test_it_gives_one_answer_after_the_other_as_openai_does():
    client = ScriptedClient(CALLS, "done")

    async def main():
        return [await client.chat.completions.create(**ASK) for _ in range(2)]

    first, second = [item.choices[0].message for item in asyncio.run(main())]
    assert [(call.name, call.id) for call in calls_in(first)] == [("add", "call_1_1"), ("add", "x")]
    assert second["content"] == "done"
    assert client.requests == [ASK, ASK]


def test_it_gives_one_answer_after_the_other_as_anthropic_does():
    client = ScriptedClient(CALLS[:1], "done", blocking=True)
    first, second = [client.messages.create(**ASK) for _ in range(2)]
    assert calls_in(first.content, "anthropic") == [CALLS[0].changed(id="call_1_1")]
    assert second.content == [{"type": "text", "text": "done"}]


def test_a_request_beyond_the_script_is_an_error():
    with pytest.raises(AssertionError, match="no answer"):
        ScriptedClient(blocking=True).messages.create(**ASK)
