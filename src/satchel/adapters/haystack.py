"""Skills and tools for Haystack: `Agent(tools=toolset(session), hooks=hooks(), ...)`."""

from collections.abc import Callable, Collection, Container, Iterator
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import ModelRequest, OfferedTool, SessionSource, session_of
from satchel.errors import ToolError
from satchel.provider_messages.message_parts import text_only, text_or_parts
from satchel.session.session import Session
from satchel.tools import Image, ToolCall, ToolResult
from satchel.tools.content_blocks import base64_text

with framework("haystack-ai"):
    from haystack.dataclasses import ChatMessage, ImageContent, TextContent
    from haystack.hooks.human_in_the_loop import ConfirmationHook
    from haystack.tools import Tool, Toolset

_BEFORE = "satchel_before"
"""The key in the metadata of a system message for the prompt of the host."""


def toolset(source: SessionSource) -> "HaystackToolset":
    """Return a toolset with the skills and tools of a session; use it with `hooks()`.

    Haystack gives a toolset no information about a run, so a function as `source` gets `None`: let
    it read a `ContextVar` that you set before you run the agent.
    """
    return HaystackToolset(source)


def hooks(approvals: Any = None) -> dict[str, list[Any]]:
    """Return the hooks for `Agent(hooks=...)`: one adds the prompt, one notes the calls.

    With `approvals`, a `ConfirmationStrategy` of Haystack, that strategy is run before the calls of
    each tool of which one needs approval; use it with `approve()`.
    """
    return {"before_llm": [PromptHook()], "before_tool": [CallsHook(approvals)]}


class HaystackToolset(Toolset):
    """Begins a step whenever the agent asks for the tools, once for each request to the model."""

    def __init__(
        self,
        source: SessionSource,
        session: Session | None = None,
        selected: Container[str] | None = None,
    ) -> None:
        super().__init__(tools=[])
        self._source, self._session, self._selected = source, session, selected
        self._offered: list[HaystackTool] = []

    def spawn(self, selected_tool_names: set[str] | None = None) -> "HaystackToolset":
        """Return a toolset for one run, with the session of that run and the tools it chooses."""
        return HaystackToolset(self._source, session_of(self._source, None), selected_tool_names)

    def __iter__(self) -> Iterator[Tool]:
        request = ModelRequest(self._session or self._source)
        self._offered = [
            HaystackTool.of(request, tool)
            for tool in request.tools()
            if self._selected is None or tool.name in self._selected
        ]
        return iter(self._offered)

    def __len__(self) -> int:
        # `list` asks for the length before it iterates; that must begin no step.
        return len(self._offered or [*iter(self)])

    def get_selectable_tools(self) -> list[Tool]:
        """Return the tools that may be chosen by name."""
        return list(self)

    def to_dict(self) -> dict[str, Any]:
        """Raise `NotImplementedError`: a session cannot be written into a pipeline's file."""
        raise NotImplementedError("a session of Satchel cannot be written into a pipeline")


class HaystackTool(Tool):
    """A tool, with the request that it was offered in."""

    request: Callable[[], ModelRequest]
    """Returns the request; a function, because Haystack copies tools, but not functions."""

    @classmethod
    def of(cls, request: ModelRequest, tool: OfferedTool) -> "HaystackTool":
        """Return the tool for Haystack, blocking and asynchronous."""

        def run(**arguments: Any) -> Any:
            return _value(request.run_sync(request.claim(tool.name, arguments)))

        async def run_async(**arguments: Any) -> Any:
            return _value(await request.run(request.claim(tool.name, arguments)))

        haystack_tool = cls(
            name=tool.name,
            description=tool.description or tool.name,
            parameters=tool.parameters,
            function=run,
            async_function=run_async,
            outputs_to_string={"raw_result": True},
        )
        haystack_tool.request = lambda: request
        return haystack_tool


class PromptHook:
    """Adds the prompt of the step to the system message."""

    def run(self, state: Any) -> None:
        """Replace the system message by the host's own with the prompt of the step."""
        messages = state.data["messages"]
        if (request := _request_in(state)) is None:
            return
        first = messages[0] if messages and messages[0].role.value == "system" else None
        meta, name = (first.meta, first.name) if first else ({}, None)
        before = meta.get(_BEFORE, first.text if first else "")
        meta = {**meta, _BEFORE: before}
        system = ChatMessage.from_system(request.prompt(before), meta=meta, name=name)
        state.data["messages"] = [system, *(messages[1:] if first else messages)]


class CallsHook:
    """Notes all calls of the model's answer, as rules may be about several, and asks the user."""

    def __init__(self, approvals: Any = None) -> None:
        self._approvals = approvals

    def run(self, state: Any) -> None:
        """Note the calls of the last message; ask before those of tools that need approval."""
        asking = self._noted(state)
        ConfirmationHook(asking).run(state)
        self._noted(state, asking)

    async def run_async(self, state: Any) -> None:
        """Do the same without blocking."""
        asking = self._noted(state)
        await ConfirmationHook(asking).run_async(state)
        self._noted(state, asking)

    def _noted(self, state: Any, asked: Collection[str] = ()) -> dict[Any, Any]:
        """Note the calls, and return the strategy by the name of each tool to ask about."""
        if (request := _request_in(state)) is None:
            return {}
        message = _calls_in(state, asked)
        if asked:  # the calls that the user refused are gone from the state, but rules see them
            left = {call.id: call for call in message}
            message = [left.get(call.id, call) for call in request.message]
        request.message = message
        asks = [call for call in message if self._approvals and request.needs_approval(call)]
        return {call.name: self._approvals for call in asks}


def _calls_in(state: Any, asked: Container[str]) -> list[ToolCall]:
    """Return the calls of the last message; those that the user was asked about are approved."""
    return [
        ToolCall(
            name=call.tool_name,
            arguments=call.arguments,
            id=call.id or f"call-{at}",
            approved=call.tool_name in asked,
        )
        for at, call in enumerate(state.data["messages"][-1].tool_calls)
    ]


def _request_in(state: Any) -> ModelRequest | None:
    tools = state.data.get("tools") or ()
    return next((tool.request() for tool in tools if isinstance(tool, HaystackTool)), None)


def _value(result: ToolResult) -> Any:
    if result.is_error:
        raise ToolError(text_only(result))
    return text_or_parts(result, _shown, TextContent)


def _shown(block: Image) -> ImageContent:
    return ImageContent(base64_image=base64_text(block.data), mime_type=block.mime_type)
