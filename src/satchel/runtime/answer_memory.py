"""Answers from memory: equal calls run once, also when they come at the same time."""

import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, Tool, ToolCall, ToolResult
from satchel.tools.tool_results import to_json

if TYPE_CHECKING:
    import asyncio

KEPT = 256
"""How many answers are kept for a session."""


@dataclass(eq=False, slots=True, kw_only=True)
class Answer:
    """The answer to a call, or the run that will give it."""

    place: Hashable
    tool: Tool  # held, so that its identity in the place stays its own
    state: object
    """The state of the session, which says whose it is."""
    outcome: "asyncio.Future[ToolResult | None]"
    """What those who wait get; `None` sends them on to run themselves."""
    result: ToolResult | None = None
    until: float = 0
    is_fresh: bool = True
    """Whether it may be kept: nothing was changed since it began."""


class AnswerMemory:
    """A bounded memory of answers, in which equal calls at once share one run."""

    def __init__(
        self,
        size: int = KEPT,
        seconds: float = inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size, self._seconds, self._clock = size, seconds, clock
        self._running: set[Answer] = set()
        self._joinable: dict[Hashable, Answer] = {}
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()

    def find(self, place: Hashable) -> Answer | None:
        """Return what answers, or will answer, calls at this place."""
        import asyncio

        answer = self._kept.get(place) or self._joinable.get(place)
        if answer is None:
            return None
        if answer.result is None:
            # What another event loop runs cannot be waited for; that loop may stand still.
            is_here = answer.outcome.get_loop() is asyncio.get_running_loop()
            return answer if is_here else None
        if answer.until <= self._clock():
            self._drop(answer)
            return None
        self._kept.move_to_end(place)
        return answer

    def begin(self, place: Hashable, call: ToolCall, tool: Tool) -> Answer:
        """Note a run that others may wait for."""
        import asyncio

        outcome = asyncio.get_running_loop().create_future()
        answer = Answer(place=place, tool=tool, state=call.context.state, outcome=outcome)
        self._running.add(answer)
        self._joinable[place] = answer
        return answer

    def note(self, answer: Answer, item: Item) -> None:
        """Take an item of a run to its end, or let go of those who wait.

        After a chunk nobody waits: the reader of the chunks says when the run goes on.
        """
        if not isinstance(item, ToolResult):
            self._settle(answer, None)
            return
        result = _copied(item)
        if answer.is_fresh and not (result.is_error or result.is_interrupted):
            answer.result, answer.until = result, self._clock() + self._seconds
            self._kept[answer.place] = answer
            self._kept.move_to_end(answer.place)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        self._settle(answer, None if item.is_interrupted else result)

    def end(self, answer: Answer) -> None:
        """Note that a run is over, whatever became of it."""
        self._running.discard(answer)
        self._settle(answer, None)

    def forget(self, which: Callable[[Answer], bool]) -> None:
        """Forget answers, also those that are on their way."""
        for answer in [*self._running, *self._kept.values()]:
            if which(answer):
                answer.is_fresh = False
                self._drop(answer)

    def _drop(self, answer: Answer) -> None:
        for table in (self._joinable, self._kept):
            if table.get(answer.place) is answer:
                del table[answer.place]

    def _settle(self, answer: Answer, result: ToolResult | None) -> None:
        if not answer.outcome.done():
            answer.outcome.set_result(result)
        if self._joinable.get(answer.place) is answer:
            del self._joinable[answer.place]


def remembered(
    memory: AnswerMemory, place: Hashable, tool: Tool, inner: Handler, call: ToolCall
) -> AsyncIterator[Item]:
    """Answer a call from memory, or run it for itself and for equal ones."""
    return _remembered(memory, (id(tool), place), tool, inner, call)


async def _remembered(
    memory: AnswerMemory, place: Hashable, tool: Tool, inner: Handler, call: ToolCall
) -> AsyncIterator[Item]:
    import asyncio

    while (answer := memory.find(place)) is not None:
        result = answer.result
        if result is None:
            result = await asyncio.shield(answer.outcome)  # a caller that waits may be cancelled
        if result is not None:
            metadata = {**result.metadata, "cached": True}
            yield replace(_copied(result), call_id=call.id or None, metadata=metadata)
            return
    answer = memory.begin(place, call, tool)
    try:
        async with opened(inner, call) as items:
            async for item in items:
                memory.note(answer, item)
                yield item
    finally:
        memory.end(answer)


def answer_from(memory: AnswerMemory) -> Middleware:
    """Make the middleware of idempotent tools: a repeated call gets the first answer again."""

    def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        place = _canonical(call.arguments)
        if call.tool is None or place is None:
            return inner(call)
        return remembered(memory, place, call.tool, inner, call)

    return layer


def forget_turn(memory: AnswerMemory) -> None:
    """Forget the answers that last only for one turn of the user."""
    memory.forget(lambda answer: answer.tool.remember != "session")


def _canonical(arguments: Any) -> str | None:
    """Write arguments as JSON that is the same for equal ones; `None` if JSON cannot carry them."""
    try:
        return json.dumps(json.loads(to_json(arguments)), sort_keys=True)
    except Exception:
        return None


def _copied(result: ToolResult) -> ToolResult:
    """Return a result that its reader may change without changing what is remembered."""
    return replace(result, structured=deepcopy(result.structured), metadata=dict(result.metadata))
