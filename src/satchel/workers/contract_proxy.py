"""Contracts of tools in a process of their own: their words come here, their functions stay there.

What is judged there is waited for, as a rule of this process is; one that gives no answer in
time, or dies of its question, refuses the call.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, get_origin

from satchel.contracts import (
    DROP_STEP,
    Plan,
    ToolConfigParam,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.errors import DefinitionError
from satchel.tools import ToolCall
from satchel.workers.codec import RULES, exact, is_exact
from satchel.workers.worker_processes import WorkerHandle

_KINDS = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "str": str,
    "bytes": bytes,
    "int": int,
    "float": float,
    "bool": bool,
}


# ---- in the process of the plugin ---------------------------------------------------------


def encode_contract(contract: ToolContract) -> dict[str, Any]:
    """Return the words of a contract. Raises `DefinitionError` for a default that has none."""
    defaults = {item.key: item.default for item in contract.config_params}
    defaults |= {item.key: item.default for item in contract.state_reads if not item.is_required}
    for key, default in defaults.items():
        if not is_exact(default):
            raise DefinitionError(f"the default of {key!r} is nothing that JSON can say")
    return {
        "name": contract.name,
        "parameters": contract.parameters,
        "description": contract.description,
        "rules": [_told_rule(item) for item in contract.invariants],
        "config": [
            {
                "key": item.key,
                "default": item.default,
                "is_normalized": item.normalizer is not None,
            }
            for item in contract.config_params
        ],
        "reads": [
            {"key": item.key} if item.is_required else {"key": item.key, "default": item.default}
            for item in contract.state_reads
        ],
        "effects": [
            {
                "key": item.key,
                "type_hint": _kind(item.type_hint),
                "merge": item.merge,
                "preserve_across_turns": item.preserve_across_turns,
                "prompt_template_var": item.prompt_template_var,
            }
            for item in contract.state_effects
        ],
    }


def _told_rule(rule: ToolInvariant) -> dict[str, Any]:
    corrects = "drop" if rule.correct is DROP_STEP else "no" if rule.correct is None else "ask"
    return {"id": rule.id, "rule": rule.rule, "sees_plan": rule.sees_plan, "corrects": corrects}


def _kind(hint: Any) -> str:
    """Name the kind of a value, as far as it matters to whoever writes it into the state."""
    return getattr(get_origin(hint) or hint, "__name__", "")


def answer_rule(contract: ToolContract, question: Mapping[str, Any]) -> Any:
    """Return what a function of a contract says; raises what it raises."""
    if "value" in question:
        param = next(item for item in contract.config_params if item.key == question["key"])
        assert param.normalizer is not None
        return exact(param.normalizer(question["value"]), f"what {param.key!r} is normalised to")
    rule = next(item for item in contract.invariants if item.id == question["id"])
    plan = Plan(tuple(ToolCall(**call) for call in question["plan"]), question["at"])
    call = ToolCall(**deepcopy(question["call"]))
    state, config = (MappingProxyType(question[key]) for key in ("state", "config"))
    if not question["corrects"]:
        is_kept = rule.is_kept(call, state, config, plan)
        if call.arguments != question["call"]["arguments"]:
            raise TypeError("it changed the arguments of the call")
        return is_kept
    found = rule.corrected(call, state, config, plan)
    if found is DROP_STEP:
        return {"is_dropped": True}
    made, is_corrected = found
    if not isinstance(made, ToolCall):
        raise TypeError("a corrector returns the call")
    what = f"the arguments that rule {rule.id!r} makes"
    arguments = exact(made.arguments, what)
    return {"name": made.name, "arguments": arguments, "is_corrected": is_corrected}


# ---- in the process of the host -----------------------------------------------------------


def decode_contract(told: Mapping[str, Any], worker: WorkerHandle) -> ToolContract:
    """Return a contract whose functions ask the process. Raises `DefinitionError`."""
    return ToolContract(
        name=told["name"],
        schema=told["parameters"],
        description=told["description"],
        invariants=[_rule(told["name"], item, worker) for item in told["rules"]],
        config_params=[
            ToolConfigParam(
                item["key"],
                item["default"],
                _normalizer(told["name"], item["key"], worker) if item["is_normalized"] else None,
            )
            for item in told["config"]
        ],
        state_reads=[ToolStateRead(**item) for item in told["reads"]],
        state_effects=[
            ToolStateEffect(**{**item, "type_hint": _KINDS.get(item["type_hint"], dict)})
            for item in told["effects"]
        ],
    )


def _rule(tool: str, told: Mapping[str, Any], worker: WorkerHandle) -> ToolInvariant:
    what = f"what rule {told['id']!r} judges"

    def ask(call: ToolCall, state: Any, config: Any, plan: Plan | None, *, corrects: bool) -> Any:
        return worker.ask(
            RULES,
            tool=tool,
            id=told["id"],
            corrects=corrects,
            call=exact(_told_call(call), what),
            state=exact(dict(state), what),
            config=exact(dict(config), what),
            plan=[exact(_told_call(item), what) for item in plan or ()],
            at=plan.at if plan else 0,
        )

    def is_kept(call: ToolCall, state: Any, config: Any, plan: Plan | None) -> bool:
        return ask(call, state, config, plan, corrects=False) is True

    def corrected(call: ToolCall, state: Any, config: Any, plan: Plan | None) -> Any:
        found = ask(call, state, config, plan, corrects=True)
        if found.get("is_dropped"):
            return DROP_STEP
        made = call.changed(name=found["name"], arguments=found["arguments"])
        return made, found["is_corrected"]

    correct: Any = {"no": None, "drop": DROP_STEP, "ask": _shaped(corrected, told)}
    return ToolInvariant(
        id=told["id"],
        rule=told["rule"],
        check=_shaped(is_kept, told),
        correct=correct[told["corrects"]],
    )


def _shaped(judge: Callable[..., Any], told: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that takes the plan only if that of the plugin does."""
    if told["sees_plan"]:
        return judge
    return lambda call, state, config: judge(call, state, config, None)


def _told_call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments, "id": call.id}


def _normalizer(tool: str, key: str, worker: WorkerHandle) -> Any:
    def normalized(value: Any) -> Any:
        return worker.ask(RULES, tool=tool, key=key, value=exact(value, f"the value of {key!r}"))

    return normalized
