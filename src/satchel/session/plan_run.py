"""One plan: the calls of one model message. They are validated together, then run."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from satchel.contracts.tool_contract import ToolContract
from satchel.runtime.call_messages import interruption
from satchel.runtime.executors import Answer, Executor
from satchel.runtime.stream_opening import close
from satchel.session.planning import EffectWriter, PlannedCalls
from satchel.session.plans import PlanValidator
from satchel.session.tool_resolver import contract_of
from satchel.shared import SharedView
from satchel.tools import ToolCall, ToolResult, failure

CurrentView = Callable[[], SharedView]
"""Returns the shared view for a call that starts now."""

RunInView = Callable[[SharedView, ToolCall], Awaitable[tuple[ToolResult, ToolContract | None]]]
"""Runs a call; returns its result, and the contract whose effects must be written."""


class PlanRun:
    """Runs the calls that contracts and the policy accept; writes effects in the calls' order.

    A call has an `index` in the plan that the model sent. A call that is accepted also has a
    `number`: its index in the shorter list that the executor gets.
    """

    planned: PlannedCalls
    effects: EffectWriter

    def __init__(
        self,
        calls: Sequence[ToolCall],
        current_view: CurrentView,
        validator: PlanValidator,
        run_in_view: RunInView,
    ) -> None:
        self._calls, self._validator = calls, validator
        self._current_view, self._run_in_view = current_view, run_in_view
        # Both by index: the calls that have not started, and those that never shall.
        self._waiting = dict(enumerate(calls))
        self._interrupted: set[int] = set()

    def begin(self) -> PlannedCalls:
        """Validate the plan; return the calls to run and the answers to the others."""
        shared_view = self._current_view()
        self.planned = planned = self._validator.plan_calls_with_policy(shared_view, self._calls)
        for index in planned.answers:
            del self._waiting[index]
        self._numbers = {id(call): number for number, call in enumerate(planned.calls)}
        self._contracts = [contract_of(shared_view, call.name) for call in planned.calls]
        self.effects = EffectWriter(self._contracts, self._validator.state)
        return planned

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one of the accepted calls; the executor calls this."""
        number = self._numbers.get(id(call))
        if number is None:  # a call that the executor made itself
            result, _ = await self._run(call, validated_by=None)
            return result
        index = self.planned.places[number]
        self._waiting.pop(index, None)
        if index in self._interrupted:
            return interruption(call.name, call.id or None)
        result, contract = await self._run(call, validated_by=self._contracts[number])
        if not result.is_error:
            self.effects.end(number, result, contract)
        return result

    async def _run(
        self, call: ToolCall, *, validated_by: ToolContract | None
    ) -> tuple[ToolResult, ToolContract | None]:
        """Run a call in the newest view; validate it again if that has another contract for it."""
        shared_view = self._current_view()
        if contract_of(shared_view, call.name) is not validated_by:
            planned = self._validator.plan_calls(shared_view, [call], None)
            if not planned.calls:
                return planned.answers[0], None
            call = planned.calls[0]
        return await self._run_in_view(shared_view, call)

    def interrupt(self, call_id: str | None) -> int:
        """Answer the waiting calls with that id, or all, as interrupted; return how many."""
        indexes = [index for index, call in self._waiting.items() if call_id in {None, call.id}]
        for index in indexes:
            del self._waiting[index]
        self._interrupted.update(indexes)
        return len(indexes)


class PlanStream(AsyncIterator[Answer]):
    """Yields the result of each call when it is final; refused calls come first.

    The docstring of `AnswerStream` says why this is not an async generator. The plan holds no
    reference to this stream, so a stream without a reader is freed at once.
    """

    def __init__(self, plan: PlanRun, executor: Executor) -> None:
        self._plan, self._executor = plan, executor
        self._is_over = False
        self._answers: AsyncIterator[Answer] | None = None
        self._ready: deque[Answer] = deque()
        self._unanswered: dict[int, ToolCall] = {}

    async def __anext__(self) -> Answer:
        if self._is_over:
            raise StopAsyncIteration
        if self._answers is None:
            self._answers = self._begin()
        while not self._ready:
            await self._receive(self._answers)
        return self._ready.popleft()

    def _begin(self) -> AsyncIterator[Answer]:
        """Answer the refused calls, and give the others to the executor."""
        planned = self._plan.begin()
        self._unanswered = dict(enumerate(planned.calls))
        self._ready.extend(sorted(planned.answers.items()))
        return self._executor.stream(planned.calls, self._plan.run)

    async def _receive(self, answers: AsyncIterator[Answer]) -> None:
        """Take the next answer of the executor; its end is raised once all calls have answers."""
        try:
            number, result = await anext(answers)
        except StopAsyncIteration:
            if not self._unanswered:
                raise
            # The executor forgot them, and the model needs a result for each.
            for number, call in tuple(self._unanswered.items()):
                self._take(number, failure("tool_failed", "tool failed", call.id or None))
        except BaseException:
            self._is_over = True  # the running calls have ended with the executor
            self._plan.effects.close()
            raise
        else:
            self._take(number, result)

    async def aclose(self) -> None:
        """Cancel the running calls, and wait until they have ended."""
        self._is_over = True
        if self._answers is not None:
            await close(self._answers)
            self._plan.effects.close()

    def _take(self, number: int, result: ToolResult) -> None:
        """Add the answers that are final now: one may wait until earlier calls have ended."""
        if self._unanswered.pop(number, None) is None:
            return  # an executor may answer a call twice
        places = self._plan.planned.places
        for final_number, answer in self._plan.effects.arrive(number, result):
            self._ready.append((places[final_number], answer))
