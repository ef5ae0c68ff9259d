"""One plan: the calls of one model message. They are validated together, then run."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from satchel.contracts.tool_contract import ToolContract
from satchel.runtime.call_messages import interruption
from satchel.runtime.executors import Answer, Executor
from satchel.runtime.stream_opening import close
from satchel.session.planning import AcceptedCall, EffectWriter, PlannedCalls
from satchel.session.plans import PlanValidator
from satchel.session.tool_resolver import contract_of
from satchel.shared import SharedView
from satchel.tools import ToolCall, ToolResult, failure

CurrentView = Callable[[], SharedView]
"""Returns the shared view for a call that starts now."""

RunInView = Callable[[SharedView, ToolCall], Awaitable[tuple[ToolResult, ToolContract | None]]]
"""Runs a call with the tools of a view. Returns its result, and the contract of its effects."""


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
        self.effects = EffectWriter(validator.state)
        # Both by plan index: the calls that have not started, and those that will not start.
        self._waiting = dict(enumerate(calls))
        self._interrupted: set[int] = set()
        self._accepted_by_id: dict[int, AcceptedCall] = {}

    def validate(self) -> PlannedCalls:
        """Validate the plan by the newest contracts and the policy."""
        planned = self._validator.plan_calls_with_policy(self._current_view(), self._calls)
        for index in planned.refusals:
            self._waiting.pop(index, None)
        self._accepted_by_id = {id(accepted.call): accepted for accepted in planned.accepted}
        return planned

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one of the accepted calls; the executor calls this."""
        accepted = self._accepted_by_id.get(id(call))
        if accepted is None:  # a call that the executor made itself
            result, _ = await self._run_in_newest_view(call, validated_by=None)
            return result
        self._waiting.pop(accepted.plan_index, None)
        if accepted.plan_index in self._interrupted:
            return interruption(call.name, call.id or None)
        result, contract = await self._run_in_newest_view(call, validated_by=accepted.contract)
        if not result.is_error:
            self.effects.record(accepted.plan_index, result, contract)
        return result

    async def _run_in_newest_view(
        self, call: ToolCall, *, validated_by: ToolContract | None
    ) -> tuple[ToolResult, ToolContract | None]:
        """Run a call; validate it again if the newest view has another contract for it."""
        shared_view = self._current_view()
        if contract_of(shared_view, call.name) is not validated_by:
            planned = self._validator.plan_calls(shared_view, [call], None)
            if planned.refusals:
                return planned.refusals[0], None
            call = planned.accepted[0].call
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
        self._answers: AsyncIterator[Answer] | None = None
        self._final: deque[Answer] = deque()
        # By the index among the accepted calls, which are all that the executor gets.
        self._unanswered: dict[int, AcceptedCall] = {}

    async def __anext__(self) -> Answer:
        if self._is_over:
            raise StopAsyncIteration
        answers = self._answers or self._start()
        while not self._final:
            await self._receive(answers)
        return self._final.popleft()

    def _start(self) -> AsyncIterator[Answer]:
        planned = self._plan_run.validate()
        self._unanswered = dict(enumerate(planned.accepted))
        for index, refusal in sorted(planned.refusals.items()):
            self._final.extend(self._plan_run.effects.release(index, refusal, None))
        calls = tuple(accepted.call for accepted in planned.accepted)
        self._answers = self._executor.stream(calls, self._plan_run.run)
        return self._answers

    async def _receive(self, answers: AsyncIterator[Answer]) -> None:
        """Take the next answer of the executor; raise `StopAsyncIteration` after the last one."""
        try:
            accepted_index, result = await anext(answers)
        except StopAsyncIteration:
            if not self._unanswered:
                raise
            # The executor left them out, and the model needs a result for each.
            for index, left_out in tuple(self._unanswered.items()):
                call_id = left_out.call.id or None
                self._take(index, failure("tool_failed", "tool failed", call_id))
        except BaseException:
            self._is_over = True  # the running calls have ended with the executor
            self._plan_run.effects.close()
            raise
        else:
            self._take(accepted_index, result)

    def _take(self, accepted_index: int, result: ToolResult) -> None:
        """Add the answers that are final. One with effects waits for the calls before it."""
        # An executor may answer a call twice.
        if (accepted := self._unanswered.pop(accepted_index, None)) is not None:
            effects = self._plan_run.effects
            self._final.extend(effects.release(accepted.plan_index, result, accepted.contract))

    async def aclose(self) -> None:
        """Cancel the running calls, and wait until they have ended."""
        self._is_over = True
        if self._answers is not None:
            await close(self._answers)
            self._plan_run.effects.close()
