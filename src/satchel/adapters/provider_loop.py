"""A whole agent over a provider's own library: requests, calls and results until it is done."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from satchel.adapters.model_request import name_of, not_taken
from satchel.errors import SatchelError
from satchel.provider_messages.message_formats import calls_in, result_messages
from satchel.provider_messages.message_parts import encodable
from satchel.session.recording import CUT_OFF, Recording
from satchel.session.session import Session
from satchel.session.step import Step
from satchel.tools import Item, ToolCall, ToolResult, failure

_log = logging.getLogger("satchel.adapters")

Message = dict[str, Any]

MAX_REQUESTS = 100
"""How often a run asks the model, unless the host says `max_requests`."""

Event = str | Item
"""What a stream yields: pieces of the model's text, chunks of tools, and their results."""

STREAM_ENDED = "the stream ended early"
"""Why a stream stopped that gave no reason: nothing says that its last call is whole."""
CUT_OFF_REASONS = frozenset(
    {
        "length",
        "content_filter",
        "max_tokens",
        "model_context_window_exceeded",
        "refusal",
        STREAM_ENDED,
    }
)
"""The reasons of all providers for which an answer stops in the middle."""


class ModelAnswer(NamedTuple):
    """The model's message, as it is sent back, and why the model stopped, if it was said."""

    message: Message
    stop_reason: str | None = None


class ProviderLoop(ABC):
    """One conversation with a model; `messages` grows by whole turns.

    An answer and the results of its calls are added together, so a run that is cancelled in between
    leaves messages that a provider takes.
    """

    dialect = ""

    def __init__(
        self,
        client: Any,
        session: Session,
        messages: list[Message],
        *,
        system: Any = None,
        record: Recording | None = None,
        max_requests: int = MAX_REQUESTS,
        **options: Any,
    ) -> None:
        self._client, self._session, self._messages = client, session, messages
        self._system, self._record = system, record
        self._max_requests, self._options = max_requests, options

    @abstractmethod
    def _send(self, arguments: dict[str, Any]) -> Any:
        """Return the response to a request; with an asynchronous client, something to await."""

    @abstractmethod
    def _stream(self, arguments: dict[str, Any]) -> AsyncGenerator[str | ModelAnswer, None]:
        """Send a request; yield the text as it comes, and last the model's answer."""

    @abstractmethod
    def _prompted(self, prompt: str) -> dict[str, Any]:
        """Return the arguments for the messages and the step's prompt, which may be empty."""

    @abstractmethod
    def _answer(self, response: Any) -> ModelAnswer:
        """Return the model's answer in a response."""

    @abstractmethod
    def _text(self, message: Message) -> str:
        """Return the text of the model's message."""

    async def run(self) -> str:
        """Ask and call until the model makes no more calls; return its last text."""
        for step in self._steps():
            answer = self._answer(await self._send(self._arguments(step)))
            calls = calls_in(answer.message, self.dialect)
            results = answers_to_cut_off(answer, calls) or await step.execute(calls)
            if self._add(step, answer, calls, results):
                return self._text(answer.message)
        raise self._no_end()

    def run_sync(self) -> str:
        """Do the same without an event loop, with the provider's blocking client."""
        for step in self._steps():
            answer = self._answer(self._send(self._arguments(step)))
            calls = calls_in(answer.message, self.dialect)
            results = answers_to_cut_off(answer, calls)
            if calls and not results:
                results = step.execute_sync(calls)
            if self._add(step, answer, calls, results):
                return self._text(answer.message)
        raise self._no_end()

    async def stream(self) -> AsyncIterator[Event]:
        """Do the same, and yield the model's text, the tools' chunks and their results."""
        answer = ModelAnswer({})
        for step in self._steps():
            async with aclosing(self._stream(self._arguments(step))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        yield piece
                    else:
                        answer = piece
            calls = calls_in(answer.message, self.dialect)
            not_run = answers_to_cut_off(answer, calls)
            for result in not_run:
                yield result
            results = dict(enumerate(not_run))
            async with aclosing(stream_calls(step, [] if not_run else calls)) as items:
                async for place, item in items:
                    if isinstance(item, ToolResult):
                        results[place] = item
                    yield item
            if self._add(step, answer, calls, [results[place] for place in range(len(calls))]):
                return
        raise self._no_end()

    def _steps(self) -> Iterator[Step]:
        """Record what was said since the model's last message; yield a step for each request."""
        if self._record is not None:
            roles = [message.get("role") for message in self._messages]
            answered = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else 0
            self._record.add_messages(self._messages[answered:])
        for _ in range(self._max_requests):
            yield self._session.step()

    def _no_end(self) -> SatchelError:
        return SatchelError(
            f"the model was asked {self._max_requests:,} times and is still not done",
            fix="set max_requests to a greater number, or run again with the same messages",
        )

    def _arguments(self, step: Step) -> dict[str, Any]:
        arguments = {**self._prompted(step.prompt()), **self._options}
        # The host's own tools are those that the provider runs, such as a web search.
        own = [*self._options.get("tools", ())]
        tools = own + not_taken(step.schemas(self.dialect), [*map(name_of, own)])
        return {**arguments, "tools": tools} if tools else arguments

    def _add(
        self, step: Step, answer: ModelAnswer, calls: list[ToolCall], results: list[ToolResult]
    ) -> bool:
        """Add a turn to the messages; return whether it was the last."""
        message = encodable(answer.message)
        answers = encodable(result_messages(calls, results, self.dialect))
        if self._record is not None:
            self._record.add_step(step)
            self._record.add_messages([message])
            self._record.add_calls(calls, results)
        self._messages.extend([message, *answers])
        # Anthropic pauses a long turn of its own tools, and continues if asked again.
        return not calls and answer.stop_reason != "pause_turn"


def answers_to_cut_off(answer: ModelAnswer, calls: Sequence[ToolCall]) -> list[ToolResult]:
    """Return an error for each call of an answer that was cut off; `[]` for a whole one.

    Such a call may have half of its arguments, and still look like a whole one.
    """
    if answer.stop_reason not in CUT_OFF_REASONS:
        return []
    _log.warning("the model's answer was cut off (%s)", answer.stop_reason)
    why = f"the answer was cut off ({answer.stop_reason}), so this call was not run"
    text = f"{why}; make it again, in a shorter answer"
    return [failure(CUT_OFF, text, call.id or None) for call in calls]


async def stream_calls(
    step: Step, calls: Sequence[ToolCall]
) -> AsyncGenerator[tuple[int, Item], None]:
    """Judge the calls of a message, run them together; yield their items with the call's place.

    Closing the generator ends the calls that still run.
    """
    plan, items = step.plan(calls), asyncio.Queue[tuple[int, Item]]()

    async def run(place: int) -> None:
        async for item in plan.stream(place):
            items.put_nowait((place, item))

    tasks = [asyncio.ensure_future(run(place)) for place in range(len(calls))]
    try:
        left = len(calls)
        while left:
            place, item = await items.get()
            left -= isinstance(item, ToolResult)
            yield place, item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
