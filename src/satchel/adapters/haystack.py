"""Skills and tools for Haystack: `Agent(tools=toolset(session), hooks=hooks(), ...)`."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from haystack.dataclasses import ChatMessage, ImageContent, TextContent
from haystack.hooks.human_in_the_loop import ConfirmationHook, ToolExecutionDecision
from haystack.tools import Tool, Toolset

from satchel.adapters.model_request import ModelRequest, OfferedTool, SessionSource, session_of
from satchel.errors import ToolError
from satchel.provider_messages.message_parts import text_only, words_for
from satchel.session import Session
from satchel.tools import Image, ToolCall, ToolResult
from satchel.tools.content_blocks import Block, base64_text

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

    With `approvals`, a `ConfirmationStrategy` of Haystack, that strategy is run for each call that
    needs approval; use it with `approve()`.
    """
    return {"before_llm": [PromptHook()], "before_tool": [CallsHook(approvals)]}


class HaystackToolset(Toolset):
    """Begins a step whenever the agent asks for the tools, once for each request to the model."""

    def __init__(self, source: SessionSource, session: Session | None = None) -> None:
        super().__init__(tools=[])
        self._source, self._session = source, session
        self._offered: list[HaystackTool] = []

    def spawn(self, _selected_tool_names: set[str] | None = None) -> "HaystackToolset":
        """Return a toolset for one run, with the session of that run."""
        return HaystackToolset(self._source, session_of(self._source, None))

    def __iter__(self) -> Iterator[Tool]:
        request = ModelRequest(self._session or session_of(self._source, None))
        self._offered = [HaystackTool.of(request, tool) for tool in request.tools()]
        return iter(self._offered)

    def __len__(self) -> int:
        # `list` asks for the length before it iterates; that must begin no step.
        return len(self._offered or [*iter(self)])

    def __contains__(self, item: Any) -> bool:
        return any(tool.name == getattr(item, "name", item) for tool in self)

    def __getitem__(self, index: int) -> Tool:
        return [*iter(self)][index]

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
            call = request.claim(tool.name, arguments)
            return _value(request.run_sync(call, approved=call.approved))

        async def run_async(**arguments: Any) -> Any:
            call = request.claim(tool.name, arguments)
            return _value(await request.run(call, approved=call.approved))

        made = cls(
            name=tool.name,
            description=tool.description or tool.name,
            parameters=dict(tool.parameters),
            function=run,
            async_function=run_async,
            outputs_to_string={"raw_result": True},
        )
        made.request = lambda: request
        return made


class PromptHook:
    """Adds the prompt of the step to the system message."""

    def run(self, state: Any) -> None:
        """Replace the system message by the host's own with the prompt of the step."""
        messages = state.data["messages"]
        if (request := _request_in(state)) is None:
            return
        first = messages[0] if messages and messages[0].role.value == "system" else None
        before = first.meta.get(_BEFORE, first.text) if first else ""
        system = ChatMessage.from_system(request.prompt(before), meta={_BEFORE: before})
        state.data["messages"] = [system, *(messages[1:] if first else messages)]


class CallsHook:
    """Notes all calls of the model's answer, as rules may be about several, and asks the user."""

    def __init__(self, approvals: Any = None) -> None:
        self._approvals = approvals

    def run(self, state: Any) -> None:
        """Note the calls of the last message; ask before those that need approval."""
        if asking := self._noted(state):
            ConfirmationHook({"*": asking}).run(state)
            self._noted(state, asking.asked)

    async def run_async(self, state: Any) -> None:
        """Do the same without blocking."""
        if asking := self._noted(state):
            await ConfirmationHook({"*": asking}).run_async(state)
            self._noted(state, asking.asked)

    def _noted(self, state: Any, approved: Collection[str] = ()) -> "AskingStrategy | None":
        """Note the calls, and return what asks before them, if anything does."""
        if (request := _request_in(state)) is None:
            return None
        request.message = _calls_in(state, approved)
        return AskingStrategy(request, self._approvals) if self._approvals else None


class AskingStrategy:
    """Runs the host's strategy for the calls that need approval, and lets the others run."""

    def __init__(self, request: ModelRequest, strategy: Any) -> None:
        self._request, self._strategy = request, strategy
        self.asked: set[str] = set()

    def run(self, **call: Any) -> ToolExecutionDecision:
        """Decide about a call."""
        return self._strategy.run(**call) if self._must_ask(call) else _execution(call)

    async def run_async(self, **call: Any) -> ToolExecutionDecision:
        """Decide about a call without blocking."""
        return await self._strategy.run_async(**call) if self._must_ask(call) else _execution(call)

    def _must_ask(self, call: dict[str, Any]) -> bool:
        call_id = call["tool_call_id"] or ""
        wanted = ToolCall(name=call["tool_name"], arguments=call["tool_params"], id=call_id)
        if must_ask := self._request.needs_approval(wanted):
            self.asked.add(call_id)
        return must_ask


def _calls_in(state: Any, approved: Collection[str]) -> list[ToolCall]:
    """Return the calls of the last message."""
    return [
        ToolCall(
            name=call.tool_name,
            arguments=call.arguments,
            id=call.id or f"call-{at}",
            approved=call.id in approved,
        )
        for at, call in enumerate(state.data["messages"][-1].tool_calls)
    ]


def _execution(call: dict[str, Any]) -> ToolExecutionDecision:
    return ToolExecutionDecision(
        tool_name=call["tool_name"],
        execute=True,
        tool_call_id=call["tool_call_id"],
        final_tool_params=call["tool_params"],
    )


def _request_in(state: Any) -> ModelRequest | None:
    tools = state.data.get("tools") or ()
    return next((tool.request() for tool in tools if isinstance(tool, HaystackTool)), None)


def _value(result: ToolResult) -> Any:
    if result.is_error:
        raise ToolError(result.text)
    if any(isinstance(block, Image) for block in result.content):
        return [_content(block) for block in result.content]
    return text_only(result)


def _content(block: Block) -> Any:
    if isinstance(block, Image):
        return ImageContent(base64_image=base64_text(block.data), mime_type=block.mime_type)
    return TextContent(text=words_for(block))
