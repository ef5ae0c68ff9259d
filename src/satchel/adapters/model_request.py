"""What all adapters share: one request to a model, its tools and prompt, and the calls it makes."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from satchel.lazy_dataclass import dataclass
from satchel.session.session import Session
from satchel.session.step import Step
from satchel.session.step_plan import StepPlan
from satchel.tools import ToolCall, ToolChunk, ToolContext, ToolResult

_log = logging.getLogger("satchel.adapters")

REFUSED = "The user refused this call. Continue without it."
"""What the model reads of a call that the user did not approve."""

SessionSource = Session | Callable[[Any], Session]
"""A session, or a function from what the framework reports about a run to the session of that run.

One agent that serves several users needs the function: with one session, what one user's model
switches on would be on for all.
"""

OnChunk = Callable[[ToolChunk], Any]
"""Gets each chunk of a running tool."""


def session_of(source: SessionSource, context: Any) -> Session:
    """Return the session of a run. Raises `TypeError` if the function returns something else."""
    session = source if isinstance(source, Session) else source(context)
    if not isinstance(session, Session):
        raise TypeError(f"a session is expected, not {type(session).__name__}")
    return session


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as frameworks want to hear of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema, of type object."""

    def function(self) -> dict[str, Any]:
        """Return the schema that OpenAI's Chat Completions and several frameworks take."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


class ModelRequest:
    """One request to a model: the tools and the prompt of one step, and the calls of the answer.

    A framework that asks for the tools first and runs calls later keeps this object until then, so
    that all are of the same step.
    """

    def __init__(self, session: Session) -> None:
        self.step: Step = session.step()
        self._lock = Lock()  # frameworks without a loop run calls in threads
        self._plan: StepPlan | None = None
        self._claimed: set[str] = set()
        self.message: Sequence[ToolCall] = ()
        """All calls of the model's answer, where a framework reports them before it runs them."""

    def prompt(self, before: str | None = None) -> str:
        """Return the prompt of the step, after the host's own."""
        return "\n\n".join(part for part in (before, self.step.prompt()) if part)

    def tools(self, taken: Collection[str] = ()) -> list[OfferedTool]:
        """Return the tools. One with a name in `taken`, the host's own, is left out and logged."""
        offered = []
        for schema in self.step.schemas("mcp"):
            if schema["name"] in taken:
                report_clash(schema["name"])
                continue
            offered.append(
                OfferedTool(schema["name"], schema.get("description", ""), schema["inputSchema"])
            )
        return offered

    async def run(
        self,
        call: ToolCall,
        message: Sequence[ToolCall] = (),
        *,
        on_chunk: OnChunk | None = None,
        approved: bool = False,
        messages: Sequence[Any] = (),
    ) -> ToolResult:
        """Run a call of the model's answer.

        `message` has all calls of the answer, as rules may be about several. Without it and without
        `self.message`, the call is judged alone.
        """
        items: Any = self.stream(call, message, approved=approved, messages=messages)
        async with aclosing(items):
            async for item in items:
                if isinstance(item, ToolResult):
                    return item
                if on_chunk is not None:
                    on_chunk(item)
        raise AssertionError("a call yields a result last")

    def stream(
        self,
        call: ToolCall,
        message: Sequence[ToolCall] = (),
        *,
        approved: bool = False,
        messages: Sequence[Any] = (),
    ) -> AsyncIterator[ToolChunk | ToolResult]:
        """Run a call as `run` does; yield each chunk, and last the result."""
        plan, place = self._place(call, list(message or self.message), messages)
        return plan.stream(place, approved=approved)

    def claim(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Return the call of the message for a framework that gives no id of a call.

        Of equal calls, each is returned once.
        """
        wanted = ToolCall(name=name, arguments=dict(arguments))
        with self._lock:
            for call in self.message:
                if call.name == name and call.arguments == wanted.arguments:
                    if call.id in self._claimed:
                        continue
                    self._claimed.add(call.id)
                    return call
        return wanted

    def needs_approval(
        self, call: ToolCall, message: Sequence[ToolCall] = (), *, messages: Sequence[Any] = ()
    ) -> bool:
        """Return whether `approve` would ask before a call.

        Its whole message is judged, as when it runs: a call that is refused alone may run in it.
        """
        plan, place = self._place(call, list(message or self.message), messages)
        return plan.needs_approval(place)

    def run_sync(
        self,
        call: ToolCall,
        message: Sequence[ToolCall] = (),
        *,
        on_chunk: OnChunk | None = None,
        approved: bool = False,
        messages: Sequence[Any] = (),
    ) -> ToolResult:
        """Run a call as `run` does, for frameworks without an event loop."""
        plan, place = self._place(call, list(message or self.message), messages)
        if on_chunk is None:
            return plan.run_sync(place, approved=approved)
        for item in plan.stream_sync(place, approved=approved):
            if isinstance(item, ToolResult):
                return item
            on_chunk(item)
        raise AssertionError("a call yields a result last")

    def _place(
        self, call: ToolCall, message: list[ToolCall], messages: Sequence[Any]
    ) -> tuple[StepPlan, int]:
        """Return the plan of a message, made once, and the place of the call in it."""
        # A person or another part of the framework may have changed the arguments meanwhile: what
        # the framework asks for now is run, not what the model sent.
        calls = [call if _is_changed(item, call) else item for item in message]
        if not any(_is_same(item, call) for item in calls):
            calls = [call]
        with self._lock:
            plan = self._plan
            if plan is None or list(plan.calls) != calls:
                context = ToolContext(messages=messages)
                self._plan = plan = self.step.plan(calls, context=context)
        return plan, next(at for at, item in enumerate(calls) if _is_same(item, call))


def name_of(tool: Any) -> str:
    """Return the name of one of the host's tools, which may be a mapping for a provider."""
    if isinstance(tool, Mapping):
        return str((tool.get("function") or tool).get("name", ""))
    return str(getattr(tool, "name", ""))


def report_clash(name: str) -> None:
    """Log that a tool is not offered, because the host has one with its name."""
    _log.warning("the host's own tool %r hides that of Satchel", name)


class ModelRequests:
    """The newest request of each run, for frameworks whose hooks have no object in common.

    `context` is what `source` takes; without a source it is the session.
    `run` is an object that a framework has for each run. Without it the session counts, so two runs
    at once in one session share a request.
    """

    def __init__(self, source: SessionSource = lambda session: session) -> None:
        self._source = source
        self._by_run: WeakKeyDictionary[Any, ModelRequest] = WeakKeyDictionary()

    def begin(self, context: Any, run: Any = None) -> ModelRequest:
        """Begin a request to the model."""
        session = session_of(self._source, context)
        # An answer may resume a run under another object: then the session has its message.
        before = self._by_run.get(session if run is None else run) or self._by_run.get(session)
        request = self._by_run[session] = ModelRequest(session)
        if run is not None:
            self._by_run[run] = request
        # A run that an approval resumes asks for the tools again before it makes the calls.
        request.message = before.message if before else ()
        return request

    def current(self, context: Any, run: Any = None) -> ModelRequest:
        """Return the newest request; after a restart there is none, so begin one."""
        key = session_of(self._source, context) if run is None else run
        return self._by_run.get(key) or self.begin(context, run)


def _is_changed(sent: ToolCall, call: ToolCall) -> bool:
    """Return whether a call of a message was sent with another name or other arguments."""
    if not _is_same(sent, call):
        return False
    return sent.name != call.name or _arguments(sent) != _arguments(call)


def _arguments(call: ToolCall) -> Any:
    """Return the arguments as data, for a comparison; a text that is no JSON stays one."""
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return call.arguments


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    return one.id == other.id if one.id or other.id else one == other
