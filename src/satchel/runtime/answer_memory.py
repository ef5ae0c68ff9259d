"""Answers from memory: equal calls run once, also when they arrive at the same time."""

import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from satchel.lazy_dataclass import dataclass
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
    """The answer to a call, or the run that will produce it."""

    key: Hashable
    tool: Tool  # held, so that its id in `key` is not used again
    state: object
    """The state of the session, which identifies the session."""
    outcome: "asyncio.Future[ToolResult | None]"
    """The result for calls that wait; with `None` they run themselves."""
    result: ToolResult | None = None
    until: float = 0
    is_fresh: bool = True
    """Whether it may be kept: nothing was forgotten since it began."""


class AnswerMemory:
    """A bounded memory of answers; equal calls at the same time share one run."""

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

    def find(self, key: Hashable) -> Answer | None:
        """Return the answer to the calls with this key, or the run that will produce it."""
        import asyncio

        answer = self._kept.get(key) or self._joinable.get(key)
        if answer is None:
            return None
        if answer.result is None:
            # A run in another event loop cannot be awaited; that loop may be stopped.
            is_here = answer.outcome.get_loop() is asyncio.get_running_loop()
            return answer if is_here else None
        if answer.until <= self._clock():
            self._drop(answer)
            return None
        self._kept.move_to_end(key)
        return answer

    def begin(self, key: Hashable, call: ToolCall, tool: Tool) -> Answer:
        """Record a run, for which equal calls may wait."""
        import asyncio

        outcome = asyncio.get_running_loop().create_future()
        answer = Answer(key=key, tool=tool, state=call.context.state, outcome=outcome)
        self._running.add(answer)
        self._joinable[key] = answer
        return answer

    def note(self, answer: Answer, item: Item) -> None:
        """Record an item of a run: keep a result, or release the calls that wait.

        After a chunk no call waits: the reader of the chunks decides when the run continues.
        """
        if not isinstance(item, ToolResult):
            self._settle(answer, None)
            return
        result = _copied(item)
        if answer.is_fresh and not (result.is_error or result.is_interrupted):
            answer.result, answer.until = result, self._clock() + self._seconds
            self._kept[answer.key] = answer
            self._kept.move_to_end(answer.key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        self._settle(answer, None if item.is_interrupted else result)

    def end(self, answer: Answer) -> None:
        """Record that a run is over, with or without a result."""
        self._running.discard(answer)
        self._settle(answer, None)

    def forget(self, matches: Callable[[Answer], bool]) -> None:
        """Forget answers, also those of calls that still run."""
        for answer in [*self._running, *self._kept.values()]:
            if matches(answer):
                answer.is_fresh = False
                self._drop(answer)

    def _drop(self, answer: Answer) -> None:
        for table in (self._joinable, self._kept):
            if table.get(answer.key) is answer:
                del table[answer.key]

    def _settle(self, answer: Answer, result: ToolResult | None) -> None:
        if not answer.outcome.done():
            answer.outcome.set_result(result)
        if self._joinable.get(answer.key) is answer:
            del self._joinable[answer.key]


async def remembered(
    memory: AnswerMemory, arguments: Hashable, tool: Tool, inner: Handler, call: ToolCall
) -> AsyncIterator[Item]:
    """Answer a call from memory, or run it for itself and for equal calls."""
    import asyncio

    key = (id(tool), arguments)
    while (answer := memory.find(key)) is not None:
        result = answer.result
        if result is None:
            result = await asyncio.shield(answer.outcome)  # a caller that waits may be cancelled
        if result is not None:
            metadata = {**result.metadata, "cached": True}
            yield replace(_copied(result), call_id=call.id or None, metadata=metadata)
            return
    answer = memory.begin(key, call, tool)
    try:
        async with opened(inner, call) as items:
            async for item in items:
                memory.note(answer, item)
                yield item
    finally:
        memory.end(answer)


def answer_from(memory: AnswerMemory) -> Middleware:
    """Return the middleware of idempotent tools: a repeated call gets the first answer again."""

    def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        tool, context = call.tool, call.context
        # What a tool sees of its context may decide its answer: the user, for example.
        seen = (context.config, context.metadata, context.state)
        key = None if tool is None else canonical(call.arguments, *seen * tool.wants_context)
        if tool is None or key is None:
            return inner(call)
        return remembered(memory, key, tool, inner, call)

    return middleware


def forget_turn(memory: AnswerMemory) -> None:
    """Forget the answers that last only for one turn of the user."""
    memory.forget(lambda answer: answer.tool.remember != "session")


def canonical(arguments: object, *values: object) -> str | None:
    """Return values as JSON, the same for equal ones; `None` if JSON cannot express them."""
    try:
        plain = [dict(value) if isinstance(value, Mapping) else value for value in values]
        return json.dumps([json.loads(to_json(arguments)), *plain], sort_keys=True)
    except Exception:
        return None


def _copied(result: ToolResult) -> ToolResult:
    """Return a copy that its reader may change."""
    return replace(result, structured=deepcopy(result.structured), metadata=dict(result.metadata))
