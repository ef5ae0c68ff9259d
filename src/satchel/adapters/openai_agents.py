"""Skills and tools for the OpenAI Agents SDK: `Runner.run(agent(session, name="x"), "Hello")`."""

from dataclasses import dataclass, field
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import (
    ModelRequest,
    ModelRequests,
    OfferedTool,
    SessionSource,
)
from satchel.provider_messages.message_formats import calls_in
from satchel.provider_messages.message_parts import call_of, data_url, text_or_parts
from satchel.tools import Image

with framework("openai-agents"):
    from agents import (
        Agent,
        AgentHooks,
        FunctionTool,
        ModelResponse,
        RunConfig,
        RunContextWrapper,
        Tool,
        ToolOutputImage,
        ToolOutputText,
    )


def agent(source: SessionSource, *, approvals: bool = False, **options: Any) -> "OpenAIAgent":
    """Return an agent with the skills and tools of a session; `options` are those of `Agent`.

    A function as `source` gets the `RunContextWrapper`; its `context` is what the host passed to
    `Runner.run`. With `approvals`, a call that needs approval interrupts the run, as the SDK does
    for its own tools; use it with `approve()`.
    """
    return OpenAIAgent(**options, requests=ModelRequests(source, approvals=approvals))


@dataclass
class OpenAIAgent(Agent[Any]):
    """An agent whose tools and prompt are those of a new step in each turn."""

    requests: ModelRequests = field(default_factory=ModelRequests)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; hooks of a new agent, of `clone` and of later all note the answers."""
        if name == "hooks" and type(value) is not NotingHooks:
            value = NotingHooks(value or AgentHooks())
        super().__setattr__(name, value)

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Begin a step: the SDK asks for the tools first, then for the prompt."""
        own = await super().get_all_tools(run_context)
        request = self.requests.begin(run_context, run_context)
        offered = request.tools({tool.name for tool in own})
        return [*own, *(_tool(request, tool) for tool in offered)]

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        """Return the agent's own instructions and the prompt of the step."""
        request = self.requests.current(run_context, run_context)
        return request.prompt(await super().get_system_prompt(run_context))

    def run_config(self, **options: Any) -> RunConfig:
        """Return a `RunConfig` with which a call of a tool that is off is answered, as any other.

        By default the SDK ends the run. `options` are those of `RunConfig`.
        """
        own = {
            "tool_not_found_behavior": "return_error_to_model",
            "tool_error_formatter": self._answer_to_missing,
        }
        return RunConfig(**{**own, **options})

    async def _answer_to_missing(self, error: Any) -> str | None:
        """Return our words for a call of a tool that the request did not offer."""
        request = self.requests.current(error.run_context, error.run_context)
        calls = [call for call in request.message if call.id == error.call_id]
        if error.kind != "tool_not_found" or not calls:
            return None  # the words of the SDK
        return (await request.run(calls[0])).text


class NotingHooks(AgentHooks[Any]):
    """The host's hooks, which also note the calls of each answer."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattribute__(self, name: str) -> Any:
        """Return what the host's hooks have, so that they keep their own state."""
        if name in {"inner", "on_llm_end"}:
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("inner"), name)

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        """Note the calls of an answer."""
        request = agent.requests.current(context, context)
        request.message = calls_in(response.output, "openai-responses")
        await self.inner.on_llm_end(context, agent, response)


def _tool(request: ModelRequest, tool: OfferedTool) -> FunctionTool:
    async def invoke(context: Any, arguments: str) -> Any:
        result = await request.run(call_of(tool.name, arguments, context.tool_call_id))
        return text_or_parts(result, _shown, lambda words: ToolOutputText(text=words))

    async def needs_approval(_context: Any, arguments: Any, call_id: str) -> bool:
        return request.must_ask(call_of(tool.name, arguments, call_id))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        needs_approval=needs_approval,
    )


def _shown(block: Image) -> ToolOutputImage:
    return ToolOutputImage(image_url=data_url(block.data, block.mime_type))
