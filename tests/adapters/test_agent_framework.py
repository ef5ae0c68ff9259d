"""What only Agent Framework does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("agent_framework", reason="agent-framework is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from agent_framework import Agent, ChatResponse, ChatResponseUpdate, Message, ResponseStream, tool
from agent_framework_host import Scripted, read, who_am_i

from satchel import Satchel
from satchel.adapters.agent_framework import provider
from satchel.testing.adapter_checks import ScriptedModel, call, make_world

WEB_SEARCH = {"type": "web_search"}


class Keeping(Scripted):
    """Keeps the options of each request, and streams if it is asked to."""

    def _inner_get_response(self, *, messages, stream, options, **_):
        self.seen.append(dict(options))
        named = [item for item in options.get("tools") or [] if hasattr(item, "name")]
        answer = self._answer(messages, {**options, "tools": named})
        if stream:
            return ResponseStream(parts_of(answer), finalizer=ChatResponse.from_updates)
        return answer


async def parts_of(answer):
    for message in (await answer).messages:
        for content in message.contents:
            yield ChatResponseUpdate(contents=[content], role="assistant")


def agent_of(session, model, *tools) -> Agent:
    client = Keeping()
    client.script_of, client.seen = lambda _said: model, []
    return Agent(client=client, tools=list(tools), context_providers=[provider(session)])


def run(agent, model) -> None:
    read(asyncio.run(agent.run("ada")).messages, model)


def test_a_hosted_tool_without_a_name_stays(tmp_path):
    world, model = make_world(tmp_path), ScriptedModel([call("add", "a", a=1, b=2)])
    agent = agent_of(world.session(), model, WEB_SEARCH)
    run(agent, model)
    assert model.answers["a"].text == "3"
    assert all(WEB_SEARCH in options["tools"] for options in agent.client.seen)


@pytest.mark.parametrize(
    "own", [{"type": "function", "name": "add"}, {"type": "function", "function": {"name": "add"}}]
)
def test_a_tool_that_the_host_describes_as_a_mapping_hides_one_with_its_name(tmp_path, own, caplog):
    world, model = make_world(tmp_path), ScriptedModel()
    agent = agent_of(world.session(), model, own)
    run(agent, model)
    assert own in agent.client.seen[0]["tools"]
    assert "add" not in model.requests[0].tools
    assert "'add'" in caplog.text


def test_a_tool_of_one_run_with_a_taken_name_is_refused_by_the_framework(tmp_path):
    world, model = make_world(tmp_path), ScriptedModel()
    world.app.register_tool(lambda: "not this", name="who_am_i", description="Not this one.")
    agent = agent_of(world.session(), model)
    with pytest.raises(ValueError, match="'who_am_i'"):
        asyncio.run(agent.run("ada", tools=[who_am_i]))


def test_without_any_tool_an_agent_runs_and_the_first_one_is_in_its_next_run():
    app = Satchel()
    model = ScriptedModel((), [call("late", "l")])
    agent = agent_of(app.session(), model)
    run(agent, model)
    # Providers refuse an empty list and an empty system message.
    assert agent.client.seen[0]["tools"] is None
    assert agent.client.seen[0]["instructions"] is None
    app.register_tool(lambda: "here", name="late", description="Come late.")
    run(agent, model)
    assert model.requests[1].tools == ("late",)
    assert model.answers["l"].text == "here"


def test_a_call_that_waited_for_the_approval_of_another_runs(tmp_path):
    world = make_world(tmp_path)

    @tool(approval_mode="always_require")
    def delete() -> str:
        """Delete everything."""
        return "deleted"

    model = ScriptedModel([call("delete", "d"), call("add", "a", a=1, b=2)])
    agent = agent_of(world.session(), model, delete)

    async def ask_and_approve():
        talk = agent.create_session(session_id="ada")
        asked = await agent.run("ada", session=talk)
        approved = [item.to_function_approval_response(True) for item in asked.user_input_requests]
        return await agent.run(Message(role="user", contents=approved), session=talk)

    read(asyncio.run(ask_and_approve()).messages, model)
    assert model.answers["d"].text == "deleted"
    assert model.answers["a"].text == "3"


def test_a_streamed_message_is_one_plan(tmp_path):
    world, judged = make_world(tmp_path), []
    world.session().plan_policy = lambda plan, _state: judged.append(len(plan))
    model = ScriptedModel([call("nap", "n", seconds=0.01), call("add", "a", a=1, b=2)])

    async def stream():
        answer = agent_of(world.session(), model, who_am_i).run("ada", stream=True)
        async for _ in answer:
            pass
        return await answer.get_final_response()

    read(asyncio.run(stream()).messages, model)
    assert judged == [2]
    assert model.answers["a"].text == "3"
