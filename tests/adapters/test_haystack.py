"""What only Haystack does; it runs in the framework's environment: make adapters."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("haystack", reason="haystack-ai is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack_host import USER, Scripted, read

from satchel import Satchel, ToolCall
from satchel.adapters.haystack import hooks, toolset
from satchel.testing.adapter_checks import ScriptedModel


@pytest.fixture
def app():
    app = Satchel()
    for name in ("first", "second"):
        app.register_tool(lambda name=name: f"it is {name}", name=name, description="Say it.")
    app.create_group("notes", notes="Be exact.", active=True)
    app.register_tool(lambda: "x", name="more", description="Do more.", group="notes")
    return app


def ran(app, messages, **options):
    """Run an agent that calls `first`; return what its model saw, and its system messages."""
    USER.set("ada")
    model = ScriptedModel([ToolCall(name="first", id="1")])
    agent = Agent(
        chat_generator=Scripted(lambda _: model), tools=toolset(app.session()), hooks=hooks()
    )
    done = agent.run(messages=messages, **options)["messages"]
    read(done, model)
    return model, [message for message in done if message.role.value == "system"]


def test_the_metadata_and_the_name_of_a_system_message_stay(app):
    meta = {"cache_control": {"type": "ephemeral"}}
    host = ChatMessage.from_system("Mine.", meta=meta, name="house")
    model, (system,) = ran(app, [host, ChatMessage.from_user("go")])
    assert system.meta["cache_control"] == meta["cache_control"]
    assert system.name == "house"
    assert all(request.prompt.count("Mine.") == 1 for request in model.requests)
    assert "Be exact." in model.requests[1].prompt


def test_a_run_may_choose_tools_by_name(app):
    model, _ = ran(app, [ChatMessage.from_user("go")], tools=["first"])
    assert [request.tools for request in model.requests] == [("first",), ("first",)]
    assert model.answers["1"].text == "it is first"
