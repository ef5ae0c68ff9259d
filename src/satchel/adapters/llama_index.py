"""Skills and tools for LlamaIndex: `await agent(session, llm=llm).run("Hello")`.

Several agents work together in a `workflow(agents=[...])`.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import (
    REFUSED,
    ModelRequest,
    ModelRequests,
    OfferedTool,
    session_of,
)
from satchel.provider_messages.message_parts import call_of, parts_of
from satchel.tools import Image, Text, ToolResult
from satchel.tools import ToolCall as SatchelCall

with framework("llama-index-core"):
    from llama_index.core.agent.workflow import (
        AgentOutput,
        AgentWorkflow,
        FunctionAgent,
        ToolCall,
        ToolCallResult,
    )
    from llama_index.core.llms import ChatMessage, ChatResponse, ImageBlock, TextBlock
    from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
    from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent, step

_IS_OURS = "satchel_workflow"
"""The key in the store of a run that a workflow of this module made."""


def agent(source: Any, *, approvals: bool = False, **options: Any) -> "LlamaIndexAgent":
    """Return a `FunctionAgent` with the skills and tools of a session; `options` are its own.

    A function as `source` gets the `Context` of a run, and may be async: the host puts the user
    there with `await ctx.store.set("user", ...)` and runs the agent with `ctx=ctx`. With
    `approvals`, a call that needs approval sends an `InputRequiredEvent` with `tool_id` and waits
    for a `HumanResponseEvent` with the same `tool_id`, and `response="yes"` or another text; use
    it with `approve()`.
    """
    return LlamaIndexAgent(source=source, approvals=approvals, **options)


def workflow(**options: Any) -> "LlamaIndexWorkflow":
    """Return an `AgentWorkflow` for agents of `agent`, and others; `options` are its own.

    `AgentWorkflow` itself runs the calls of its agents, so it would not find those of Satchel.
    """
    return LlamaIndexWorkflow(**options)


class LlamaIndexAgent(FunctionAgent):
    """An agent whose tools and prompt are those of a new step for each request to the model."""

    source: Any = None
    approvals: bool = False
    _requests: ModelRequests

    def model_post_init(self, context: Any) -> None:
        """Make what is no field of the agent."""
        super().model_post_init(context)
        self._requests = ModelRequests(approvals=self.approvals)

    async def take_step(
        self, ctx: Any, llm_input: list[Any], tools: Sequence[Any], memory: Any
    ) -> AgentOutput:
        """Begin a step, offer its tools and prompt, and note the calls of the answer."""
        names = await ctx.store.get("agents", default=None)
        if names and not await ctx.store.get(_IS_OURS, default=False):
            raise TypeError("agents of Satchel work in satchel.adapters.llama_index.workflow(...)")
        # A run has several contexts and one store.
        request = self._requests.begin(await self._session(ctx), ctx.store)
        offered = request.tools({tool.metadata.name for tool in tools})
        output = await super().take_step(
            ctx,
            _with_prompt(llm_input, request),
            [*tools, *(_described(tool) for tool in offered)],
            memory,
        )
        request.message = _calls_of(output.tool_calls)
        return output

    @step  # type: ignore[untyped-decorator, unused-ignore]
    async def call_tool(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
        """Run a call of the step; the host's own tools run as they did."""
        own = await self.get_tools(ev.tool_name)
        if any(tool.metadata.name == ev.tool_name for tool in own):
            return await super().call_tool(ctx, ev)
        return await self.run_call(ctx, ev)

    async def run_call(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
        """Run a call of a tool of Satchel."""
        request = self._requests.current(await self._session(ctx), ctx.store)
        request.message = request.message or await self._last_calls(ctx)
        call = call_of(ev.tool_name, ev.tool_kwargs, ev.tool_id)
        # The answer to a question runs this step from its start.
        refusal = await self._refusal(ctx, call) if request.must_ask(call) else None
        ctx.write_event_to_stream(ev)
        result = refusal or await request.run(call)
        event = ToolCallResult(
            tool_name=ev.tool_name,
            tool_kwargs=ev.tool_kwargs,
            tool_id=ev.tool_id,
            tool_output=_output(call, result),
            return_direct=False,
        )
        ctx.write_event_to_stream(event)
        return event

    async def _last_calls(self, ctx: Context) -> list[SatchelCall]:
        """Return the calls of the last answer; after a restart, only the context has them."""
        for message in reversed(await ctx.store.get(self.scratchpad_key, [])):
            if message.role == "assistant":
                response = ChatResponse(message=message)
                return _calls_of(
                    self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
                )
        return []

    async def _refusal(self, ctx: Context, call: SatchelCall) -> ToolResult | None:
        """Ask the user before a call; return the result of a no."""
        question = InputRequiredEvent(
            prefix=f"{call.name} needs approval",
            tool_id=call.id,
            tool_name=call.name,
            tool_kwargs=call.arguments,
        )
        answer = await ctx.wait_for_event(
            HumanResponseEvent,
            waiter_event=question,
            waiter_id=f"satchel-{call.id}",
            requirements={"tool_id": call.id},
        )
        if answer.response == "yes":
            return None
        return ToolResult(content=(Text(REFUSED),), is_error=True, error_code="denied")

    async def _session(self, ctx: Any) -> Any:
        session = self.source(ctx) if callable(self.source) else self.source
        return session_of(await session if inspect.isawaitable(session) else session, ctx)


class LlamaIndexWorkflow(AgentWorkflow):
    """A workflow whose agents run their calls of Satchel's tools themselves."""

    async def _init_context(self, ctx: Context, ev: Any) -> None:
        await super()._init_context(ctx, ev)
        await ctx.store.set(_IS_OURS, True)

    @step  # type: ignore[untyped-decorator, unused-ignore]
    async def call_tool(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
        """Run a call of the step; the host's own tools and handoffs run as they did."""
        agent = self.agents[await ctx.store.get("current_agent_name")]
        own = await self.get_tools(agent.name, ev.tool_name)
        is_own = any(tool.metadata.name == ev.tool_name for tool in own)
        if isinstance(agent, LlamaIndexAgent) and not is_own:
            return await agent.run_call(ctx, ev)
        return await super().call_tool(ctx, ev)


class SchemaMetadata(ToolMetadata):
    """Metadata with a JSON Schema; LlamaIndex knows only pydantic models."""

    schema: dict[str, Any]

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return self.schema


def _described(tool: OfferedTool) -> FunctionTool:
    """Return a tool for the model to read; the agent's step `call_tool` runs the calls."""
    metadata = SchemaMetadata(name=tool.name, description=tool.description)
    metadata.schema = tool.parameters
    return FunctionTool(_not_called, metadata)


def _calls_of(calls: Sequence[Any]) -> list[SatchelCall]:
    return [call_of(call.tool_name, call.tool_kwargs, call.tool_id) for call in calls]


def _not_called(**_arguments: Any) -> None:
    raise AssertionError("the agent runs the calls of Satchel")


def _with_prompt(messages: list[Any], request: ModelRequest) -> list[Any]:
    """Return the messages with one system message: the host's own prompt and that of the step."""
    first = messages[0] if messages and messages[0].role.value == "system" else None
    prompt = request.prompt(first.content if first else None)
    system = [ChatMessage(role="system", content=prompt)] if prompt else []
    if first and len(first.blocks) > 1:  # one may be marked for a cache
        blocks = [*first.blocks, TextBlock(text=f"\n\n{request.prompt()}")]
        system = [first.model_copy(update={"blocks": blocks})] if request.prompt() else [first]
    return [*system, *(messages[1:] if first else messages)]


def _output(call: SatchelCall, result: ToolResult) -> ToolOutput:
    return ToolOutput(
        blocks=parts_of(result, _shown, lambda words: TextBlock(text=words)),
        tool_name=call.name,
        raw_input=dict(call.arguments) if not isinstance(call.arguments, str) else {},
        raw_output=result.structured,
        is_error=result.is_error,
    )


def _shown(block: Image) -> ImageBlock:
    return ImageBlock(image=block.data, image_mimetype=block.mime_type)
