"""LlamaIndex's FunctionAgent with a scripted model."""

from types import MappingProxyType
from typing import Any

from llama_index.core.agent.workflow import ToolCallResult
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from satchel import ToolCall
from satchel.adapters.llama_index import agent
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(FunctionCallingLLM):
    script_of: Any = None

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _prepare_chat_with_tools(self, *_, **__):
        return {}

    async def achat_with_tools(self, tools, chat_history=None, **_):
        output = next(item.content for item in chat_history if item.role.value == "user")
        script = self.script_of(output)
        for item in chat_history:
            if item.role.value == "tool":
                read(item.additional_kwargs["tool_call_id"], item.blocks, script)
        first = chat_history[0]
        prompt = first.content if first.role.value == "system" else ""
        calls = script.answer([tool.metadata.name for tool in tools], prompt)
        message = ChatMessage(role="assistant", content="" if calls else "done")
        message.additional_kwargs["calls"] = [call.to_dict() for call in calls]
        return ChatResponse(message=message)

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **_):
        return [
            ToolSelection(tool_id=call.id, tool_name=call.name, tool_kwargs=dict(call.arguments))
            for call in map(ToolCall.from_dict, response.message.additional_kwargs["calls"])
        ]

    def _unused(self, *_, **__):
        raise NotImplementedError

    chat = complete = stream_chat = stream_complete = _unused
    achat = acomplete = astream_chat = astream_complete = _unused


def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


class Host:
    name = "LlamaIndex"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "a_tool_of_the_provider_stays": Cannot(
                "they are options of a model, not of the agent",
                "llama_index.core.agent.workflow.base_agent",
                "tools: Optional[List[Union[BaseTool, Callable]]] = Field(",
            ),
            "chunks_reach_the_host": Cannot(
                "a tool returns once",
                "llama_index.core.tools.types",
                "async def acall(self, input: Any) -> ToolOutput:",
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        async def session_of(ctx):
            return source(await ctx.store.get("user"))

        return agent(
            session_of if callable(source) else source,
            llm=Scripted(script_of=model),
            tools=[FunctionTool.from_defaults(who_am_i)] if tools else [],
            system_prompt=prompt or None,
            streaming=False,
            allow_parallel_tool_calls=True,
        )

    async def run_asking(self, session, model, *, answer):
        def made():
            return agent(
                session(),
                llm=Scripted(script_of=lambda _: model),
                streaming=False,
                allow_parallel_tool_calls=True,
                approvals=True,
            )

        handler, asked = made().run("go"), []
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                asked.append(event.tool_id)
                break
        saved = handler.ctx.to_dict()
        await handler.cancel_run()
        later = made()
        ctx = Context.from_dict(later, saved)
        handler = later.run(ctx=ctx)
        for tool_id in asked:
            message = "yes" if answer else "no"
            handler.ctx.send_event(HumanResponseEvent(response=message, tool_id=tool_id))
        await handler
        return len(asked)

    async def run(self, agent, user, model):
        ctx = Context(agent)
        await ctx.store.set("user", user)
        handler = agent.run(user, ctx=ctx, max_iterations=10_000)
        try:
            async for event in handler.stream_events():
                if isinstance(event, ToolCallResult):
                    output = event.tool_output
                    read(event.tool_id, output.blocks, model, is_error=output.is_error)
            await handler
        finally:
            if not handler.done():
                await handler.cancel_run()

    def user_of(self, context):
        return context


def read(call_id, blocks, script, *, is_error=None):
    before = script.answers.get(call_id)
    flag = before.is_error if before and is_error is None else is_error
    text = " ".join(block.text for block in blocks if block.block_type == "text")
    media = sum(block.block_type == "image" for block in blocks)
    script.answers[call_id] = Answered(text, flag, media)
