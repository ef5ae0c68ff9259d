"""What only Google's ADK does; it runs in the framework's environment: make adapters."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from google.adk.agents import LlmAgent, ParallelAgent
from google_adk_host import Host, Scripted

from satchel.adapters.google_adk import toolset
from satchel.testing.adapter_checks import ScriptedModel, call, make_world


def add_needed(plan, _state) -> str | None:
    return None if "add" in {item.name for item in plan} else "Add first."


def test_a_plan_is_whole_though_another_agent_of_the_run_has_spoken_since(tmp_path):
    world, host = make_world(tmp_path), Host()
    slow_spoke, quick_spoke = asyncio.Event(), asyncio.Event()

    def first():
        slow_spoke.set()
        return [call("nap", "n", seconds=0.01), call("add", "a", a=1, b=2)]

    def last():
        quick_spoke.set()
        return []

    slow, quick = ScriptedModel(first), ScriptedModel([call("add", "q", a=1, b=1)], last)
    world.session().plan_policy = add_needed

    async def wait_for_the_other(tool, args, tool_context):
        await quick_spoke.wait()

    class QuickScripted(Scripted):
        async def generate_content_async(self, llm_request, stream=False):
            await slow_spoke.wait()
            async for response in super().generate_content_async(llm_request, stream):
                yield response

    agents = [
        LlmAgent(
            name="slow",
            model=Scripted(script_of=lambda _: slow),
            before_tool_callback=wait_for_the_other,
            tools=[toolset(world.session())],
        ),
        LlmAgent(
            name="quick",
            model=QuickScripted(script_of=lambda _: quick),
            tools=[toolset(world.session("bob"))],
        ),
    ]
    both = ParallelAgent(name="both", sub_agents=agents)
    asyncio.run(asyncio.wait_for(host.run(both, "ada", slow), 30))
    assert slow.answers["n"].text == "slept", slow.answers
    assert slow.answers["a"].text == "3", slow.answers


def test_without_a_run_there_are_the_tools_of_a_session_and_none_of_a_function(tmp_path, caplog):
    world = make_world(tmp_path)

    async def names(source) -> set[str]:
        agent = Host().make(source, lambda _: ScriptedModel(), "", (Host.own_tool,))
        return {tool.name for tool in await agent.canonical_tools()} - {Host.own_tool}

    assert "add" in asyncio.run(names(world.session()))
    assert asyncio.run(names(lambda context: world.session(context.user_id))) == set()
    assert not caplog.records
