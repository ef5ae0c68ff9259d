"""smolagents with a scripted model: `run` in a thread."""

import asyncio
from types import MappingProxyType

from smolagents import tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)

from satchel.adapters.smolagents import agent
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(Model):
    def __init__(self, script):
        super().__init__(model_id="scripted")
        self.script = script

    def generate(
        self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **_
    ):
        names = [item.name for item in tools_to_call_from or []]
        prompt = "".join(part["text"] for part in messages[0].content)
        calls = self.script.answer(names, prompt)
        created = [(call.name, dict(call.arguments), call.id) for call in calls]
        created = created or [("final_answer", {"answer": "done"}, "final")]
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content="",
            tool_calls=[
                ChatMessageToolCall(
                    id=call_id,
                    type="function",
                    function=ChatMessageToolCallFunction(name=name, arguments=arguments),
                )
                for name, arguments, call_id in created
            ],
        )


@tool
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


AGENTS, EXECUTED = (
    "smolagents.agents",
    "tool_call_result = self.execute_tool_call(tool_name, tool_arguments)",
)


class Host:
    name = "smolagents"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "the_framework_asks_for_approval": Cannot(
                "the agent has no confirmation: approve(ask)", AGENTS, EXECUTED
            ),
            "a_tool_of_the_provider_stays": Cannot(
                "the agent runs all tools",
                AGENTS,
                "available_tools = {**self.tools, **self.managed_agents}",
            ),
            "errors_are_marked": Cannot(
                "a raised error ends the other calls of the step",
                AGENTS,
                "tool_output = future.result()",
            ),
            "pictures_arrive": Cannot(
                "an observation is a text",
                AGENTS,
                r'memory_step.observations += tool_output.observation + "\n"',
            ),
            "chunks_reach_the_host": Cannot("a tool returns once", AGENTS, EXECUTED),
            "cancelling_reaches_the_tool": Cannot(
                "the agent looks for an interruption between its steps only",
                AGENTS,
                "while not returned_final_answer and self.step_number <= max_steps:\n"
                "if self.interrupt_switch:",
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        return source, prompt, tools

    async def run(self, agent_of, user, model):
        source, prompt, own = agent_of
        created = agent(
            source,
            name=user,
            description="",
            tools=[who_am_i] if own else [],
            model=Scripted(model),
            instructions=prompt or None,
            verbosity_level=0,
            max_steps=10_000,
        )

        def talk():
            for item in created.run("go", stream=True):
                if type(item).__name__ == "ToolOutput" and item.id != "final":
                    model.answers[item.id] = Answered(str(item.observation))

        await asyncio.to_thread(talk)

    def user_of(self, context):
        return context if isinstance(context, str) else context.name
