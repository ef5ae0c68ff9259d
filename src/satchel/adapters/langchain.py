"""Skills and tools for LangChain: `create_agent(model, middleware=[middleware(session)])`.

The agent is a graph of LangGraph; `invoke`, `ainvoke` and `astream` work, also inside other graphs.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from satchel.adapters import framework
from satchel.adapters.model_request import (
    REFUSED,
    ModelRequest,
    ModelRequests,
    OnChunk,
    SessionSource,
    name_of,
)
from satchel.provider_messages.message_parts import call_of, text_or_parts
from satchel.tools import Audio, Image, ToolCall, ToolResult
from satchel.tools.content_blocks import base64_text

with framework("langchain"):
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import SystemMessage, ToolMessage
    from langgraph.types import interrupt

_KEPT = 1000
"""How many answers whose run did not ask the model again are remembered: those wait or ended."""

NO_DECISION = (
    'The value is not a decision. Resume with {"type": "approve"}, {"type": "reject", "message": '
    '"..."} or {"type": "edit", "edited_action": {"name": "...", "args": {...}}}, alone or as the '
    'one item of {"decisions": [...]}.'
)


def middleware(source: SessionSource, *, approvals: bool = False) -> "LangChainMiddleware":
    """Return middleware that adds the skills and tools of a session to an agent.

    A function as `source` gets the `runtime` of LangGraph; `runtime.context` is what the host
    passed as `context=`. Chunks of a tool arrive in the stream `custom`, as dicts with `tool`,
    `call_id` and `text`. With `approvals`, a call that needs approval interrupts the graph as
    `HumanInTheLoopMiddleware` does for each call; use it with `approve()` and a checkpointer.
    """
    return LangChainMiddleware(source, approvals=approvals)


class LangChainMiddleware(AgentMiddleware):
    """Gives each request to the model the tools and the prompt of one step."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        super().__init__()
        self._requests = ModelRequests(source, approvals=approvals)
        # Runs of one session have nothing in common with their calls but the answer's id.
        self._by_answer: OrderedDict[str, ModelRequest] = OrderedDict()

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Begin a step, and offer its tools and prompt."""
        ours = self._begin(request)
        return self._noted(ours, await handler(_with_step(request, ours)))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Begin a step, and offer its tools and prompt."""
        ours = self._begin(request)
        return self._noted(ours, handler(_with_step(request, ours)))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run a call of the step; the host's own tools run as they did."""
        if request.tool is not None:
            return await handler(request)
        ours, call = self._decided(request)
        if isinstance(call, ToolMessage):
            return call
        return _tool_message(call, await ours.run(call, on_chunk=_writer(request, call)))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a call of the step; the host's own tools run as they did."""
        if request.tool is not None:
            return handler(request)
        ours, call = self._decided(request)
        if isinstance(call, ToolMessage):
            return call
        return _tool_message(call, ours.run_sync(call, on_chunk=_writer(request, call)))

    def _decided(self, request: Any) -> tuple[ModelRequest, ToolCall | ToolMessage]:
        """Interrupt the graph before a call that needs approval.

        Returns the call to run, which a person may have edited, or the answer of a no.
        """
        messages = request.state["messages"]
        ours = self._by_answer.get(messages[-1].id or "") or self._requests.current(request.runtime)
        ours.messages = messages
        ours.message = [_call_of(call) for call in getattr(messages[-1], "tool_calls", ())]
        call = _call_of(request.tool_call)
        if not ours.must_ask(call):
            return ours, call
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
        return ours, decided

    def _begin(self, request: Any) -> ModelRequest:
        """Begin a step; the calls of the earlier answers of this run have ended."""
        for message in request.messages:
            self._by_answer.pop(message.id or "", None)
        return self._requests.begin(request.runtime)

    def _noted(self, ours: ModelRequest, response: Any) -> Any:
        """Keep a request for the calls of its answer."""
        for message in response.result:
            if getattr(message, "tool_calls", ()):
                message.id = message.id or str(uuid4())
                self._by_answer[message.id] = ours
        while len(self._by_answer) > _KEPT:
            self._by_answer.popitem(last=False)
        return response


def _with_step(request: Any, ours: ModelRequest) -> Any:
    """Return a request to the model with the tools and the prompt of a step."""
    taken = {name_of(tool) for tool in request.tools}
    tools = [item.function() for item in ours.tools(taken)]
    host = request.system_message or SystemMessage("")
    if isinstance(host.content, str):
        content: Any = ours.prompt(host.content)
    else:  # blocks, of which one may be marked for a cache
        content = [*host.content, _said(f"\n\n{ours.prompt()}")] if ours.prompt() else host.content
    system = host.model_copy(update={"content": content}) if content else None
    return request.override(tools=[*request.tools, *tools], system_message=system)


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


def _call_of(call: Any) -> ToolCall:
    return call_of(call["name"], call["args"], call["id"])


def _writer(request: Any, call: ToolCall) -> OnChunk:
    """Return what puts the chunks of a call into the stream of the graph."""
    write = request.runtime.stream_writer
    return lambda chunk: write({"tool": call.name, "call_id": call.id, "text": chunk.text})


def _tool_message(call: ToolCall, result: ToolResult) -> ToolMessage:
    return ToolMessage(
        text_or_parts(result, _shown, _said, media=Image | Audio),
        tool_call_id=call.id,
        name=call.name,
        status="error" if result.is_error else "success",
        artifact=result.structured,
    )


def _said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _shown(block: Image | Audio) -> dict[str, Any]:
    kind = "image" if isinstance(block, Image) else "audio"
    return {"type": kind, "base64": base64_text(block.data), "mime_type": block.mime_type}
