"""The answers to a plan, in the order in which they are final."""

from collections import deque
from collections.abc import AsyncIterator, Callable

from satchel.runtime.executors import Answer
from satchel.runtime.stream_opening import close
from satchel.session.planning import EffectWriter, PlannedCalls
from satchel.tools import ToolCall, ToolResult, failure

Begin = Callable[[], tuple[PlannedCalls, EffectWriter, AsyncIterator[Answer]]]
"""Judges a plan, and lets an executor begin with what is left of it."""


class PlanStream(AsyncIterator[Answer]):
    """Gives the answers to a plan: of what is not run at once, and of the rest as it comes.

    No async generator, for the reason that the stream of an executor is none.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._is_over = False
        self._answers: AsyncIterator[Answer] | None = None
        self._ready: deque[Answer] = deque()
        self._left: dict[int, ToolCall] = {}

    async def __anext__(self) -> Answer:
        if self._is_over:
            raise StopAsyncIteration
        if self._answers is None:
            self._plan, self._ledger, self._answers = self._begin()
            self._left = dict(enumerate(self._plan.calls))
            self._ready.extend(sorted(self._plan.answers.items()))
        while not self._ready:
            try:
                number, result = await anext(self._answers)
            except StopAsyncIteration:
                if not self._left:
                    raise
                self._answer_forgotten()
            except BaseException:
                self._is_over = True  # what still ran has ended with it
                self._ledger.close()
                raise
            else:
                self._take(number, result)
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        self._is_over = True
        if self._answers is not None:
            await close(self._answers)
            self._ledger.close()

    def _take(self, number: int, result: ToolResult) -> None:
        # Somebody's own executor may tell it twice.
        if self._left.pop(number, None) is not None:
            final = self._ledger.arrive(number, result)
            self._ready.extend((self._plan.places[known], told) for known, told in final)

    def _answer_forgotten(self) -> None:
        """Answer the rest: a model waits for that, also where an executor forgot a call."""
        for number, call in tuple(self._left.items()):
            self._take(number, failure("tool_failed", "tool failed", call.id or None))
