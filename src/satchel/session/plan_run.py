"""One plan: the calls of one model message. They are validated together, then run."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial

from satchel.contracts.tool_contract import ToolContract
from satchel.lazy_dataclass import dataclass
from satchel.runtime.call_messages import interruption
from satchel.runtime.executors import Answer, Executor
from satchel.runtime.stream_opening import close
from satchel.session.planning import EffectWriter
from satchel.session.plans import PlanValidator
from satchel.session.tool_resolver import contract_of
from satchel.shared import SharedView
from satchel.tools import ToolCall, ToolResult, failure

CurrentView = Callable[[], SharedView]
"""Returns the shared view for a call that starts now."""

RunInView = Callable[[SharedView, ToolCall], Awaitable[tuple[ToolResult, ToolContract | None]]]
"""Runs a call with the tools of a view. Returns its result, and the contract of its effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedPlan:
    """The calls of a plan that are accepted, and the answers to the calls that are refused.

    Each call has a `plan_index`, in the plan of the model. An accepted call also has an
    `accepted_index`, among the accepted calls. The executor gets only these.
    """

    calls: tuple[ToolCall, ...]
    plan_indexes: tuple[int, ...]
    """The plan index of each accepted call."""
    accepted_indexes: Mapping[int, int]
    """The accepted index of each call, by its `id()`."""
    contracts: tuple[ToolContract | None, ...]
    """The contract of each accepted call, if its tool has one."""
    refusals: Mapping[int, ToolResult]
    """The answers to the refused calls, by their plan index."""
    effects: EffectWriter


class PlanRun:
    """Runs the calls that contracts and the policy accept; writes effects in the calls' order."""

    def __init__(
        self,
        calls: Sequence[ToolCall],
        current_view: CurrentView,
        validator: PlanValidator,
        run_in_view: RunInView,
    ) -> None:
        self._calls, self._validator = calls, validator
        self._current_view, self._run_in_view = current_view, run_in_view
        # Both by plan index: the calls that have not started, and those that will not start.
        self._waiting = dict(enumerate(calls))
        self._interrupted: set[int] = set()

    def validate(self) -> ValidatedPlan:
        """Validate the plan by the newest contracts and the policy."""
        shared_view = self._current_view()
        planned = self._validator.plan_calls_with_policy(shared_view, self._calls)
        for index in planned.answers:
            self._waiting.pop(index, None)
        contracts = tuple(contract_of(shared_view, call.name) for call in planned.calls)
        return ValidatedPlan(
            calls=planned.calls,
            plan_indexes=planned.indexes,
            accepted_indexes={id(call): index for index, call in enumerate(planned.calls)},
            contracts=contracts,
            refusals=planned.answers,
            effects=EffectWriter(contracts, self._validator.state),
        )

    async def run(self, plan: ValidatedPlan, call: ToolCall) -> ToolResult:
        """Run one of the accepted calls; the executor calls this."""
        accepted_index = plan.accepted_indexes.get(id(call))
        if accepted_index is None:  # a call that the executor made itself
            result, _ = await self._run_in_newest_view(call, validated_by=None)
            return result
        plan_index = plan.plan_indexes[accepted_index]
        self._waiting.pop(plan_index, None)
        if plan_index in self._interrupted:
            return interruption(call.name, call.id or None)
        validated_by = plan.contracts[accepted_index]
        result, contract = await self._run_in_newest_view(call, validated_by=validated_by)
        if not result.is_error:
            plan.effects.record(accepted_index, result, contract)
        return result

    async def _run_in_newest_view(
        self, call: ToolCall, *, validated_by: ToolContract | None
    ) -> tuple[ToolResult, ToolContract | None]:
        """Run a call; validate it again if the newest view has another contract for it."""
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

    Not an async generator: before Python 3.13, a waiting generator does not notice that its reader
    is closed, and could not end its calls. The plan holds no reference to this stream, so a stream
    without a reader is freed at once.
    """

    def __init__(self, plan_run: PlanRun, executor: Executor) -> None:
        self._plan_run, self._executor = plan_run, executor
        self._is_over = False
        self._running: tuple[ValidatedPlan, AsyncIterator[Answer]] | None = None
        self._final: deque[Answer] = deque()
        self._unanswered: dict[int, ToolCall] = {}

    async def __anext__(self) -> Answer:
        if self._is_over:
            raise StopAsyncIteration
        if self._running is None:
            plan = self._plan_run.validate()
            self._unanswered = dict(enumerate(plan.calls))
            self._final.extend(sorted(plan.refusals.items()))
            answers = self._executor.stream(plan.calls, partial(self._plan_run.run, plan))
            self._running = plan, answers
        while not self._final:
            await self._receive(*self._running)
        return self._final.popleft()

    async def _receive(self, plan: ValidatedPlan, answers: AsyncIterator[Answer]) -> None:
        """Take the next answer of the executor; raise `StopAsyncIteration` after the last one."""
        try:
            accepted_index, result = await anext(answers)
        except StopAsyncIteration:
            if not self._unanswered:
                raise
            # The executor left them out, and the model needs a result for each.
            for index, call in tuple(self._unanswered.items()):
                self._take(plan, index, failure("tool_failed", "tool failed", call.id or None))
        except BaseException:
            self._is_over = True  # the running calls have ended with the executor
            plan.effects.close()
            raise
        else:
            self._take(plan, accepted_index, result)

    def _take(self, plan: ValidatedPlan, accepted_index: int, result: ToolResult) -> None:
        """Add the results that are final. One with effects waits for the calls before it."""
        # An executor may answer a call twice.
        if self._unanswered.pop(accepted_index, None) is not None:
            for final_index, final_result in plan.effects.release(accepted_index, result):
                self._final.append((plan.plan_indexes[final_index], final_result))

    async def aclose(self) -> None:
        """Cancel the running calls, and wait until they have ended."""
        self._is_over = True
        if self._running is not None:
            plan, answers = self._running
            await close(answers)
            plan.effects.close()
