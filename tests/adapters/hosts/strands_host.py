"""Strands Agents with a scripted model."""

import json
from tempfile import TemporaryDirectory
from types import MappingProxyType

from strands import Agent, tool
from strands.models.model import Model
from strands.session import FileSessionManager

from satchel.adapters.strands import plugin
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(Model):
    def __init__(self, script):
        self.script = script

    def update_config(self, **_): ...

    def get_config(self):
        return {}

    async def structured_output(self, *_, **__):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        read(messages, self.script)
        calls = self.script.answer([spec["name"] for spec in tool_specs or []], system_prompt)
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            use = {"name": call.name, "toolUseId": call.id}
            text = json.dumps(dict(call.arguments))
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


@tool
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


class Host:
    name = "Strands Agents"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "a_tool_of_the_provider_stays": Cannot(
                "the agent runs all tools",
                "strands.tools.registry",
                "def register_tool(self, tool: AgentTool) -> None:",
            )
        }
    )

    def make(self, source, model, prompt, tools):
        return plugin(source), prompt, tools

    async def run(self, agent, user, model):
        shared, prompt, own = agent
        # An agent of Strands refuses a second run at the same time, so each user has one.
        agent = Agent(
            agent_id=user,
            model=Scripted(model),
            tools=[who_am_i] if own else [],
            system_prompt=prompt or None,
            plugins=[shared],
            callback_handler=None,
        )
        async for event in agent.stream_async("go"):
            if "tool_stream_event" in event:
                model.chunks.append(event["tool_stream_event"]["data"])
        read(agent.messages, model)

    async def run_asking(self, session, model, *, answer):
        def agent():
            return Agent(
                agent_id="x",
                model=Scripted(model),
                plugins=[plugin(session(), approvals=True)],
                callback_handler=None,
                session_manager=FileSessionManager("one", storage_dir=folder),
            )

        with TemporaryDirectory() as folder:
            return await self._ask(agent, model, answer)

    async def _ask(self, agent, model, answer):
        done = await agent().invoke_async("go")
        answers = [
            {"interruptResponse": {"interruptId": item.id, "response": answer}}
            for item in done.interrupts
        ]
        later = agent()
        await later.invoke_async(answers)
        read(later.messages, model)
        return len(answers)

    def user_of(self, context):
        return context if isinstance(context, str) else context.agent.agent_id


def read(messages, script):
    for message in messages:
        for part in message["content"]:
            if "toolResult" in part:
                result = part["toolResult"]
                text = " ".join(item.get("text", "") for item in result["content"])
                media = sum("image" in item for item in result["content"])
                script.answers[result["toolUseId"]] = Answered(
                    text, result["status"] == "error", media
                )
