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
from pydantic_ai.toolsets import CombinedToolset

from satchel import Satchel, ToolCall
from satchel.adapters.pydantic_ai import toolset

TWICE = ("q_p_add", "q_p_double")


def both_needed(plan, _state):
    return None if {item.name for item in plan} == {"add", "double"} else "Call both."


@pytest.mark.parametrize(
    ("wrapped", "names"),
    [
        (lambda tools: tools.prefixed("p"), ("p_add", "p_double")),
        (lambda tools: tools.prefixed("p").prefixed("q"), TWICE),
        (lambda tools: tools, ("add", "double")),
        (lambda tools: tools.renamed({"plus": "add"}), ("plus", "double")),
        (lambda tools: tools.renamed({"plus": "add", "twice": "double"}), ("plus", "twice")),
        (lambda tools: tools.renamed({"double": "add", "add": "double"}), ("double", "add")),
        (lambda tools: tools.renamed({"x": "add"}).prefixed("p"), ("p_x", "p_double")),
        (lambda tools: tools.prefixed("p").renamed({"y": "p_double"}), ("p_add", "y")),
        (lambda tools: CombinedToolset([tools.prefixed("p")]).prefixed("q"), TWICE),
    ],
)
def test_a_toolset_under_other_names_runs_its_calls_and_judges_them_together(wrapped, names):
    answers = answers_of(wrapped, names, both_needed)
    assert answers == dict(zip(names, ("3", "8"), strict=True))


def answers_of(wrapped, names, policy):
    app = Satchel()
    app.register_tool(lambda a, b: a + b, name="add", description="Add.")
    app.register_tool(lambda a: 2 * a, name="double", description="Double.")
    return run(app, wrapped, zip(names, ({"a": 1, "b": 2}, {"a": 4}), strict=True), policy)


@pytest.mark.parametrize("arguments", ['{"a": 1', "[1]", "3"])
def test_arguments_that_are_no_json_object_get_the_words_of_the_session(arguments):
    app = Satchel()
    app.register_tool(lambda a: 2 * a, name="double", description="Double.")
    expected = app.session().step().execute_sync([ToolCall(name="double", arguments=arguments)])
    answers = run(app, lambda tools: tools, [("double", arguments)])
    assert expected[0].text in answers["double"]


def run(app, wrapped, calls, policy=None):
    """Run an agent that makes these calls; return what its model read, by the tool's name."""
    calls = [ToolCallPart(name, arguments, name) for name, arguments in calls]
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
