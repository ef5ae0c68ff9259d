"""pydantic-ai with a scripted model."""

import json
from types import MappingProxyType

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from satchel.adapters.pydantic_ai import ToolChunkEvent, toolset
from satchel.testing.adapter_checks import Answered


class Host:
    name = "pydantic-ai"
    own_tool = "who_am_i"
    cannot = MappingProxyType({})

    def make(self, source, model, prompt):
        def who_am_i() -> str:
            """Say who it is."""
            return "the host's own"

        agent = Agent(
            deps_type=str,
            toolsets=[toolset(source)],
            tools=[who_am_i],
            instructions=prompt or None,
        )
        return agent, model

    async def run(self, agent, user, model):
        agent, scripts = agent
        script = scripts(user)

        async def answer(messages, info):
            read(messages, script)
            calls = script.answer([tool.name for tool in info.function_tools], info.instructions)
            if not calls:
                yield "done"
            for at, call in enumerate(calls):
                yield {
                    at: DeltaToolCall(
                        call.name, json.dumps(dict(call.arguments)), tool_call_id=call.id
                    )
                }

        async def note_chunks(_ctx, events):
            async for event in events:
                if isinstance(event, ToolChunkEvent):
                    script.chunks.append(event.text)

        result = await agent.run(
            "go",
            deps=user,
            model=FunctionModel(stream_function=answer),
            event_stream_handler=note_chunks,
            usage_limits=UsageLimits(request_limit=None),
        )
        read(result.all_messages(), script)

    def user_of(self, context):
        return getattr(context, "deps", context)


def read(messages, script):
    for message in messages:
        for part in message.parts:
            if part.part_kind == "tool-return":
                media = len(part.files)
                script.answers[part.tool_call_id] = Answered(
                    part.model_response_str(), part.outcome == "failed", media
                )
            elif part.part_kind == "retry-prompt":
                script.answers[part.tool_call_id] = Answered(part.model_response(), True)
