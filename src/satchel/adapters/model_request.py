"""What all adapters share: one request to a model, its tools and prompt, and the calls it makes."""

import json
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from threading import Lock
from typing import Any, cast
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
    """A tool as frameworks take it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema, of type object."""

    def function(self) -> dict[str, Any]:
        """Return the schema that OpenAI's Chat Completions and several frameworks take."""
        names = {"name": self.name, "description": self.description}
        return {"type": "function", "function": {**names, "parameters": self.parameters}}


class ModelRequest:
    """One request to a model: the tools and the prompt of one step, and the calls of the answer.

    A framework that asks for the tools first and runs calls later keeps this object until then, so
    that all are of the same step. `source` and `context` are as in `session_of`.
    """

    def __init__(
        self, source: SessionSource, context: Any = None, *, approvals: bool = False
    ) -> None:
        self.step: Step = session_of(source, context).step()
        self.approvals = approvals
        """Whether the framework asks its user before each call for which `must_ask` is true."""
        self.message: Sequence[ToolCall] = ()
        """All calls of the model's answer, as rules may be about several.

        A call that is not in it is judged alone.
        """
        self.messages: Sequence[Any] = ()
        """The conversation, for tools that read `ToolContext.messages`."""
        self._lock = Lock()  # frameworks without a loop run calls in threads
        self._plan: StepPlan | None = None
        self._claimed: set[str] = set()

    def prompt(self, before: str | None = None) -> str:
        """Return the prompt of the step, after the host's own."""
        return joined(before, self.step.prompt())

    def tools(self, taken: Collection[str] = ()) -> list[OfferedTool]:
        """Return the tools. One with a name in `taken`, the host's own, is left out and logged."""
        return [
            OfferedTool(schema["name"], schema.get("description", ""), {**schema["inputSchema"]})
            for schema in not_taken(self.step.schemas("mcp"), taken)
        ]

    async def run(
        self, call: ToolCall, *, approved: bool | None = None, on_chunk: OnChunk | None = None
    ) -> ToolResult:
        """Run a call of the model's answer.

        `approved` says whether the user has approved it, for frameworks that know. Without it, a
        call of a framework that asks is taken as approved.
        """
        async with aclosing(self.stream(call, approved=approved)) as items:
            async for item in items:
                if isinstance(item, ToolResult):
                    return item
                if on_chunk is not None:
                    on_chunk(item)
        raise AssertionError("a call yields a result last")

    def run_sync(
        self, call: ToolCall, *, approved: bool | None = None, on_chunk: OnChunk | None = None
    ) -> ToolResult:
        """Run a call as `run` does, for frameworks without an event loop."""
        plan, place = self._planned(call)
        for item in plan.stream_sync(place, approved=self._is_approved(call, approved)):
            if isinstance(item, ToolResult):
                return item
            if on_chunk is not None:
                on_chunk(item)
        raise AssertionError("a call yields a result last")

    def stream(
        self, call: ToolCall, *, approved: bool | None = None
    ) -> AsyncGenerator[ToolChunk | ToolResult, None]:
        """Run a call as `run` does; yield each chunk, and last the result."""
        plan, place = self._planned(call)
        items = plan.stream(place, approved=self._is_approved(call, approved))
        return cast("AsyncGenerator[ToolChunk | ToolResult, None]", items)

    def must_ask(self, call: ToolCall) -> bool:
        """Return whether the framework has to ask its user before a call."""
        return self.approvals and self.needs_approval(call)

    def needs_approval(self, call: ToolCall) -> bool:
        """Return whether `approve` would ask before a call.

        Its whole message is judged, as when it runs: a call that is refused alone may run in it.
        """
        plan, place = self._planned(call)
        return plan.needs_approval(place)

    def _is_approved(self, call: ToolCall, approved: bool | None) -> bool:
        return call.approved or (self.approvals if approved is None else approved)

    def claim(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Return the call of the message for a framework that gives no id of a call.

        Of equal calls, each is returned once.
        """
        claimed = ToolCall(name=name, arguments=dict(arguments))
        with self._lock:
            for call in self.message:
                if call.id not in self._claimed and _wish(call)[1:] == _wish(claimed)[1:]:
                    self._claimed.add(call.id)
                    return call
        return claimed

    def _planned(self, call: ToolCall) -> tuple[StepPlan, int]:
        """Return the plan of the message, made once, and the place of the call in it."""
        # A person or another part of the framework may have changed the arguments meanwhile: what
        # the framework asks for now is run, not what the model sent.
        calls = [call if _is_same(item, call) else item for item in self.message]
        calls = calls if call in calls else [call]
        with self._lock:
            plan = self._plan
            if plan is None or [*map(_wish, plan.calls)] != [*map(_wish, calls)]:
                context = ToolContext(messages=self.messages)
                self._plan = plan = self.step.plan(calls, context=context)
        return plan, next(at for at, item in enumerate(plan.calls) if _is_same(item, call))


def joined(*texts: str | None) -> str:
    """Return the parts of a prompt that are not empty as one text."""
    return "\n\n".join(text for text in texts if text)


def name_of(tool: Any) -> str:
    """Return the name of one of the host's tools, which may be a mapping for a provider."""
    if isinstance(tool, Mapping):
        return str((tool.get("function") or tool).get("name", ""))
    return str(getattr(tool, "name", ""))


def not_taken(schemas: Sequence[dict[str, Any]], taken: Collection[str]) -> list[dict[str, Any]]:
    """Return the schemas whose names are not in `taken`, the host's own; log the others."""
    for name in map(name_of, schemas):
        if name in taken:
            report_clash(name)
    return [schema for schema in schemas if name_of(schema) not in taken]


def report_clash(name: str) -> None:
    """Log that a tool is not offered, because the host has one with its name."""
    _log.warning("the host's own tool %r hides that of Satchel", name)


class ModelRequests:
    """The newest request of each run, for frameworks whose hooks have no object in common.

    `context` is what `source` takes; without a source it is the session.
    `run` is an object that a framework has for each run. Without it the session counts, so two runs
    at once in one session share a request.
    """

    def __init__(
        self, source: SessionSource = lambda session: session, *, approvals: bool = False
    ) -> None:
        self._source, self._approvals = source, approvals
        self._by_run: WeakKeyDictionary[Any, ModelRequest] = WeakKeyDictionary()

    def begin(self, context: Any, run: Any = None) -> ModelRequest:
        """Begin a request to the model."""
        session = session_of(self._source, context)
        # An answer may resume a run under another object: then the session has its message.
        before = self._by_run.get(session if run is None else run) or self._by_run.get(session)
        request = self._by_run[session] = ModelRequest(session, approvals=self._approvals)
        if run is not None:
            self._by_run[run] = request
        # A run that an approval resumes asks for the tools again before it makes the calls.
        request.message = before.message if before else ()
        return request

    def current(self, context: Any, run: Any = None) -> ModelRequest:
        """Return the newest request; after a restart there is none, so begin one."""
        key = session_of(self._source, context) if run is None else run
        return self._by_run.get(key) or self.begin(context, run)


def _wish(call: ToolCall) -> tuple[str, str, Any]:
    """Return id, name and arguments for a comparison; a text that is no JSON stays one."""
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments or "{}")
    return call.id, call.name, arguments


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    return one.id == other.id if one.id or other.id else one == other
