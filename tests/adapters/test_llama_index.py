"""What only LlamaIndex does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_index", reason="llama-index-core is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from llama_index.core.agent.workflow import AgentWorkflow, ToolCallResult
from llama_index.core.base.llms.types import CacheControl, CachePoint
from llama_index.core.llms import ChatMessage, TextBlock
from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent
from llama_index_host import Scripted, who_am_i

from satchel import Satchel, ToolCall
from satchel.adapters.llama_index import agent, workflow
from satchel.runtime.middleware import approve
from satchel.testing.adapter_checks import ScriptedModel


def call(name, **arguments):
    return ToolCall(name=name, arguments=arguments, id=f"{name}-id")


def named(name, script, session, **options):
    llm = Scripted(script_of=lambda _: script)
    own = {"name": name, "description": f"agent {name}", "tools": [who_am_i], "streaming": False}
    return agent(session, llm=llm, **own, **options)


def session_with(name):
    app = Satchel()
    app.register_middleware(approve(needs=lambda call: call.name == "second"))
    app.register_tool(lambda: f"it is {name}", name=name, description="Say it.")
    return app.session()


async def answers_of(created):
    handler, answers = created.run("go"), {}
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes", tool_id=event.tool_id))
        if isinstance(event, ToolCallResult):
            answers[event.tool_name] = event.tool_output.content
    await handler
    return answers


def test_the_agents_of_a_workflow_run_their_own_calls_and_hand_over():
    turns = [call("first"), call("second"), call("who_am_i")]
    one = ScriptedModel(turns, [call("handoff", to_agent="b", reason="r")])
    two = ScriptedModel([call("second")])
    a = named("a", one, session_with("first"), can_handoff_to=["b"])
    b = named("b", two, session_with("second"), approvals=True)
    answers = asyncio.run(answers_of(workflow(agents=[a, b], root_agent="a")))
    assert {"first", "who_am_i", "handoff"} <= {*one.requests[0].tools}
    assert answers["first"] == "it is first"
    assert answers["who_am_i"] == "the host's own"
    assert answers["second"] == "it is second"  # of b: the call of a came first
    assert len(two.requests) == 2


def test_a_system_message_of_several_blocks_keeps_them():
    seen = []

    class Seeing(Scripted):
        async def achat_with_tools(self, tools, chat_history=None, **options):
            seen.append(chat_history[0].blocks)
            return await super().achat_with_tools(tools, chat_history, **options)

    app = Satchel()
    app.create_group("notes", notes="Be exact.", active=True)
    app.register_tool(lambda: "x", name="more", description="Do more.", group="notes")
    blocks = [TextBlock(text="Mine."), CachePoint(cache_control=CacheControl(type="ephemeral"))]
    history = [ChatMessage(role="system", blocks=blocks)]
    script = ScriptedModel([call("more")])
    llm = Seeing(script_of=lambda _: script)
    created = agent(app.session(), llm=llm, streaming=False)

    async def main():
        await created.run("go", chat_history=history)

    asyncio.run(main())
    for first, second, ours in seen:
        assert [first, second] == blocks
        assert "Be exact." in ours.text
    assert len(seen) == 2


def test_a_workflow_of_llama_index_itself_is_refused_with_the_name_of_the_right_one():
    created = AgentWorkflow(
        agents=[named("a", ScriptedModel([call("first")]), session_with("first"))]
    )
    with pytest.raises(TypeError, match=r"satchel\.adapters\.llama_index\.workflow"):
        asyncio.run(answers_of(created))
