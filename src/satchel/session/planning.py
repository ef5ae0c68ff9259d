"""Plans: the calls to run, the answers to the others, and the effects in the calls' order."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from satchel.contracts.contract_parts import require_sync
from satchel.contracts.plan import PlanPolicy, Validation, Verdict
from satchel.contracts.state_effects import effects_of
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError, DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import Text, ToolCall, ToolResult, failure

REFUSED = "plan_refused"
"""The `error_code` of the calls of a plan that the policy refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedCall:
    """A call of a plan that may run."""

    call: ToolCall
    plan_index: int
    contract: ToolContract | None = None
    """The contract by which it was validated, if its tool has one."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """The calls of a plan that may run, and the answers to its other calls."""

    accepted: tuple[AcceptedCall, ...]
    refusals: Mapping[int, ToolResult]
    """By the index of the call in the plan."""


def accepted_calls(validation: Validation) -> Iterator[tuple[int, ToolCall]]:
    """Yield the calls of a validated plan that may run, each with its index in the plan."""
    refused = {item.index for item in (*validation.pruned, *validation.rejected)}
    indexes = (at for at in range(len(validation.plan) + len(refused)) if at not in refused)
    return zip(indexes, validation.plan, strict=True)


def refusals_of(validation: Validation) -> dict[int, ToolResult]:
    """Return the answers to the calls that do not run, by their indexes in the plan."""
    return {item.index: _answer(item) for item in (*validation.pruned, *validation.rejected)}


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

    A call is known by its index in the plan.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._ended: dict[int, tuple[ToolResult, ToolContract | None]] = {}
        """Results that wait for earlier calls, with the contract of their effects, if any."""
        self._arrived: dict[int, ToolResult] = {}
        self._failed: dict[int, ToolResult] = {}
        self._next = 0
        """The first call that has not ended; the effects of later calls wait for it."""

    def record(self, index: int, result: ToolResult, contract: ToolContract | None) -> None:
        """Record the result of a call; calls that start after this see its effects."""
        if index >= self._next:
            has_effects = contract is not None and contract.state_effects and not result.is_error
            self._ended.setdefault(index, (result, contract if has_effects else None))
        while self._next in self._ended:
            self._write(self._next)

    def close(self) -> None:
        """Write the effects that still wait: the plan was cancelled."""
        for index in sorted(self._ended):
            self._write(index)

    def _write(self, index: int) -> None:
        result, contract = self._ended.pop(index)
        written = write_effects(contract, result, self._state) if contract else result
        if written is not result:
            self._failed[index] = written
        self._next = index + 1

    def release(
        self, index: int, result: ToolResult, contract: ToolContract | None
    ) -> Iterator[tuple[int, ToolResult]]:
        """Take the answer to a call, and yield the answers that are final now, by their indexes."""
        self.record(index, result, contract)
        self._arrived[index] = result
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
    refused = [
        Verdict(index=at, sent=sent.get(at, call), call=None, ids=(), message=message, code=REFUSED)
        for at, call in accepted_calls(validation)
    ]
    rejected = sorted((*validation.rejected, *refused), key=lambda item: item.index)
    return Validation(plan=(), pruned=validation.pruned, rejected=tuple(rejected))


def _log() -> Any:
    import logging

    return logging.getLogger("satchel.contracts")
