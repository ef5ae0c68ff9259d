"""Skills and tools for Google's ADK: `LlmAgent(tools=[toolset(session)], ...)`."""

from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import (
    REFUSED,
    ModelRequest,
    ModelRequests,
    OfferedTool,
    SessionSource,
    report_clash,
)
from satchel.provider_messages.message_formats import calls_in
from satchel.provider_messages.message_parts import TAKEN, call_of, media_of, text_only, words_for
from satchel.session.session import Session
from satchel.tools import ToolCall, ToolResult

with framework("google-adk"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai import types


def toolset(source: SessionSource, *, approvals: bool = False) -> "AdkToolset":
    """Return a toolset with the skills and tools of a session, and their prompt as instructions.

    A function as `source` gets the `ReadonlyContext` of ADK; `context.user_id` and
    `context.session` say whose run it is. With `approvals`, a call that needs approval waits for
    ADK's confirmation of tools; use it with `approve()`.
    """
    return AdkToolset(source, approvals=approvals)


class AdkToolset(BaseToolset):
    """Gives each request to the model the tools and the prompt of one step."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        super().__init__()
        self._source, self._requests = source, ModelRequests(source, approvals=approvals)
        # Otherwise ADK 2.13 asks for the tools once for a whole run.
        self._use_invocation_cache = False

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        """Begin a step: ADK asks for the tools before it asks for the instructions."""
        if readonly_context is None and not isinstance(self._source, Session):
            return []  # a picture or a card of an agent is drawn: there is no run, so no session
        request = self._requests.begin(readonly_context)
        return [AdkTool(request, tool) for tool in request.tools()]

    async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
        """Add the prompt of the step to the instructions."""
        request = self._requests.current(tool_context)
        if prompt := request.prompt():
            llm_request.append_instructions([prompt])


class AdkTool(BaseTool):
    """A tool, with the request that it was offered in."""

    def __init__(self, request: ModelRequest, tool: OfferedTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._request, self._tool = request, tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        """Return the schema; ADK's own hook for it has this name."""
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self._tool.parameters,
        )

    async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
        """Add the tool to a request, unless the host's own has its name."""
        if self.name in llm_request.tools_dict:
            report_clash(self.name)
        else:
            await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        """Run a call of the step."""
        call = call_of(self.name, args, tool_context.function_call_id)
        request, answer = self._request, tool_context.tool_confirmation
        request.message = _message_of(tool_context)
        if answer is None and request.must_ask(call):
            tool_context.request_confirmation(hint=f"{self.name} needs approval")
            tool_context.actions.skip_summarization = True  # as ADK does for its own tools
            return {"error": "This call waits for the user's confirmation."}
        if answer is not None and not answer.confirmed:
            return {"error": REFUSED}
        approved = request.approvals and answer is not None
        return _response(await request.run(call, approved=approved))


def _message_of(tool_context: Any) -> list[ToolCall]:
    """Return the calls of the message that a call is in; another agent may have spoken since."""
    for event in reversed(tool_context.session.events):
        if any(call.id == tool_context.function_call_id for call in event.get_function_calls()):
            return calls_in(event.content, "gemini")
    return []


def _response(result: ToolResult) -> dict[str, Any]:
    """Return text under `result` or `error`; ADK turns parts into parts of the response."""
    shown = [media_of(block, TAKEN["gemini"]) for block in result.content]
    media = [it for it in shown if it]
    others = [block for block, it in zip(result.content, shown, strict=True) if not it]
    text = "\n".join(map(words_for, others)) if media else text_only(result)
    parts = [types.Part.from_bytes(data=data, mime_type=kind) for data, kind in media]
    return {"error" if result.is_error else "result": text, **({"media": parts} if parts else {})}
