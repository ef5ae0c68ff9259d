"""What `retrieve` takes, the rules its calls keep, and what it reads and writes."""

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


def asked(call: ToolCall) -> dict[str, Any]:
    """Return what a call asks for; what is false or empty is as good as left out."""
    arguments: Any = call.arguments  # a check never sees them as text
    return {name: value for name, value in arguments.items() if value}


def siblings(plan: Plan) -> list[dict[str, Any]]:
    """Return what the calls of this tool ask for that come before the one that is judged."""
    return [asked(call) for call in plan.before if call.name == "retrieve"]


def has_one_way(call: ToolCall, state: State, config: Config) -> bool:
    """Tell whether either words or ids say what to find."""
    return ("query" in asked(call)) != ("ids" in asked(call))


def has_web(call: ToolCall, state: State, config: Config) -> bool:
    """Tell whether a bundle has the web in it."""
    return "bundled" not in asked(call) or "web" in asked(call)


def with_web(call: ToolCall, state: State, config: Config) -> tuple[ToolCall, bool]:
    """Add the web; the call is corrected."""
    return replace(call, arguments={**asked(call), "web": True}), True


def is_only_bundle(call: ToolCall, state: State, config: Config, plan: Plan) -> bool:
    """Tell whether no call before this one makes a bundle, too."""
    return "bundled" not in asked(call) or not any("bundled" in one for one in siblings(plan))


def is_new(call: ToolCall, state: State, config: Config, plan: Plan) -> bool:
    """Tell whether no call before this one asks for the same."""
    return asked(call) not in siblings(plan)


def bounded(limit: Any) -> int:
    """Return a number of documents that a prompt can hold."""
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
