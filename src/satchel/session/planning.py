"""Plans: the calls to run, the answers to the others, and the effects in the calls' order."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from satchel.contracts.contract_errors import ContractError
from satchel.contracts.contract_parts import require_sync
from satchel.contracts.plan import PlanPolicy, Validation, Verdict
from satchel.contracts.state_effects import effects_of
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import Text, ToolCall, ToolResult, failure

REFUSED = "plan_refused"
"""The `error_code` of the calls of a plan that the policy refuses."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """The calls of a plan that run, and the answers to its other calls."""

    calls: tuple[ToolCall, ...]
    indexes: tuple[int, ...]
    """The index of each of the calls in the plan."""
    answers: Mapping[int, ToolResult]
    """By the index of the call in the plan."""


def planned(validation: Validation) -> PlannedCalls:
    """Split a validated plan into the calls that run and the answers to the others."""
    verdicts = (*validation.pruned, *validation.rejected)
    answers = {item.index: _answer(item) for item in verdicts}
    indexes = (at for at in range(len(validation.plan) + len(answers)) if at not in answers)
    return PlannedCalls(validation.plan, tuple(indexes), answers)


def with_policy(
    validation: Validation, policy: PlanPolicy | None, state: Mapping[str, Any]
) -> Validation:
    """Ask the policy about the calls that contracts accept; it accepts or refuses all of them."""
    if policy is None or not validation.plan:
        return validation
    try:
        reason = require_sync(policy(_copies(validation.plan), MappingProxyType(state)))
        if not isinstance(reason, str | None):
            raise TypeError(f"it returned {type(reason).__name__}, not None or a text")  # noqa: TRY301 - as what it raises
    except (Exception, SystemExit) as problem:
        _log().warning("the plan policy failed", exc_info=problem)
        reason = "the policy failed"
    # A policy that joins reasons returns "" if there are none.
    return _refused(validation, f"The plan was refused: {reason}") if reason else validation


def _copies(plan: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return copies, so that a policy cannot change the calls."""
    return tuple(replace(call, arguments=deepcopy(call.arguments)) for call in plan)


def require_policy(policy: PlanPolicy | None) -> PlanPolicy | None:
    """Return the policy. Raises `DefinitionError` if it cannot be called."""
    if policy is None or callable(policy):
        return policy
    raise DefinitionError(
        f"a plan policy is a function, not {type(policy).__name__}",
        fix="write def policy(plan, state), which returns why not, or None",
    )


def log_verdicts(validation: Validation) -> None:
    """Log what the rules did, by their ids, and the errors of checks and correctors."""
    for did, verdicts in (
        ("corrected", validation.corrected),
        ("pruned", validation.pruned),
        ("rejected", validation.rejected),
    ):
        for item in verdicts:
            if item.problem:
                _log().warning("%s (%s)", item.message, item.problem)
            elif item.ids:
                _log().info("%s was %s by %s", item.sent.name, did, ", ".join(item.ids))


def write_effects(contract: ToolContract, result: ToolResult, state: dict[str, Any]) -> ToolResult:
    """Write the effects of a call into the state; if that fails, return why instead."""
    try:
        state.update(effects_of(contract, result, state))
    except ContractError as problem:
        why = problem.message
    except Exception as problem:  # a tool may return anything
        _log().warning("the effects of %s cannot be written", contract.name, exc_info=problem)
        why = f"{contract.name}: its effects cannot be written"
    else:
        return result
    message = f"the tool ran, but its effects were not kept; {why}; do not retry"
    return failure("effect_failed", message, result.call_id)


class EffectWriter:
    """Writes the effects of the calls of a plan into the state, in the order of the calls.

    A call is known by its number in the plan.
    """

    def __init__(self, contracts: Sequence[ToolContract | None], state: dict[str, Any]) -> None:
        self._contracts, self._state = contracts, state
        self._ended: dict[int, tuple[ToolResult, ToolContract | None]] = {}
        """Results that wait for earlier calls, with the contract of their effects, if any."""
        self._arrived: dict[int, ToolResult] = {}
        self._failed: dict[int, ToolResult] = {}
        self._next = 0
        """The first call that has not ended; the effects of later calls wait for it."""

    def record(self, number: int, result: ToolResult, contract: ToolContract | None) -> None:
        """Record the result of a call; calls that start after this see its effects."""
        if number >= self._next:
            has_effects = contract is not None and contract.state_effects and not result.is_error
            self._ended.setdefault(number, (result, contract if has_effects else None))
        while self._next in self._ended:
            self._write(self._next)

    def close(self) -> None:
        """Write the effects that still wait: the plan was cancelled."""
        for number in sorted(self._ended):
            self._write(number)

    def _write(self, number: int) -> None:
        result, contract = self._ended.pop(number)
        written = write_effects(contract, result, self._state) if contract else result
        if written is not result:
            self._failed[number] = written
        self._next = number + 1

    def release(self, number: int, result: ToolResult) -> Iterator[tuple[int, ToolResult]]:
        """Take a result from the executor, and yield the results that are final now."""
        self.record(number, result, self._contracts[number])
        self._arrived[number] = result
        for arrived in sorted(self._arrived):
            if arrived < self._next or self._ended[arrived][1] is None:
                yield arrived, self._failed.get(arrived, self._arrived.pop(arrived))


def _answer(verdict: Verdict) -> ToolResult:
    """Return the result of a call that is not run."""
    call_id = verdict.sent.id or None
    if not verdict.code:
        text = (Text(verdict.message),)
        return ToolResult(content=text, call_id=call_id, metadata={"pruned": verdict.ids})
    result = failure(verdict.code, verdict.message, call_id)
    return replace(result, metadata={"rejected": verdict.ids}) if verdict.ids else result


def _refused(validation: Validation, message: str) -> Validation:
    """Reject all calls that contracts accepted."""
    sent = {item.index: item.sent for item in validation.corrected}
    accepted = planned(validation)
    refused = [
        Verdict(index=at, sent=sent.get(at, call), call=None, ids=(), message=message, code=REFUSED)
        for at, call in zip(accepted.indexes, accepted.calls, strict=True)
    ]
    rejected = sorted((*validation.rejected, *refused), key=lambda item: item.index)
    return Validation(plan=(), pruned=validation.pruned, rejected=tuple(rejected))


def _log() -> Any:
    import logging

    return logging.getLogger("satchel.contracts")
