"""Validate plans: the calls of one step, by the contracts of their tools, then by the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from satchel.contracts.contract_binding import resolve_config
from satchel.contracts.plan import PlanPolicy, Validation
from satchel.contracts.plan_validation import validate
from satchel.contracts.tool_contract import ToolContract
from satchel.session.planning import (
    AcceptedCall,
    PlannedCalls,
    accepted_calls,
    log_verdicts,
    refusals_of,
    with_policy,
    write_effects,
)
from satchel.session.session_state import SessionState
from satchel.session.tool_resolver import ToolResolver, contract_of
from satchel.shared import SharedView
from satchel.tools import ToolCall, ToolResult

Configs = dict[int, Mapping[str, Any]]
"""The configuration of each call of a plan, resolved once."""


class PlanValidator:
    """Validates the plans of one session, and writes the effects of its calls."""

    __slots__ = ("_resolver", "_session_state")

    def __init__(self, session_state: SessionState, resolver: ToolResolver) -> None:
        self._session_state, self._resolver = session_state, resolver

    @property
    def state(self) -> dict[str, Any]:
        """The state of the session, which effects are written into."""
        return self._session_state.state

    def plan_calls_with_policy(
        self, shared_view: SharedView, calls: Sequence[ToolCall]
    ) -> PlannedCalls:
        """Validate a plan by contracts and by the policy; return the calls to run."""
        policy = self._session_state.plan_policy
        if any(needs_validation(shared_view, call.name, policy) for call in calls):
            return self.plan_calls(shared_view, calls, policy)
        # Each is a call of its own, also where a host sends the same one twice.
        own_calls = [call.changed() for call in calls]
        accepted = (AcceptedCall(call=call, plan_index=at) for at, call in enumerate(own_calls))
        return PlannedCalls(tuple(accepted), {})

    def plan_calls(
        self, shared_view: SharedView, calls: Sequence[ToolCall], policy: PlanPolicy | None
    ) -> PlannedCalls:
        """Validate a plan; return the calls to run, with configuration, and the other answers."""
        configs: Configs = {}
        validation = self._validate(shared_view, calls, configs)
        log_verdicts(validation)
        validation = with_policy(validation, policy, self.state)

        def accepted(at: int, call: ToolCall) -> AcceptedCall:
            context = replace(call.context, config=configs.get(at, call.context.config))
            # Each is a call of its own, also where a host sends the same one twice.
            return AcceptedCall(
                call=call.changed(context=context),
                plan_index=at,
                contract=contract_of(shared_view, call.name),
            )

        calls_to_run = tuple(accepted(at, call) for at, call in accepted_calls(validation))
        return PlannedCalls(calls_to_run, refusals_of(validation))

    def validate(self, shared_view: SharedView, calls: Sequence[ToolCall]) -> Validation:
        """Return the validation of a plan; nothing is run."""
        return with_policy(
            self._validate(shared_view, calls, {}), self._session_state.plan_policy, self.state
        )

    def write_effects(self, shared_view: SharedView, name: str, result: ToolResult) -> ToolResult:
        """Write the effects of a call into the state; if that fails, return why instead."""
        contract = self.contract_to_write(shared_view, name, result)
        return result if contract is None else write_effects(contract, result, self.state)

    def contract_to_write(
        self, shared_view: SharedView, name: str, result: ToolResult
    ) -> ToolContract | None:
        """Return the contract whose effects a result has, or `None`."""
        contract = contract_of(shared_view, name)
        if contract is None or "pruned" in result.metadata:
            return None
        # A background task has its effects when it ends.
        tool = shared_view.view.by_name[name].tool
        is_running = tool is not None and tool.background and "task_id" in result.metadata
        return None if is_running else contract

    def _validate(
        self, shared_view: SharedView, calls: Sequence[ToolCall], configs: Configs
    ) -> Validation:
        contracts: dict[str, ToolContract] = {}
        for call in calls:
            if (contract := contract_of(shared_view, call.name)) is not None:
                contracts[call.name] = contract

        def config_of(at: int, call: ToolCall) -> Mapping[str, Any]:
            configs[at] = resolve_config(contracts[call.name], call.context.config, self.state)
            return configs[at]

        def find_mismatch(call: ToolCall) -> tuple[str, str] | None:
            return self._resolver.find_mismatch(call, shared_view)

        return validate(calls, contracts, self.state, config_of, find_mismatch)


def needs_validation(shared_view: SharedView, name: str, policy: PlanPolicy | None) -> bool:
    """Return whether a call of a tool must be validated before it runs."""
    # A name that is not a string must not reach an executor.
    return (
        policy is not None
        or not isinstance(name, str)
        or contract_of(shared_view, name) is not None
    )
