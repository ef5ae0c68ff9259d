"""The contract of `retrieve`: its arguments, its rules, and its state."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from satchel import (
    DROP_STEP,
    Plan,
    ToolCall,
    ToolConfigParam,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)

State = Mapping[str, Any]
Config = Mapping[str, Any]


def given_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call without those that are false or empty."""
    arguments: Any = call.arguments  # in a check they are never JSON text
    return {name: value for name, value in arguments.items() if value}


def siblings(plan: Plan) -> list[dict[str, Any]]:
    """Return the arguments of the earlier calls of this tool in the plan."""
    return [given_arguments(call) for call in plan.before if call.name == "retrieve"]


def has_one_way(call: ToolCall, state: State, config: Config) -> bool:
    """Check that a call has either a query or ids."""
    return ("query" in given_arguments(call)) != ("ids" in given_arguments(call))


def has_web(call: ToolCall, state: State, config: Config) -> bool:
    """Check that a bundled call includes the web."""
    return "bundled" not in given_arguments(call) or "web" in given_arguments(call)


def with_web(call: ToolCall, state: State, config: Config) -> tuple[ToolCall, bool]:
    """Correct a call: include the web."""
    return replace(call, arguments={**given_arguments(call), "web": True}), True


def is_only_bundle(call: ToolCall, state: State, config: Config, plan: Plan) -> bool:
    """Check that no earlier call is bundled, too."""
    return "bundled" not in given_arguments(call) or not any(
        "bundled" in one for one in siblings(plan)
    )


def is_new(call: ToolCall, state: State, config: Config, plan: Plan) -> bool:
    """Check that no earlier call asks for the same."""
    return given_arguments(call) not in siblings(plan)


def bounded(limit: Any) -> int:
    """Limit the number of documents to what fits into a prompt."""
    return max(1, min(int(limit), 20))


RETRIEVE = ToolContract(
    name="retrieve",
    schema={
        "query": "Optional[str] - words to look for",
        "ids": "Optional[list[str]] - ids of documents that are known",
        "bundled": "bool = False - join what is found into one document",
        "web": "bool = False - look on the web as well",
    },
    description="Find documents by words or by their ids.",
    invariants=(
        ToolInvariant(
            id="one-way", rule="Give either query or ids, never both.", check=has_one_way
        ),
        ToolInvariant(
            id="bundle-has-web",
            rule="A bundled call has web: true.",
            check=has_web,
            correct=with_web,
        ),
        ToolInvariant(
            id="one-bundle",
            rule="At most one call of a plan is bundled.",
            check=is_only_bundle,
            correct=DROP_STEP,
        ),
        ToolInvariant(
            id="no-twin",
            rule="No two calls of a plan ask for the same.",
            check=is_new,
            correct=DROP_STEP,
        ),
    ),
    config_params=(ToolConfigParam("limit", default=5, normalizer=bounded),),
    state_reads=(ToolStateRead("library", default="handbook"),),
    state_effects=(
        ToolStateEffect(
            key="documents", type_hint=list, merge="append", prompt_template_var="DOCUMENTS"
        ),
    ),
)
