"""Skills and tools for AgentScope 2: `Agent(middlewares=[middleware(session)], ...)`."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import (
    ModelRequest,
    OfferedTool,
    SessionSource,
    name_of,
)
from satchel.provider_messages.message_parts import call_of, parts_of
from satchel.tools import Audio, Image, ToolCall, ToolResult
from satchel.tools.content_blocks import base64_text

with framework("'agentscope>=2'"):
    from agentscope.message import Base64Source, DataBlock, TextBlock, ToolResultState
    from agentscope.middleware import MiddlewareBase
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import ToolBase, ToolChunk, ToolResponse


def middleware(source: SessionSource, *, approvals: bool = False) -> "AgentScopeMiddleware":
    """Return middleware that gives an agent the skills and tools of a session.

    A function as `source` gets the agent. An agent of AgentScope has one conversation, so users
    have agents of their own; they may share the middleware and the toolkit. Chunks of a tool arrive
    as the deltas of `reply_stream`. With `approvals`, the agent asks for confirmation before a call
    that needs approval, as for its own tools; use it with `approve()`.
    """
    return AgentScopeMiddleware(source, approvals=approvals)


class AgentScopeMiddleware(MiddlewareBase):
    """Gives each request to the model the tools and the prompt of one step."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        self._source, self._approvals = source, approvals

    async def on_reply(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., Any]
    ) -> AsyncGenerator[Any, None]:
        """Begin a step if calls wait for an answer of the user that came after a restart."""
        if _message_of(agent) and not isinstance(agent.toolkit, ToolkitWithStep):
            await self._begin(agent)
        async for item in next_handler(**input_kwargs):
            yield item

    async def on_system_prompt(self, agent: Any, current_prompt: str) -> str:
        """Begin a step: the agent asks for the prompt first, then for the tools."""
        request = await self._begin(agent)
        return request.prompt(current_prompt)

    async def _begin(self, agent: Any) -> ModelRequest:
        request = ModelRequest(self._source, agent, approvals=self._approvals)
        own = agent.toolkit.own if isinstance(agent.toolkit, ToolkitWithStep) else agent.toolkit
        schemas = await own.get_tool_schemas([group.name for group in own.tool_groups])
        offered = request.tools({name_of(schema) for schema in schemas})
        agent.toolkit = ToolkitWithStep(
            own, {tool.name: AgentScopeTool(request, tool) for tool in offered}
        )
        return request

    async def on_check_permission(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., Any]
    ) -> PermissionDecision:
        """Have the agent ask before a call that needs approval, if it would let it run."""
        decision: PermissionDecision = await next_handler(**input_kwargs)
        tool, sent = input_kwargs["tool"], input_kwargs["tool_call"]
        is_open = decision.behavior is PermissionBehavior.ALLOW and sent.state != "allowed"
        if is_open and isinstance(tool, AgentScopeTool):
            tool.request.message = tool.request.message or _message_of(agent)
            if tool.request.must_ask(_call_of(sent)):
                return PermissionDecision(
                    behavior=PermissionBehavior.ASK, message=f"{sent.name} needs approval"
                )
        return decision

    async def on_acting(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., Any]
    ) -> AsyncGenerator[Any, None]:
        """Run a call of the step; leave the host's own tools to the agent."""
        sent = input_kwargs["tool_call"]
        tool = await agent.toolkit.get_tool(sent.name)
        if not isinstance(tool, AgentScopeTool):
            async for item in next_handler(**input_kwargs):
                yield item
            return
        response = ToolResponse(id=sent.id)
        request = tool.request
        # Of a message in which some calls wait for the user, the others are answered before.
        request.message = request.message or _message_of(agent)
        has_sent = False
        async with aclosing(request.stream(_call_of(sent))) as items:
            async for item in items:
                is_last = isinstance(item, ToolResult)
                chunk = _chunk(item, is_repeated=is_last and has_sent)
                has_sent = has_sent or not is_last
                yield chunk
                response.append_chunk(chunk)
        yield response


class ToolkitWithStep:
    """The host's toolkit, which several agents may share, with the tools of one agent's step."""

    def __init__(self, own: Any, tools: Mapping[str, "AgentScopeTool"]) -> None:
        self.own, self._tools = own, tools

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    async def get_tool_schemas(self, *groups: Any, **options: Any) -> list[dict[str, Any]]:
        """Return the schemas of the host's tools, and of the tools of the step."""
        own = await self.own.get_tool_schemas(*groups, **options)
        return [*own, *(tool.offered.function() for tool in self._tools.values())]

    async def check_tool_available(self, tool_name: str, activated_groups: list[str]) -> Any:
        """Return a tool of the step, or one of the host's that is active."""
        own = self.own.check_tool_available
        return self._tools.get(tool_name) or await own(tool_name, activated_groups)

    async def get_tool(self, name: str) -> Any:
        """Return a tool of the step, or one of the host's."""
        return self._tools.get(name) or await self.own.get_tool(name)


class AgentScopeTool(ToolBase):
    """A tool, with the request that it was offered in. `AgentScopeMiddleware` runs it."""

    is_concurrency_safe = True
    is_read_only = False
    is_mcp = False

    def __init__(self, request: ModelRequest, tool: OfferedTool) -> None:
        super().__init__()
        self.request, self.offered = request, tool
        self.name, self.description = tool.name, tool.description
        # The agent checks arguments with this; the session converts more, and says what is wrong.
        self.input_schema = {"type": "object"}

    async def check_permissions(self, *_: Any, **__: Any) -> PermissionDecision:
        """Allow the call: rules and `approve` of the session decide."""
        return PermissionDecision(
            behavior=PermissionBehavior.ALLOW, message="the session of Satchel decides"
        )

    async def call(self, **_: Any) -> Any:
        """Refuse: the middleware runs the calls."""
        raise NotImplementedError


def _call_of(sent: Any) -> ToolCall:
    return call_of(sent.name, sent.input, sent.id)


def _message_of(agent: Any) -> list[ToolCall]:
    """Return the calls of the model's last answer, if one of them still waits.

    A message of AgentScope has all answers of a reply, each followed by the results of its calls.
    """
    calls: list[Any] = []
    answered: set[str] = set()
    for block in (block for message in agent.state.context[-1:] for block in message.content):
        if block.type == "tool_result":
            answered.add(block.id)
        elif block.type == "tool_call":
            calls = [*([] if calls and calls[-1].id in answered else calls), block]
    return [_call_of(block) for block in calls if not answered.issuperset(it.id for it in calls)]


def _chunk(item: Any, *, is_repeated: bool) -> ToolChunk:
    """Return what AgentScope adds up; the result repeats the chunks, so only errors count."""
    if not isinstance(item, ToolResult):
        state = ToolResultState.RUNNING
    elif item.is_interrupted:
        state = ToolResultState.INTERRUPTED
    else:
        state = ToolResultState.ERROR if item.is_error else ToolResultState.SUCCESS
    content = parts_of(item, _shown, _said, media=Image | Audio)
    is_sent = is_repeated and state is ToolResultState.SUCCESS
    return ToolChunk(content=[] if is_sent else content, state=state)


def _said(words: str) -> TextBlock:
    return TextBlock(text=words)


def _shown(block: Image | Audio) -> DataBlock:
    source = Base64Source(data=base64_text(block.data), media_type=block.mime_type)
    return DataBlock(source=source)
