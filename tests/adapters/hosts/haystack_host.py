"""Haystack's Agent with a scripted model, asynchronous."""

from contextvars import ContextVar
from types import MappingProxyType

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.human_in_the_loop import (
    AlwaysAskPolicy,
    BlockingConfirmationStrategy,
    ConfirmationUIResult,
)
from haystack.tools import tool

from satchel.adapters.haystack import hooks, toolset
from satchel.testing.adapter_checks import Answered, Cannot

USER = ContextVar("user")


@component
class Scripted:
    def __init__(self, script_of):
        self.script_of = script_of

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None) -> dict:
        script = self.script_of(USER.get())
        read(messages, script)
        prompt = messages[0].text if messages[0].role.value == "system" else ""
        calls = [
            ToolCall(id=call.id, tool_name=call.name, arguments=dict(call.arguments))
            for call in script.answer([item.name for item in tools or []], prompt)
        ]
        message = ChatMessage.from_assistant(tool_calls=calls) if calls else None
        return {"replies": [message or ChatMessage.from_assistant("done")]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: list | None = None) -> dict:
        return self.run(messages, tools)


@tool
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


class AnsweringUI:
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def get_user_confirmation(self, tool_name, tool_description, tool_params):
        self.asked.append(tool_name)
        return ConfirmationUIResult(action="confirm" if self.answer else "reject")


class Host:
    name = "Haystack"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "a_tool_of_the_provider_stays": Cannot(
                "the agent runs all tools",
                "haystack.tools.tool_types",
                "ToolsType = Sequence[Tool | Toolset] | Toolset",
            ),
            "chunks_reach_the_host": Cannot(
                "a tool returns once", "haystack.tools.tool", "result = self.function(**kwargs)"
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        return Agent(
            chat_generator=Scripted(model),
            tools=[*([who_am_i] if tools else []), toolset(source)],
            system_prompt=prompt or None,
            hooks=hooks(),
            max_agent_steps=10_000,
        )

    async def run_asking(self, session, model, *, answer):
        ui = AnsweringUI(answer)
        strategy = BlockingConfirmationStrategy(
            confirmation_policy=AlwaysAskPolicy(), confirmation_ui=ui
        )
        generator = Scripted(lambda _: model)
        agent = Agent(chat_generator=generator, tools=[toolset(session())], hooks=hooks(strategy))
        await self.run(agent, "ada", model)
        return len(ui.asked)

    async def run(self, agent, user, model):
        USER.set(user)
        done = await agent.run_async(messages=[ChatMessage.from_user("go")])
        read(done["messages"], model)

    def user_of(self, context):
        return context or USER.get()


def read(messages, script):
    for message in messages:
        for result in message.tool_call_results or ():
            parts = result.result if isinstance(result.result, list | tuple) else ()
            media = sum(type(part).__name__ == "ImageContent" for part in parts)
            text = result.result if isinstance(result.result, str) else str(parts)
            script.answers[result.origin.id] = Answered(text, result.error, media)
