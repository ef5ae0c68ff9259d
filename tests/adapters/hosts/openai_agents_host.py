"""The OpenAI Agents SDK with a scripted model."""

import json
from types import MappingProxyType

from agents import (
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    Usage,
    WebSearchTool,
    function_tool,
)
from agents.testing import assistant_message, function_call

from satchel.adapters.openai_agents import agent
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(Model):
    def __init__(self, script):
        self.script = script

    async def get_response(self, system_instructions, input, model_settings, tools, *_, **__):  # noqa: A002
        read(input, self.script)
        calls = self.script.answer([tool.name for tool in tools], system_instructions)
        output = [function_call(c.name, dict(c.arguments), call_id=c.id) for c in calls]
        return ModelResponse(
            output=output or [assistant_message("done")], usage=Usage(), response_id=None
        )

    def stream_response(self, *_, **__):
        raise NotImplementedError


@function_tool
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


OWN = {"who_am_i": who_am_i, "web_search": WebSearchTool()}


class Host:
    name = "OpenAI Agents SDK"
    own_tool, provider_tool = "who_am_i", "web_search"
    cannot = MappingProxyType(
        {
            "errors_are_marked": Cannot(
                "an output has no error flag",
                "agents.items",
                "output_item: FunctionCallOutput = {\n"
                '"call_id": tool_call.call_id,\n'
                '"output": converted_output,\n'
                '"type": "function_call_output",\n}',
            ),
            "an_approval_survives_a_restart": Cannot(
                "the call runs, but a rule sees it alone: the agent is not given the answer it "
                "is in",
                "agents.run_internal.turn_resolution",
                "current_tool_inventory = await execution_agent.get_all_tools(context_wrapper)",
            ),
            "chunks_reach_the_host": Cannot(
                "a tool returns once",
                "agents.tool",
                "on_invoke_tool: Callable[[ToolContext[Any], str], Awaitable[Any]]",
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        return agent(source, name="x", instructions=prompt or None, tools=[OWN[it] for it in tools])

    async def run(self, agent, user, model):
        config = RunConfig(model=Scripted(model), tracing_disabled=True)
        done = await Runner.run(agent, user, context=user, run_config=config, max_turns=None)
        read(done.to_input_list(), model)

    async def run_asking(self, session, model, *, answer):
        config = RunConfig(model=Scripted(model), tracing_disabled=True)
        first = session()
        ours = agent(first, name="x", approvals=True)
        done = await Runner.run(ours, "go", run_config=config)
        if (later := session()) is not first:
            ours = agent(later, name="x", approvals=True)
        state = await RunState.from_json(ours, done.to_state().to_json())
        asked = state.get_interruptions()
        for item in asked:
            (state.approve if answer else state.reject)(item)
        done = await Runner.run(ours, state, run_config=config)
        read(done.to_input_list(), model)
        return len(asked)

    def user_of(self, context):
        return context if isinstance(context, str) else context.context


def read(items, script):
    for item in items if isinstance(items, list) else ():
        if item.get("type") == "function_call_output":
            output = item["output"]
            blocks = output if isinstance(output, list) else []
            media = sum(block["type"] == "input_image" for block in blocks)
            text = output if isinstance(output, str) else json.dumps(output)
            script.answers[item["call_id"]] = Answered(text, None, media)
