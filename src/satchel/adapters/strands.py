"""Skills and tools for Strands Agents: `Agent(plugins=[plugin(session)])`."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from satchel.adapters import framework
from satchel.adapters.model_request import (
    REFUSED,
    ModelRequest,
    OfferedTool,
    SessionSource,
)
from satchel.provider_messages.message_parts import call_of, parts_of
from satchel.tools import Image, ToolCall, ToolResult

with framework("strands-agents"):
    from strands.hooks import (
        AfterModelCallEvent,
        BeforeInvocationEvent,
        BeforeModelCallEvent,
        BeforeToolCallEvent,
    )
    from strands.plugins import Plugin, hook
    from strands.types._events import ToolResultEvent, ToolStreamEvent
    from strands.types.tools import AgentTool


def plugin(source: SessionSource, *, approvals: bool = False) -> "StrandsPlugin":
    """Return a plugin that gives an agent the skills and tools of a session.

    A function as `source` gets an event: its `agent` and `invocation_state` say whose run it is. An
    agent of Strands has one conversation, so users have agents of their own; they may share the
    plugin. Chunks of a tool arrive as `tool_stream_event`s. With `approvals`, a call that needs
    approval interrupts the agent; the response `True` lets it run. Use it with `approve()`.
    """
    return StrandsPlugin(source, approvals=approvals)


class StrandsPlugin(Plugin):
    """Gives each request to the model the tools and the prompt of one step."""

    name = "satchel"

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        self._source, self._approvals = source, approvals
        self._requests: WeakKeyDictionary[Any, ModelRequest] = WeakKeyDictionary()
        self._prompts: WeakKeyDictionary[Any, tuple[str | None, str]] = WeakKeyDictionary()
        super().__init__()

    @hook  # type: ignore[untyped-decorator, unused-ignore]
    def begin(self, event: BeforeModelCallEvent) -> None:
        """Begin a step, and offer its tools and prompt."""
        self._begin(event)

    @hook  # type: ignore[untyped-decorator, unused-ignore]
    def resume(self, event: BeforeInvocationEvent) -> None:
        """Begin a step if calls wait for an answer of the user that came after a restart."""
        waiting = _calls_in(event.agent.messages[-1]) if event.agent.messages else []
        if waiting and event.agent not in self._requests:
            self._begin(event).message = waiting

    def _begin(self, event: Any) -> ModelRequest:
        agent = event.agent
        request = ModelRequest(self._source, event, approvals=self._approvals)
        self._requests[agent] = request
        registry = agent.tool_registry
        offered = registry.dynamic_tools
        for name in [name for name, tool in offered.items() if isinstance(tool, StrandsTool)]:
            del offered[name]
        for tool in request.tools({*registry.registry, *offered}):
            offered[tool.name] = StrandsTool(request, tool)
        agent.system_prompt = self._prompt(agent, request)
        return request

    @hook  # type: ignore[untyped-decorator, unused-ignore]
    def note_calls(self, event: AfterModelCallEvent) -> None:
        """Note all calls of the answer, as rules may be about several."""
        if event.stop_response is not None and event.agent in self._requests:
            self._requests[event.agent].message = _calls_in(event.stop_response.message)

    @hook  # type: ignore[untyped-decorator, unused-ignore]
    def ask(self, event: BeforeToolCallEvent) -> None:
        """Interrupt the agent before a call that needs approval; a no cancels the call."""
        tool, call = event.selected_tool, _call_of(event.tool_use)
        if isinstance(tool, StrandsTool) and tool.request.must_ask(call):
            question = {"tool": call.name, "arguments": call.arguments}
            if event.interrupt("satchel-approval", reason=question) is not True:
                event.cancel_tool = REFUSED

    def _prompt(self, agent: Any, request: ModelRequest) -> str:
        """Return the host's own prompt and that of the step; the host may change its own."""
        before, written = self._prompts.get(agent, (None, ""))
        if agent.system_prompt != written:
            before = agent.system_prompt
        written = request.prompt(before)
        self._prompts[agent] = before, written
        return written


class StrandsTool(AgentTool):
    """A tool, with the request that it was offered in."""

    def __init__(self, request: ModelRequest, tool: OfferedTool) -> None:
        super().__init__()
        self.request, self._tool = request, tool

    @property
    def tool_name(self) -> str:
        """The name of the tool."""
        return self._tool.name

    @property
    def tool_spec(self) -> dict[str, Any]:
        """The description and the schema for the model."""
        return {
            "name": self._tool.name,
            "description": self._tool.description,
            "inputSchema": {"json": self._tool.parameters},
        }

    @property
    def tool_type(self) -> str:
        """What kind of tool it is; Strands shows it in traces."""
        return "satchel"

    async def stream(
        self, tool_use: Any, _invocation_state: Any, **_: Any
    ) -> AsyncGenerator[Any, None]:
        """Run a call of the step; yield each chunk, and last the result."""
        async with aclosing(self.request.stream(_call_of(tool_use))) as items:
            async for item in items:
                if isinstance(item, ToolResult):
                    yield ToolResultEvent(_result_of(item, tool_use["toolUseId"]))
                else:
                    yield ToolStreamEvent(tool_use, item.text)


def _call_of(tool_use: Any) -> ToolCall:
    return call_of(tool_use["name"], tool_use["input"], tool_use["toolUseId"])


def _calls_in(message: Any) -> list[ToolCall]:
    return [_call_of(part["toolUse"]) for part in message["content"] if "toolUse" in part]


def _result_of(result: ToolResult, call_id: str) -> dict[str, Any]:
    return {
        "toolUseId": call_id,
        "status": "error" if result.is_error else "success",
        "content": parts_of(result, _shown, lambda words: {"text": words}),
    }


def _shown(block: Image) -> dict[str, Any]:
    kind = block.mime_type.removeprefix("image/")
    return {"image": {"format": kind, "source": {"bytes": block.data}}}
