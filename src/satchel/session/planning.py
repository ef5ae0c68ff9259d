"""Plans: what contracts, and after them the host's policy, make of the calls of one step."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from satchel.contracts import (
    ContractError,
    PlanPolicy,
    ToolContract,
    Validation,
    Verdict,
    effects_of,
)
from satchel.contracts.contract_parts import require_sync
from satchel.errors import DefinitionError
from satchel.tools import Text, ToolCall, ToolResult, failure

REFUSED = "plan_refused"
"""The `error_code` of the calls of a plan that the policy refuses."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """What is to be run of a plan, and the answers to the rest of it."""

    calls: tuple[ToolCall, ...]
    places: tuple[int, ...]
    """Where each of the calls stood."""
    answers: Mapping[int, ToolResult]
    """By where the call stood."""


def planned(found: Validation) -> PlannedCalls:
    """Sort a plan that was validated into what is run and what is answered at once."""
    verdicts = (*found.pruned, *found.rejected)
    answers = {item.index: _answer(item) for item in verdicts}
    places = (at for at in range(len(found.plan) + len(answers)) if at not in answers)
    return PlannedCalls(found.plan, tuple(places), answers)


def with_policy(
    found: Validation, policy: PlanPolicy | None, state: Mapping[str, Any]
) -> Validation:
    """Ask the policy about what contracts left of a plan; it accepts or refuses the whole."""
    if policy is None or not found.plan:
        return found
    try:
        told = require_sync(policy(_copies(found.plan), MappingProxyType(state)))
        if not isinstance(told, str | None):
            raise TypeError(f"it returned {type(told).__name__}, not None or a text")  # noqa: TRY301 - as what it raises
    except (Exception, SystemExit) as problem:
        _log().warning("the plan policy failed", exc_info=problem)
        told = "whether it is acceptable could not be told"
    # A policy that joins complaints has none where it returns "".
    return _refused(found, f"The plan was refused: {told}") if told else found


def _copies(plan: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return calls that a policy may spoil: it judges them, and changes none."""
    return tuple(replace(call, arguments=deepcopy(call.arguments)) for call in plan)


def require_policy(policy: PlanPolicy | None) -> PlanPolicy | None:
    """Return what may judge plans. Raises `DefinitionError` for what cannot be called."""
    if policy is None or callable(policy):
        return policy
    raise DefinitionError(
        f"a plan policy is a function, not {type(policy).__name__}",
        fix="write def policy(plan, state), which returns why not, or None",
    )


def log_corrections(found: Validation) -> None:
    """Log what was corrected, which no model is told, and what checks and correctors raised."""
    for item in found.corrected:
        _log().info("%s was corrected by %s", item.sent.name, ", ".join(item.ids))
    for item in found.rejected:
        if item.problem:
            _log().warning("%s (%s)", item.message, item.problem)


def write_effects(contract: ToolContract, result: ToolResult, state: dict[str, Any]) -> ToolResult:
    """Write what a call brought into the state; if that cannot be, the result says so."""
    try:
        state.update(effects_of(contract, result, state))
    except ContractError as problem:
        why = problem.message
    except Exception as problem:  # what a tool gives beside its answer may be anything
        _log().warning("what %s brought cannot be written", contract.name, exc_info=problem)
        why = f"{contract.name}: what it brought cannot be written"
    else:
        return result
    told = f"the tool ran, but nothing of it was kept; {why}; do not retry"
    return failure("effect_failed", told, result.call_id)


class EffectWriter:
    """Writes what the calls of a plan bring into the state, in the order of the calls."""

    def __init__(self, contracts: Sequence[ToolContract | None], state: dict[str, Any]) -> None:
        self._contracts, self._state = contracts, state
        self._ended: dict[int, tuple[ToolResult, ToolContract | None]] = {}
        """What waits for calls ahead of it, with the contract by which it is written, if any."""
        self._arrived: dict[int, ToolResult] = {}
        self._failed: dict[int, ToolResult] = {}
        self._next = 0
        """The first call that has not ended; what those behind it bring has to wait."""

    def end(self, index: int, result: ToolResult, contract: ToolContract | None) -> None:
        """Note the result of a call; what it brings is there for the calls that begin now."""
        if index >= self._next:
            brings = contract is not None and contract.state_effects and not result.is_error
            self._ended.setdefault(index, (result, contract if brings else None))
        while self._next in self._ended:
            self._write(self._next)

    def close(self) -> None:
        """Write what ended behind calls that never will: the plan was given up."""
        for at in sorted(self._ended):
            self._write(at)

    def _write(self, at: int) -> None:
        ended, by = self._ended.pop(at)
        written = write_effects(by, ended, self._state) if by else ended
        if written is not ended:
            self._failed[at] = written
        self._next = at + 1

    def arrive(self, index: int, result: ToolResult) -> Iterator[tuple[int, ToolResult]]:
        """Take a result from the executor, and yield those that nothing can change any more."""
        self.end(index, result, self._contracts[index])
        self._arrived[index] = result
        for at in sorted(self._arrived):
            if at < self._next or self._ended[at][1] is None:
                arrived = self._arrived.pop(at)
                yield at, self._failed.get(at, arrived)


def _answer(verdict: Verdict) -> ToolResult:
    """Return the result of a call that is not run."""
    call_id = verdict.sent.id or None
    if not verdict.code:
        text = (Text(verdict.message),)
        return ToolResult(content=text, call_id=call_id, metadata={"pruned": verdict.ids})
    told = failure(verdict.code, verdict.message, call_id)
    return replace(told, metadata={"rejected": verdict.ids}) if verdict.ids else told


def _refused(found: Validation, message: str) -> Validation:
    """Reject all that is left of a plan."""
    sent = {item.index: item.sent for item in found.corrected}
    left = planned(found)
    refused = [
        Verdict(index=at, sent=sent.get(at, call), call=None, ids=(), message=message, code=REFUSED)
        for at, call in zip(left.places, left.calls, strict=True)
    ]
    rejected = sorted((*found.rejected, *refused), key=lambda item: item.index)
    return Validation((), (), found.pruned, tuple(rejected))


def _log() -> Any:
    import logging

    return logging.getLogger("satchel.contracts")
