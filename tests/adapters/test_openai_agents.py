"""What only the OpenAI Agents SDK does; it runs in the framework's environment: make adapters."""

import asyncio

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")

from agents import AgentHooks, RunConfig, Runner
from agents.exceptions import ModelBehaviorError
from agents.testing import ScriptedModel, assistant_message, function_call

from satchel import Satchel
from satchel.adapters.openai_agents import agent
from satchel.testing import write_plugin

TOOLS = """
from satchel import tool

@tool
def draw(size: int) -> str:
    "Draw."
    return f"a circle of {size}"
"""


def answers_of(folder, first, **options):
    write_plugin(folder, "art", TOOLS, active=False)
    later = function_call("draw", {"size": 4}, call_id="later")
    turns = [first, [later], [assistant_message("done")]]
    ours = agent(Satchel(plugins=[folder]).session(), name="x", model=ScriptedModel(turns))
    config = ours.run_config(tracing_disabled=True, **options)
    items = asyncio.run(Runner.run(ours, "go", run_config=config)).to_input_list()
    return {i["call_id"]: i["output"] for i in items if i.get("type") == "function_call_output"}


def test_a_call_of_a_tool_that_is_off_is_answered_and_the_run_continues(tmp_path):
    first = [
        function_call("reset_equipped_tools", {"art": True}, call_id="on"),
        function_call("draw", {"size": 3}, call_id="early"),
        function_call("nothing", {}, call_id="unknown"),
    ]
    answers = answers_of(tmp_path, first)
    assert "active from the next step on" in answers["early"]
    assert answers["unknown"] == "There is no tool 'nothing'."
    assert "a circle of 4" in str(answers["later"])
    off = answers_of(tmp_path / "other", [function_call("draw", {"size": 3}, call_id="early")])
    assert "Call reset_equipped_tools with 'art'" in off["early"]


def test_the_host_may_have_the_run_end_as_the_sdk_does(tmp_path):
    first = [function_call("draw", {"size": 3}, call_id="early")]
    with pytest.raises(ModelBehaviorError, match="draw not found"):
        answers_of(tmp_path, first, tool_not_found_behavior="raise_error")


class Counting(AgentHooks):
    def __init__(self):
        self.tools = self.answers = 0

    async def on_tool_start(self, *_):
        self.tools += 1

    async def on_llm_end(self, *_):
        self.answers += 1


@pytest.mark.parametrize("way", ["given", "cloned", "set"])
def test_the_hosts_hooks_keep_their_state_and_a_rule_sees_the_whole_message(way):
    def both(plan, _state):
        return None if len(plan) == 2 else "Call both."

    app = Satchel()
    app.register_tool(lambda: "drawn", name="draw", description="Draw.")
    turns = [[function_call("draw", {}, call_id=it) for it in "ab"], [assistant_message("done")]]
    options, hooks = {"name": "x", "model": ScriptedModel(turns)}, Counting()
    if way == "given":
        options["hooks"] = hooks
    ours = agent(app.session(plan_policy=both), **options)
    if way == "cloned":
        ours = ours.clone(hooks=hooks)
    elif way == "set":
        ours.hooks = hooks
    ours = ours.clone(instructions="Be brief.")
    done = asyncio.run(Runner.run(ours, "go", run_config=RunConfig(tracing_disabled=True)))
    outputs = [it["output"] for it in done.to_input_list() if it.get("type", "").endswith("output")]
    assert [str(item) for item in outputs if "drawn" in str(item)] == [str(it) for it in outputs]
    assert (hooks.tools, hooks.answers) == (2, 2)
    assert isinstance(ours.hooks, Counting)
