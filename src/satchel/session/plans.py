"""Plans: the calls of one step, held to the contracts of their tools and then to the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from satchel.contracts import PlanPolicy, ToolContract, Validation, resolve_config, validate
from satchel.session.planning import (
    PlannedCalls,
    log_corrections,
    planned,
    with_policy,
    write_effects,
)
from satchel.session.session_state import SessionState
from satchel.session.tool_resolver import ToolResolver, contract_of
from satchel.shared import SharedView
from satchel.tools import ToolCall, ToolResult

Configs = dict[int, Mapping[str, Any]]
"""The configuration of each call of a plan, settled once."""


class PlanJudge:
    """Judges the plans of one conversation, and keeps what its calls bring."""

    __slots__ = ("_conversation", "_toolbox")

    def __init__(self, conversation: SessionState, toolbox: ToolResolver) -> None:
        self._conversation, self._toolbox = conversation, toolbox

    @property
    def state(self) -> dict[str, Any]:
        """Return what effects are written into."""
        return self._conversation.state

    def concerns(self, scene: SharedView, name: str) -> bool:
        """Return whether a call of a tool must be judged before it runs."""
        # A name that is no text must not reach an executor.
        return (
            self._conversation.plan_policy is not None
            or not isinstance(name, str)
            or contract_of(scene, name) is not None
        )

    def judged_with_policy(self, scene: SharedView, calls: Sequence[ToolCall]) -> PlannedCalls:
        """Judge a plan by the contracts of its tools, and then by the policy."""
        if any(self.concerns(scene, call.name) for call in calls):
            return self.judged(scene, calls, self._conversation.plan_policy)
        # Each is a call of its own, also where a host sends the same one twice.
        own_calls = tuple(call.changed() for call in calls)
        return PlannedCalls(own_calls, tuple(range(len(own_calls))), {})

    def judged(
        self, scene: SharedView, calls: Sequence[ToolCall], policy: PlanPolicy | None
    ) -> PlannedCalls:
        """Judge a plan; return the calls to run, with their configuration, and other answers."""
        configs: Configs = {}
        validation = self._validated(scene, calls, configs)
        log_corrections(validation)
        plan = planned(with_policy(validation, policy, self.state))
        # Each is a call of its own, also where a host sends the same one twice.
        ready = (
            call.changed(context=replace(call.context, config=configs.get(at, call.context.config)))
            for at, call in zip(plan.places, plan.calls, strict=True)
        )
        return replace(plan, calls=tuple(ready))

    def validate(self, scene: SharedView, calls: Sequence[ToolCall]) -> Validation:
        """Return what would become of a plan."""
        return with_policy(
            self._validated(scene, calls, {}), self._conversation.plan_policy, self.state
        )

    def written(self, scene: SharedView, name: str, result: ToolResult) -> ToolResult:
        """Write what a call brought into the state; if that cannot be, the result says so."""
        contract = self.writing(scene, name, result)
        return result if contract is None else write_effects(contract, result, self.state)

    def writing(self, scene: SharedView, name: str, result: ToolResult) -> ToolContract | None:
        """Return the contract by which a result is written into the state, if it is."""
        contract = contract_of(scene, name)
        if contract is None or "pruned" in result.metadata:
            return None
        # What goes on in the background brings it later.
        tool = scene.view.by_name[name].tool
        goes_on = tool is not None and tool.background and "task_id" in result.metadata
        return None if goes_on else contract

    def _validated(
        self, scene: SharedView, calls: Sequence[ToolCall], configs: Configs
    ) -> Validation:
        contracts: dict[str, ToolContract] = {}
        for call in calls:
            if (contract := contract_of(scene, call.name)) is not None:
                contracts[call.name] = contract

        def config_of(at: int, call: ToolCall) -> Mapping[str, Any]:
            configs[at] = resolve_config(contracts[call.name], call.context.config, self.state)
            return configs[at]

        def misfit(call: ToolCall) -> tuple[str, str] | None:
            return self._toolbox.misfit(call, scene)

        return validate(calls, contracts, self.state, config_of, misfit)
