"""What only LangChain does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("langchain", reason="langchain is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from langchain.agents import create_agent
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

    def invoke(given):
        if request.param == "without a loop":
            return agent.invoke(given, TALK)
        return asyncio.run(agent.ainvoke(given, TALK))

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
