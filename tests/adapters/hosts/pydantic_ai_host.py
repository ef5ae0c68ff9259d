"""pydantic-ai with a scripted model."""

import json
from types import MappingProxyType

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, UsageLimits, WebSearchTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.profiles import ModelProfile

from satchel.adapters.pydantic_ai import ToolChunkEvent, toolset
from satchel.testing.adapter_checks import Answered

SEARCHING = ModelProfile(supported_native_tools=frozenset({WebSearchTool}))


class Host:
    name = "pydantic-ai"
    own_tool, provider_tool = "who_am_i", "web_search"
    cannot = MappingProxyType({})

    def make(self, source, model, prompt, tools):
        def who_am_i() -> str:
            """Say who it is."""
            return "the host's own"

        agent = Agent(
            deps_type=str,
            toolsets=[toolset(source)],
            tools=[who_am_i] if self.own_tool in tools else [],
            instructions=prompt or None,
            capabilities=[NativeTool(WebSearchTool())] if self.provider_tool in tools else [],
        )
        return agent, model

    async def run(self, agent, user, model):
        agent, scripts = agent
        await self._run(agent, scripts(user), user, user_prompt="go")

    async def run_asking(self, session, model, *, answer):
        def agent():
            return Agent(
                toolsets=[toolset(session(), approvals=True)],
                output_type=[str, DeferredToolRequests],
            )

        result = await self._run(agent(), model, None, user_prompt="go")
        asked = result.output.approvals
        answers = {item.tool_call_id: answer for item in asked}
        await self._run(
            agent(),
            model,
            None,
            message_history=ModelMessagesTypeAdapter.validate_json(result.all_messages_json()),
            deferred_tool_results=DeferredToolResults(approvals=answers),
        )
        return len(asked)

    async def _run(self, agent, script, user, **options):
        async def answer(messages, info):
            read(messages, script)
            names = [tool.name for tool in info.function_tools]
            names += [tool.kind for tool in info.model_request_parameters.native_tools]
            calls = script.answer(names, info.instructions)
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
            deps=user,
            model=FunctionModel(stream_function=answer, profile=SEARCHING),
            event_stream_handler=note_chunks,
            usage_limits=UsageLimits(request_limit=None),
            **options,
        )
        read(result.all_messages(), script)
        return result

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
