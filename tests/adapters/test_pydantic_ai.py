"""What only pydantic-ai does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from satchel import Satchel
from satchel.adapters.pydantic_ai import toolset


def both_needed(plan, _state):
    return None if {item.name for item in plan} == {"add", "double"} else "Call both."


@pytest.mark.parametrize(
    ("wrapped", "names"),
    [
        (lambda tools: tools.prefixed("p"), ("p_add", "p_double")),
        (lambda tools: tools.prefixed("p").prefixed("q"), ("q_p_add", "q_p_double")),
        (lambda tools: tools, ("add", "double")),
    ],
)
def test_a_prefixed_toolset_runs_its_calls_and_judges_them_together(wrapped, names):
    answers = answers_of(wrapped, names, both_needed)
    assert answers == dict(zip(names, ("3", "8"), strict=True))


def test_a_renamed_tool_runs():
    answers = answers_of(lambda tools: tools.renamed({"plus": "add"}), ("plus", "double"), None)
    assert answers == {"plus": "3", "double": "8"}


def answers_of(wrapped, names, policy):
    app = Satchel()
    app.register_tool(lambda a, b: a + b, name="add", description="Add.")
    app.register_tool(lambda a: 2 * a, name="double", description="Double.")
    arguments = ({"a": 1, "b": 2}, {"a": 4})
    calls = [ToolCallPart(name, given, name) for name, given in zip(names, arguments, strict=True)]
    script = iter([ModelResponse(parts=calls), ModelResponse(parts=[TextPart("done")])])
    tools = wrapped(toolset(app.session(plan_policy=policy)))
    agent = Agent(FunctionModel(lambda _messages, _info: next(script)), toolsets=[tools])
    messages = asyncio.run(agent.run("go")).all_messages()
    return {
        part.tool_name: part.model_response_str()
        for message in messages
        for part in message.parts
        if part.part_kind == "tool-return"
    }
