"""A whole agent over a provider's own library: requests, calls and results until it is done."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from satchel.adapters.model_request import name_of, not_taken
from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.provider_messages.message_formats import calls_in, result_messages
from satchel.session.recording import Recording
from satchel.session.session import Session
from satchel.session.step import Step
from satchel.tools import Item, ToolCall, ToolResult

Message = dict[str, Any]

MAX_REQUESTS = 100
"""How often a run asks the model, unless the host says `max_requests`."""

Event = str | Item
"""What a stream yields: pieces of the model's text, chunks of tools, and their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLibrary:
    """How a provider's library is asked and answers."""

    dialect: str
    create: Callable[[Any], Callable[..., Any]]
    """Returns the method of a client that sends a request."""
    arguments: Callable[[Step, Sequence[Message], str | None], dict[str, Any]]
    """Returns the arguments of that method: prompt and messages."""
    message: Callable[[Any], Message]
    """Returns the model's message in a response, as it is sent back."""
    stream: Callable[[Any, dict[str, Any]], AsyncGenerator[str | Message, None]]
    """Sends a request; yields the text as it comes, and last the model's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLoop:
    """One conversation with a model; `messages` grows by whole turns.

    An answer and the results of its calls are added together, so a run that is cancelled in between
    leaves messages that a provider takes.
    """

    library: ProviderLibrary
    client: Any
    session: Session
    messages: list[Message]
    system: str | None
    options: dict[str, Any]
    """Those of the library, and `max_requests`."""
    record: Recording | None = None
    """What writes the conversation down, if the host wants that."""

    async def run(self) -> Message:
        """Ask and call until the model makes no more calls; return its last message."""
        self._record_question()
        for _ in range(self._max_requests):
            step = self.session.step()
            response = await self.library.create(self.client)(**self._arguments(step))
            message, calls = self._read(response)
            results = await step.execute(calls)
            if self._add(step, message, calls, results):
                return message
        raise self._no_end()

    def run_sync(self) -> Message:
        """Do the same without an event loop, with the provider's blocking client."""
        self._record_question()
        for _ in range(self._max_requests):
            step = self.session.step()
            response = self.library.create(self.client)(**self._arguments(step))
            message, calls = self._read(response)
            results = step.execute_sync(calls) if calls else []
            if self._add(step, message, calls, results):
                return message
        raise self._no_end()

    async def stream(self) -> AsyncIterator[Event]:
        """Do the same, and yield the model's text, the tools' chunks and their results."""
        self._record_question()
        message: Message = {}
        for _ in range(self._max_requests):
            step = self.session.step()
            async with aclosing(self.library.stream(self.client, self._arguments(step))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        yield piece
                    else:
                        message = piece
            calls = calls_in(message, self.library.dialect)
            results: dict[int, ToolResult] = {}
            async with aclosing(stream_calls(step, calls)) as items:
                async for place, item in items:
                    if isinstance(item, ToolResult):
                        results[place] = item
                    yield item
            if self._add(step, message, calls, [results[place] for place in range(len(calls))]):
                return
        raise self._no_end()

    @property
    def _max_requests(self) -> int:
        return int(self.options.get("max_requests", MAX_REQUESTS))

    def _no_end(self) -> SatchelError:
        return SatchelError(
            f"the model was asked {self._max_requests:,} times and still makes calls",
            fix="set max_requests to a greater number, or run again with the same messages",
        )

    def _record_question(self) -> None:
        """Record what was said since the model's last message."""
        if self.record is not None:
            roles = [message.get("role") for message in self.messages]
            answered = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else 0
            self.record.add_messages(self.messages[answered:])

    def _arguments(self, step: Step) -> dict[str, Any]:
        given = {**self.library.arguments(step, self.messages, self.system), **self.options}
        given.pop("max_requests", None)
        # The host's own tools are those that the provider runs, such as a web search.
        own = [*self.options.get("tools", ())]
        tools = own + not_taken(step.schemas(self.library.dialect), [*map(name_of, own)])
        return {**given, "tools": tools} if tools else given

    def _read(self, response: Any) -> tuple[Message, list[ToolCall]]:
        message = self.library.message(response)
        return message, calls_in(message, self.library.dialect)

    def _add(
        self, step: Step, message: Message, calls: list[ToolCall], results: list[ToolResult]
    ) -> bool:
        """Add a turn to the messages; return whether it was the last."""
        if self.record is not None:
            self.record.add_step(step)
            self.record.add_messages([message])
            self.record.add_calls(calls, results)
        self.messages.extend([message, *result_messages(calls, results, self.library.dialect)])
        return not calls


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
