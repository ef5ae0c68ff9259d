"""Skills and tools for agents of pydantic-ai: `Agent(model, toolsets=[toolset(session)])`."""

from dataclasses import dataclass
from typing import Any

from pydantic_ai import ApprovalRequired, BinaryContent, CustomEvent, RunContext, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import from_json

from satchel.adapters.model_request import ModelRequest, SessionSource, session_of
from satchel.provider_messages.message_parts import text_only, text_or_parts
from satchel.tools import Audio, Image, ToolCall, ToolResult

_OWN_NAME = "satchel_name"
"""The metadata of a tool that has its name in the session: toolsets around this one rename it."""

_UNREAD = "satchel_unread"
"""The key for arguments that are no JSON object: the answer to them is that of the session."""


def toolset(source: SessionSource, *, approvals: bool = False) -> "PydanticAIToolset":
    """Return a toolset with the skills and tools of a session, and their prompt as instructions.

    A function as `source` gets the `RunContext` of each run. With `approvals`, a call that needs
    approval ends the run with `DeferredToolRequests`, as pydantic-ai does for its own tools; use
    it with `approve()`. Chunks of a tool arrive as `ToolChunkEvent`s.
    """
    return PydanticAIToolset(source, approvals=approvals)


@dataclass(kw_only=True)
class ToolChunkEvent(CustomEvent):
    """A part of a result, while its tool runs."""

    text: str


class PydanticAIToolset(AbstractToolset[Any]):
    """A toolset; each run has its own copy with the session of that run."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        self._source, self._approvals = source, approvals
        self._request: ModelRequest | None = None

    @property
    def id(self) -> str:
        """The id that pydantic-ai asks for."""
        return "satchel"

    async def for_run(self, ctx: RunContext[Any]) -> "PydanticAIToolset":
        """Return a toolset for one run, so that two runs do not share a step."""
        return PydanticAIToolset(session_of(self._source, ctx), approvals=self._approvals)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Begin a step: this is asked first, once for each request to the model."""
        request = self._request = ModelRequest(session_of(self._source, ctx))
        return {
            item.name: PydanticAITool(
                toolset=self,
                max_retries=1,
                args_validator=AnyArguments(),
                tool_def=ToolDefinition(
                    name=item.name,
                    description=item.description,
                    parameters_json_schema=dict(item.parameters),
                    metadata={_OWN_NAME: item.name},
                ),
                request=request,
            )
            for item in request.tools()
        }

    async def get_instructions(self, ctx: RunContext[Any]) -> str:
        """Return the prompt of the step."""
        request = self._request or ModelRequest(session_of(self._source, ctx))
        return request.prompt()

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a call of the step that offered the tool. Raises `ToolFailed` for a failure."""
        assert isinstance(tool, PydanticAITool)
        arguments = tool_args.get(_UNREAD, tool_args)
        call = ToolCall(name=name, arguments=arguments, id=ctx.tool_call_id or "")
        request, approved = tool.request, ctx.tool_call_approved
        message = _calls_in(ctx, call)
        must_ask = self._approvals and not approved
        if must_ask and request.needs_approval(call, message, messages=ctx.messages):
            raise ApprovalRequired
        items = request.stream(call, message, messages=ctx.messages, approved=approved)
        async for item in items:
            if isinstance(item, ToolResult):
                return _value_of(item)
            await ctx.emit(ToolChunkEvent(text=item.text))
        raise AssertionError("a call yields a result last")


class AnyArguments:
    """Takes all arguments: the session checks them, converts more, and says what is wrong."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Return the arguments, or their text under a key of its own."""
        try:
            value = from_json(input)
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {_UNREAD: input}

    def validate_python(self, input: Any, **_: Any) -> Any:  # noqa: A002
        """Return the arguments."""
        return input


@dataclass(kw_only=True)
class PydanticAITool(ToolsetTool[Any]):
    """A tool, with the request that it was offered in."""

    request: ModelRequest


def _calls_in(ctx: RunContext[Any], call: ToolCall) -> list[ToolCall]:
    """Return the calls of the message that a call is in; a resumed run has others after it."""
    for message in reversed(ctx.messages):
        parts = [part for part in message.parts if part.part_kind == "tool-call"]
        if any(part.tool_call_id == call.id for part in parts):
            return [
                ToolCall(
                    name=_own_name(ctx, part.tool_name),
                    arguments=part.args or {},
                    id=part.tool_call_id,
                )
                for part in parts
            ]
    return []


def _own_name(ctx: RunContext[Any], name: str) -> str:
    """Return the name that a tool has in the session; the model's may be prefixed or renamed."""
    definition = ctx.tool_manager.get_tool_def(name) if ctx.tool_manager else None
    metadata = definition.metadata if definition else None
    return str((metadata or {}).get(_OWN_NAME, name))


def _value_of(result: ToolResult) -> Any:
    if result.is_error:
        raise ToolFailed(text_only(result))
    return text_or_parts(result, _shown, str, media=Image | Audio)


def _shown(block: Image | Audio) -> BinaryContent:
    return BinaryContent(block.data, media_type=block.mime_type)
