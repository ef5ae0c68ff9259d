"""Send a tool's contract from the process of a plugin to the host, and its functions' results.

The data of a contract is sent once. Its functions stay in the process: the host calls them there
and waits. A call is refused if its rule does not answer in time or the process ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_origin

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

if TYPE_CHECKING:
    from satchel.workers.worker_processes import WorkerHandle

_TYPES = {
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
    """Return a contract's data as JSON. Raises `DefinitionError` for a default that is not JSON."""
    defaults = {item.key: item.default for item in contract.config_params}
    defaults |= {item.key: item.default for item in contract.state_reads if not item.is_required}
    for key, default in defaults.items():
        if not is_exact(default):
            raise DefinitionError(f"JSON cannot represent the default of {key!r}")
    return {
        "name": contract.name,
        "parameters": contract.parameters,
        "description": contract.description,
        "rules": [_encode_rule(item) for item in contract.invariants],
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
                "type_hint": _type_name(item.type_hint),
                "merge": item.merge,
                "preserve_across_turns": item.preserve_across_turns,
                "prompt_template_var": item.prompt_template_var,
            }
            for item in contract.state_effects
        ],
    }


def _encode_rule(rule: ToolInvariant) -> dict[str, Any]:
    corrects = "drop" if rule.correct is DROP_STEP else "no" if rule.correct is None else "ask"
    return {"id": rule.id, "rule": rule.rule, "sees_plan": rule.sees_plan, "corrects": corrects}


def _type_name(hint: Any) -> str:
    """Return the type's name: it decides how values are merged into the state."""
    return getattr(get_origin(hint) or hint, "__name__", "")


def answer_rule(contract: ToolContract, question: Mapping[str, Any]) -> Any:
    """Call a normalizer, check or corrector of a contract. Raises what it raises."""
    if "value" in question:
        param = next(item for item in contract.config_params if item.key == question["key"])
        assert param.normalizer is not None
        return exact(param.normalizer(question["value"]), f"the normalized {param.key!r}")
    rule = next(item for item in contract.invariants if item.id == question["id"])
    plan = Plan(tuple(ToolCall(**call) for call in question["plan"]), question["at"])
    call = ToolCall(**deepcopy(question["call"]))
    state, config = (MappingProxyType(question[key]) for key in ("state", "config"))
    if not question["corrects"]:
        is_kept = rule.is_kept(call, state, config, plan)
        if call.arguments != question["call"]["arguments"]:
            raise TypeError("it changed the arguments of the call")
        return is_kept
    correction = rule.corrected(call, state, config, plan)
    if correction is DROP_STEP:
        return {"is_dropped": True}
    corrected, is_corrected = correction
    if not isinstance(corrected, ToolCall):
        raise TypeError("a corrector must return the call")
    arguments = exact(corrected.arguments, f"the arguments that rule {rule.id!r} returns")
    return {"name": corrected.name, "arguments": arguments, "is_corrected": is_corrected}


# ---- in the process of the host -----------------------------------------------------------


def decode_contract(encoded: Mapping[str, Any], worker: WorkerHandle) -> ToolContract:
    """Return a contract that calls its functions in the process. Raises `DefinitionError`."""
    return ToolContract(
        name=encoded["name"],
        schema=encoded["parameters"],
        description=encoded["description"],
        invariants=[_rule(encoded["name"], item, worker) for item in encoded["rules"]],
        config_params=[
            ToolConfigParam(
                item["key"],
                item["default"],
                _normalizer(encoded["name"], item["key"], worker)
                if item["is_normalized"]
                else None,
            )
            for item in encoded["config"]
        ],
        state_reads=[ToolStateRead(**item) for item in encoded["reads"]],
        state_effects=[
            ToolStateEffect(**{**item, "type_hint": _TYPES.get(item["type_hint"], dict)})
            for item in encoded["effects"]
        ],
    )


def _rule(tool: str, encoded: Mapping[str, Any], worker: WorkerHandle) -> ToolInvariant:
    what = f"the call or state that rule {encoded['id']!r} checks"

    def ask(call: ToolCall, state: Any, config: Any, plan: Plan | None, *, corrects: bool) -> Any:
        return worker.ask(
            RULES,
            tool=tool,
            id=encoded["id"],
            corrects=corrects,
            call=exact(_encode_call(call), what),
            state=exact(dict(state), what),
            config=exact(dict(config), what),
            plan=[exact(_encode_call(item), what) for item in plan or ()],
            at=plan.at if plan else 0,
        )

    def is_kept(call: ToolCall, state: Any, config: Any, plan: Plan | None) -> bool:
        return ask(call, state, config, plan, corrects=False) is True

    def corrected(call: ToolCall, state: Any, config: Any, plan: Plan | None) -> Any:
        correction = ask(call, state, config, plan, corrects=True)
        if correction.get("is_dropped"):
            return DROP_STEP
        changed = call.changed(name=correction["name"], arguments=correction["arguments"])
        return changed, correction["is_corrected"]

    correct: Any = {"no": None, "drop": DROP_STEP, "ask": _with_signature(corrected, encoded)}
    return ToolInvariant(
        id=encoded["id"],
        rule=encoded["rule"],
        check=_with_signature(is_kept, encoded),
        correct=correct[encoded["corrects"]],
    )


def _with_signature(function: Callable[..., Any], encoded: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that takes the plan only if the plugin's function does."""
    if encoded["sees_plan"]:
        return function
    return lambda call, state, config: function(call, state, config, None)


def _encode_call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments, "id": call.id}


def _normalizer(tool: str, key: str, worker: WorkerHandle) -> Any:
    def normalized(value: Any) -> Any:
        return worker.ask(RULES, tool=tool, key=key, value=exact(value, f"the value of {key!r}"))

    return normalized
