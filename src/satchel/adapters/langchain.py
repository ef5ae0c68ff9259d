"""Skills and tools for LangChain: `create_agent(model, middleware=[middleware(session)])`.

The agent is a graph of LangGraph; `invoke`, `ainvoke` and `astream` work, also inside other graphs.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.types import interrupt

from satchel.adapters.model_request import (
    REFUSED,
    ModelRequest,
    ModelRequests,
    OfferedTool,
    SessionSource,
    session_of,
)
from satchel.provider_messages.message_parts import text_only, words_for
from satchel.tools import Audio, Image, ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text

NO_DECISION = (
    'The value is not a decision. Resume with {"type": "approve"}, {"type": "reject", "message": '
    '"..."} or {"type": "edit", "edited_action": {"name": "...", "args": {...}}}, alone or as the '
    'one item of {"decisions": [...]}.'
)


def middleware(source: SessionSource, *, approvals: bool = False) -> "LangChainMiddleware":
    """Return middleware that adds the skills and tools of a session to an agent.

    A function as `source` gets the `runtime` of LangGraph; `runtime.context` is what the host
    passed as `context=`. Chunks of a tool arrive in the stream `custom`, as dicts with `tool`,
    `call_id` and `text`; without an event loop only the whole result arrives. With `approvals`, a
    call that needs approval interrupts the graph as `HumanInTheLoopMiddleware` does for each call;
    use it with `approve()` and a checkpointer.
    """
    return LangChainMiddleware(source, approvals=approvals)


class LangChainMiddleware(AgentMiddleware):
    """Gives each request to the model the tools and the prompt of one step."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        super().__init__()
        self._source, self._requests, self._approvals = source, ModelRequests(), approvals

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Begin a step, and offer its tools and prompt."""
        return await handler(self._with_step(request))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Begin a step, and offer its tools and prompt."""
        return handler(self._with_step(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run a call of the step; the host's own tools run as they did."""
        if request.tool is not None:
            return await handler(request)
        call, message = _call_of(request.tool_call), _message_of(request)

        def write(chunk: Any) -> None:
            part = {"tool": call.name, "call_id": call.id, "text": chunk.text}
            request.runtime.stream_writer(part)

        ours = self._current(request)
        decided = self._decided(ours, call, request)
        if isinstance(decided, ToolMessage):
            return decided
        call = decided
        result = await ours.run(
            call,
            message,
            on_chunk=write,
            approved=self._approvals,
            messages=request.state["messages"],
        )
        return _tool_message(call, result)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a call of the step; the host's own tools run as they did."""
        if request.tool is not None:
            return handler(request)
        call, messages = _call_of(request.tool_call), request.state["messages"]
        ours, message = self._current(request), _message_of(request)
        decided = self._decided(ours, call, request)
        if isinstance(decided, ToolMessage):
            return decided
        call = decided
        result = ours.run_sync(call, message, approved=self._approvals, messages=messages)
        return _tool_message(call, result)

    def _decided(self, ours: ModelRequest, call: ToolCall, request: Any) -> ToolCall | ToolMessage:
        """Interrupt the graph before a call that needs approval.

        Returns the call to run, which a person may have edited, or the answer of a no.
        """
        messages = request.state["messages"]
        if not self._approvals:
            return call
        if not ours.needs_approval(call, _message_of(request), messages=messages):
            return call
        asked: dict[str, Any] = {
            "type": "tool_approval",
            "tool_call_id": call.id,
            "name": call.name,
            "args": call.arguments,
            "description": f"{call.name} needs approval",
        }
        # An exception would be final: the graph keeps the value that it was resumed with.
        while (decided := _decided_by(interrupt(asked), call)) is None:
            asked["error"] = NO_DECISION
        return decided

    def _current(self, request: Any) -> ModelRequest:
        return self._requests.current(session_of(self._source, request.runtime))

    def _with_step(self, request: Any) -> Any:
        ours = self._requests.begin(session_of(self._source, request.runtime))
        taken = {_name_of(tool) for tool in request.tools}
        tools = [_function(item) for item in ours.tools(taken)]
        before = request.system_message.text if request.system_message else None
        return request.override(
            tools=[*request.tools, *tools], system_message=SystemMessage(ours.prompt(before))
        )


def _decided_by(value: Any, call: ToolCall) -> ToolCall | ToolMessage | None:
    """Return the call to run or the answer of a no; `None` if the value is no decision.

    The forms are those of `HumanInTheLoopMiddleware`.
    """
    match value:
        case {"decisions": [decision]}:
            value = decision
    match value:
        case {"type": "approve"}:
            return call
        case {"type": "edit", "edited_action": {"name": str(name), "args": dict(arguments)}}:
            return call.changed(name=name, arguments=arguments)
        case {"type": "reject", **others}:
            text = others.get("message") or REFUSED
            return ToolMessage(text, tool_call_id=call.id, name=call.name, status="error")
    return None


def _function(tool: OfferedTool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _name_of(tool: Any) -> str:
    """Return the name of one of the host's tools, which may be a schema of a provider."""
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name", ""))
    return str(tool.name)


def _call_of(call: Any) -> ToolCall:
    return ToolCall(name=call["name"], arguments=call["args"], id=call["id"] or "")


def _message_of(request: Any) -> list[ToolCall]:
    """Return the calls of the model's last message."""
    last = request.state["messages"][-1]
    return [_call_of(call) for call in getattr(last, "tool_calls", ())]


def _tool_message(call: ToolCall, result: ToolResult) -> ToolMessage:
    has_media = any(isinstance(block, Image | Audio) for block in result.content)
    return ToolMessage(
        [_part(block) for block in result.content] if has_media else text_only(result),
        tool_call_id=call.id,
        name=call.name,
        status="error" if result.is_error else "success",
        artifact=result.structured,
    )


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, Image | Audio):
        kind = "image" if isinstance(block, Image) else "audio"
        return {"type": kind, "base64": base64_text(block.data), "mime_type": block.mime_type}
    return {"type": "text", "text": words_for(block)}
