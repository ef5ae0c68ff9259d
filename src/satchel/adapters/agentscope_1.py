"""Skills and tools for AgentScope 1: `agent(session, name="ada", model=model, ...)`."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import ModelRequest, SessionSource
from satchel.provider_messages.message_parts import call_of, parts_of
from satchel.tools import Image, ToolCall, ToolResult
from satchel.tools.content_blocks import base64_text

with framework("'agentscope<2'"):
    from agentscope.agent import ReActAgent
    from agentscope.message import Base64Source, ImageBlock, TextBlock
    from agentscope.tool import Toolkit, ToolResponse


def agent(source: SessionSource, *, toolkit: Any = None, **options: Any) -> Any:
    """Return a `ReActAgent` with the skills and tools of a session; `options` are its own.

    A function as `source` gets the agent. An agent of AgentScope has one conversation, so users
    have agents of their own. The tools of `toolkit` stay. Chunks of a tool are printed messages.
    """
    own = toolkit or Toolkit()
    react_agent = ReActAgent(toolkit=own, **options)
    offered = react_agent.toolkit = _toolkit_beside(own)

    def begin(agent: Any, _arguments: Any) -> None:
        offered.request = ModelRequest(source, agent)

    def note_calls(_agent: Any, _arguments: Any, message: Any) -> None:
        offered.request.message = [
            _call_of(block) for block in message.get_content_blocks("tool_use")
        ]

    react_agent.register_instance_hook("pre_reasoning", "satchel", begin)
    react_agent.register_instance_hook("post_reasoning", "satchel", note_calls)
    return react_agent


def _toolkit_beside(own: Any) -> Any:
    """Return a toolkit with the host's tools and groups, and with those of the current step."""

    class StepToolkit(type(own)):  # type: ignore[misc] # the host's may have methods of its own
        request: ModelRequest

        def __init__(self) -> None:
            self.__dict__.update(vars(own))

        def get_agent_skill_prompt(self) -> str | None:
            """Return the prompt of the step, after that of the host's skills."""
            return self.request.prompt(super().get_agent_skill_prompt()) or None

        def get_json_schemas(self) -> list[dict[str, Any]]:
            """Return the schemas of the host's tools, and of the tools of the step."""
            offered = self.request.tools(self.tools)
            return [*super().get_json_schemas(), *(tool.function() for tool in offered)]

        async def call_tool_function(self, tool_call: Any) -> AsyncGenerator[Any, None]:
            """Run a call of the step; the host's own tools run as they did."""
            if tool_call["name"] in self.tools:
                responses: AsyncGenerator[Any, None] = await super().call_tool_function(tool_call)
                return responses
            return _responses(self.request, _call_of(tool_call))

    return StepToolkit()


async def _responses(request: ModelRequest, call: ToolCall) -> AsyncGenerator[Any, None]:
    """Run a call. A response has all that was said so far, as AgentScope expects."""
    parts: list[Any] = []
    try:
        async with aclosing(request.stream(call)) as items:
            async for item in items:
                content = parts_of(item, _shown, _text)
                if isinstance(item, ToolResult):
                    yield ToolResponse(content, is_interrupted=item.is_interrupted)
                else:
                    parts += content
                    yield ToolResponse([*parts], stream=True, is_last=False)
    except CancelledError:
        # The agent ends its reply when it reads this; an empty result would stay in its memory.
        parts.append(_text("[interrupted by the user]"))
        yield ToolResponse(parts, is_interrupted=True)


def _call_of(block: Any) -> ToolCall:
    return call_of(block["name"], block["input"], block["id"])


def _text(words: str) -> Any:
    return TextBlock(type="text", text=words)


def _shown(block: Image) -> Any:
    data = base64_text(block.data)
    source = Base64Source(type="base64", media_type=block.mime_type, data=data)
    return ImageBlock(type="image", source=source)
