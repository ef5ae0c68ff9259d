"""Skills and tools for Agent Framework: `Agent(context_providers=[provider(session)], ...)`."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import (
    ModelRequest,
    ModelRequests,
    OfferedTool,
    SessionSource,
    name_of,
    session_of,
)
from satchel.provider_messages.message_parts import call_of, text_or_parts
from satchel.session.session import Session
from satchel.tools import Audio, Image, ToolCall

with framework("agent-framework"):
    from agent_framework import (
        ChatMiddleware,
        Content,
        ContextProvider,
        FunctionMiddleware,
        FunctionTool,
    )


def provider(source: SessionSource, *, approvals: bool = False) -> "AgentFrameworkProvider":
    """Return a context provider that adds the skills and tools of a session to an agent.

    A function as `source` gets the `AgentSession` of a run; a run without one gets a new one. With
    `approvals`, a call that needs approval ends the run with a request for approval, as the
    framework does for a tool that always requires one; use it with `approve()`.
    """
    return AgentFrameworkProvider(source, approvals=approvals)


class AgentFrameworkProvider(ContextProvider):
    """Adds the middleware that gives each request the tools and the prompt of one step."""

    def __init__(self, source: SessionSource, *, approvals: bool = False) -> None:
        super().__init__("satchel")
        self._source, self._requests = source, ModelRequests(approvals=approvals)

    async def before_run(self, *, agent: Any, session: Any, context: Any, **_: Any) -> None:
        """Prepare one run: its session, its tools and its middleware."""
        steps = StepMiddleware(session_of(self._source, session), self._requests)
        # After a restart, only the history has the message whose calls wait for an answer.
        answers = (_calls_in([message]) for message in reversed(context.get_messages()))
        steps.request.message = steps.request.message or next(filter(None, answers), [])
        own = (getattr(agent, "default_options", None) or {}).get("tools") or ()
        # A run that a person's approval resumes makes calls before it asks the model.
        context.extend_tools(self.source_id, steps.tools(own))
        context.extend_middleware(self.source_id, [steps, CallMiddleware(steps)])


class StepMiddleware(ChatMiddleware):
    """Begins a step before each request to the model of one run."""

    def __init__(self, session: Session, requests: ModelRequests) -> None:
        self._session, self._requests = session, requests
        self.request = requests.current(session)

    def tools(self, own: Iterable[Any]) -> list["AgentFrameworkTool"]:
        """Return the tools of the current request that are not hidden by the host's own."""
        offered = self.request.tools({name_of(tool) for tool in own})
        return [AgentFrameworkTool(self.request, tool) for tool in offered]

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Offer the tools and the prompt of a new step, and note the calls of the answer."""
        request = self.request = self._requests.begin(self._session)
        # The loop that runs the calls looks into this very list; without a tool there is none yet.
        tools = context.options.setdefault("tools", [])
        own = [tool for tool in tools if not isinstance(tool, AgentFrameworkTool)]
        tools[:] = [*own, *self.tools(own)]
        prompt = request.prompt(context.options.get("instructions"))
        # Providers refuse empty lists and texts.
        shown = {"tools": tools or None, "instructions": prompt or None}
        context.options = {**context.options, **shown}

        def note(response: Any) -> None:
            request.message = _calls_in(response.messages)
            for tool in tools:
                if isinstance(tool, AgentFrameworkTool):
                    tool.ask_for(request.message)

        context.stream_result_hooks.append(note)
        await call_next()
        if not context.stream:
            note(context.result)


class CallMiddleware(FunctionMiddleware):
    """Runs the calls of Satchel's tools before the framework checks their arguments."""

    def __init__(self, steps: StepMiddleware) -> None:
        self._steps = steps

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run a call of the step that offered the tool; leave others to the framework."""
        tool = context.function
        if not isinstance(tool, AgentFrameworkTool):
            await call_next()
            return
        call = call_of(tool.name, dict(context.arguments), context.metadata.get("call_id"))
        # The framework asks for all calls of a tool of which one needs approval.
        approved = "approval_response" in context.metadata
        result = await tool.request.run(call, approved=approved)
        context.result = text_or_parts(result, _shown, Content.from_text, media=Image | Audio)


class AgentFrameworkTool(FunctionTool):
    """A tool, with the request that it was offered in. `CallMiddleware` runs it."""

    def __init__(self, request: ModelRequest, tool: OfferedTool) -> None:
        super().__init__(
            name=tool.name,
            description=tool.description,
            input_model=tool.parameters,
            func=_not_called,
            approval_mode="never_require",
        )
        self.request = request

    def ask_for(self, message: Iterable[ToolCall]) -> None:
        """Have the framework ask before the calls of a message, if one of this tool needs it."""
        calls = [call for call in message if call.name == self.name]
        if any(map(self.request.must_ask, calls)):
            self.approval_mode = "always_require"


def _not_called(**_arguments: Any) -> str:
    raise AssertionError("the middleware of Satchel runs its tools")


def _calls_in(messages: Iterable[Any]) -> list[ToolCall]:
    return [
        call_of(item.name, item.arguments, item.call_id)
        for message in messages
        for item in message.contents
        if item.type == "function_call"
    ]


def _shown(block: Image | Audio) -> Any:
    return Content.from_data(block.data, block.mime_type)
