"""What only LangChain does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("langchain", reason="langchain is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_host import Scripted, read
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from satchel import Satchel, ToolCall
from satchel.adapters.langchain import middleware
from satchel.runtime.middleware import approve
from satchel.testing.adapter_checks import ScriptedModel

GO = {"messages": [{"role": "user", "content": "go"}]}
TALK = {"configurable": {"thread_id": "one"}}


@pytest.fixture(params=["with a loop", "without a loop"])
def asked(request):
    """An agent that waits for a decision on `remove(name="a")`, and what ran."""
    ran = []
    app = Satchel()
    app.register_middleware(approve())

    @app.register_tool
    def remove(name: str) -> str:
        """Remove a file."""
        ran.append(name)
        return f"removed {name}"

    @app.register_tool
    def rename(name: str) -> str:
        """Rename a file."""
        ran.append(f"new {name}")
        return f"renamed {name}"

    model = ScriptedModel([ToolCall(name="remove", arguments={"name": "a"}, id="1")])
    agent = create_agent(
        Scripted(script_of=lambda _: model),
        middleware=[middleware(app.session(), approvals=True)],
        checkpointer=InMemorySaver(),
    )

    def invoke(state):
        if request.param == "without a loop":
            return agent.invoke(state, TALK)
        return asyncio.run(agent.ainvoke(state, TALK))

    assert invoke(GO)["__interrupt__"]

    def resume(value):
        done = invoke(Command(resume=value))
        if waiting := done.get("__interrupt__"):
            return waiting[0].value
        read(done["messages"], model)
        return model.answers["1"]

    return resume, ran


EDIT = {"type": "edit", "edited_action": {"name": "remove", "args": {"name": "b"}}}


@pytest.mark.parametrize("decision", [{"type": "approve"}, {"decisions": [{"type": "approve"}]}])
def test_an_approved_call_runs(asked, decision):
    resume, ran = asked
    assert resume(decision).text == "removed a"
    assert ran == ["a"]


@pytest.mark.parametrize("decision", [EDIT, {"decisions": [EDIT]}])
def test_an_edited_call_runs_as_it_was_edited(asked, decision):
    resume, ran = asked
    assert resume(decision).text == "removed b"
    assert ran == ["b"]


def test_an_edit_may_choose_another_tool(asked):
    resume, ran = asked
    action = {"name": "rename", "args": {"name": "a"}}
    assert resume({"type": "edit", "edited_action": action}).text == "renamed a"
    assert ran == ["new a"]


def test_a_rejected_call_does_not_run_and_its_reason_is_the_answer(asked):
    resume, ran = asked
    answer = resume({"decisions": [{"type": "reject", "message": "Not this one."}]})
    assert (answer.text, answer.is_error) == ("Not this one.", True)
    assert ran == []


@pytest.mark.parametrize(
    "value",
    [
        "approve",
        True,
        {"type": "maybe"},
        {"type": "edit", "args": {"name": "b"}},
        {"decisions": []},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    ],
)
def test_what_is_no_decision_is_refused_with_the_forms_and_the_call_still_waits(asked, value):
    resume, ran = asked
    for _ in range(2):
        again = resume(value)
        assert again["name"] == "remove"
        assert 'Resume with {"type": "approve"}' in again["error"]
    assert ran == []
    assert resume({"type": "approve"}).text == "removed a"


def test_a_system_message_of_blocks_keeps_them_and_none_is_made_of_nothing():
    seen = []

    class Seeing(Scripted):
        def bind_tools(self, tools, **_):
            return self

        def _generate(self, messages, *arguments, **options):
            seen.append([item.content for item in messages if item.type == "system"])
            return super()._generate(messages, *arguments, **options)

    def run(app, system):
        model = Seeing(script_of=lambda _: ScriptedModel())
        create_agent(model, system_prompt=system, middleware=[middleware(app.session())]).invoke(GO)

    app = Satchel()
    app.create_group("notes", notes="Be exact.", active=True)
    app.register_tool(lambda: "x", name="more", description="Do more.", group="notes")
    blocks = [
        {"type": "text", "text": "Mine.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "More."},
    ]
    run(app, SystemMessage(blocks))
    run(Satchel(), SystemMessage(blocks))
    run(Satchel(), None)
    (first,), (second,), third = seen
    assert first[:2] == second == blocks
    assert "Be exact." in first[2]["text"]
    assert third == []


def test_an_agent_and_a_sub_agent_that_share_the_middleware_do_not_share_a_step():
    app = Satchel()
    app.create_group("art", active=True)
    app.register_tool(lambda: "a circle", name="draw", description="Draw.", group="art")
    ours = middleware(app.session())
    off = ToolCall(name="reset_equipped_tools", arguments={"art": False}, id="1")
    asked = ScriptedModel([off])
    child = create_agent(Scripted(script_of=lambda _: asked), middleware=[ours])
    has_ended = threading.Event()

    @tool
    def delegate() -> str:
        """Ask the other agent."""
        child.invoke(GO)
        has_ended.set()
        return "delegated"

    class Later(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            if request.tool_call["name"] == "draw":
                has_ended.wait()
            return handler(request)

    script = ScriptedModel([ToolCall(name="delegate", id="1"), ToolCall(name="draw", id="2")])
    parent = create_agent(
        Scripted(script_of=lambda _: script), tools=[delegate], middleware=[Later(), ours]
    )
    read(parent.invoke(GO)["messages"], script)
    assert script.answers["2"].text == "a circle"
    assert "draw" not in script.requests[1].tools
