"""Skills and tools for agents of pydantic-ai: `Agent(model, toolsets=[toolset(session)])`."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import ModelRequest, SessionSource, session_of
from satchel.provider_messages.message_parts import call_of, text_only, text_or_parts
from satchel.tools import Audio, Image, ToolCall, ToolResult

with framework("pydantic-ai"):
    from pydantic_ai import ApprovalRequired, BinaryContent, CustomEvent, RunContext, ToolFailed
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import from_json

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
        request = self._request = ModelRequest(self._source, ctx, approvals=self._approvals)
        return {
            item.name: PydanticAITool(
                toolset=self,
                max_retries=1,
                args_validator=AnyArguments(),
                tool_def=ToolDefinition(
                    name=item.name,
                    description=item.description,
                    parameters_json_schema=item.parameters,
                    metadata={_OWN_NAME: item.name},
                ),
                request=request,
            )
            for item in request.tools()
        }

    async def get_instructions(self, ctx: RunContext[Any]) -> str:
        """Return the prompt of the step."""
        return (self._request or ModelRequest(self._source, ctx)).prompt()

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a call of the step that offered the tool. Raises `ToolFailed` for a failure."""
        assert isinstance(tool, PydanticAITool)
        call = call_of(name, tool_args.get(_UNREAD, tool_args), ctx.tool_call_id)
        request, approved = tool.request, ctx.tool_call_approved
        request.message, request.messages = _calls_in(ctx, call), ctx.messages
        if not approved and request.must_ask(call):
            raise ApprovalRequired
        async with aclosing(request.stream(call, approved=approved)) as items:
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
                call_of(_own_name(ctx, part.tool_name), part.args, part.tool_call_id)
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
