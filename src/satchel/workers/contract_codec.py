"""Send a tool's contract from the process of a plugin to the host.

Only data crosses. Rules are functions, and a tool is never served without its rules, so a tool
that has some is left out. Normalizers run in the process, when the tool is called.
"""

from collections.abc import Mapping
from typing import Any, get_origin

from satchel.contracts.contract_parts import ToolConfigParam, ToolStateEffect, ToolStateRead
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.workers.codec import is_exact

_TYPES = (list, tuple, set, frozenset, str, bytes, int, float, bool)
"""Types that decide how values are merged into the state."""

_EFFECT_KEYS = ("key", "merge", "preserve_across_turns", "prompt_template_var")


def encode_contract(contract: ToolContract) -> dict[str, Any]:
    """Return a contract's data as JSON. Raises `DefinitionError` if it has more than that."""
    if contract.invariants:
        rule = contract.invariants[0].id
        raise DefinitionError(f"its rule {rule!r} is a function, which the host cannot call")
    config = {item.key: item.default for item in contract.config_params}
    reads = {item.key: item.default for item in contract.state_reads if not item.is_required}
    for key, default in (config | reads).items():
        if not is_exact(default):
            raise DefinitionError(f"JSON cannot represent the default of {key!r}")
    return {
        "name": contract.name,
        "parameters": contract.parameters,
        "description": contract.description,
        "config": config,
        "required": [item.key for item in contract.state_reads if item.is_required],
        "reads": reads,
        "effects": [
            {
                **{key: getattr(item, key) for key in _EFFECT_KEYS},
                "type_hint": getattr(get_origin(hint) or hint, "__name__", ""),
            }
            for item in contract.state_effects
            for hint in [item.type_hint]
        ],
    }


def decode_contract(encoded: Mapping[str, Any]) -> ToolContract:
    """Return a contract from its data. Raises `DefinitionError`."""
    kinds = {kind.__name__: kind for kind in _TYPES}
    return ToolContract(
        name=encoded["name"],
        schema=encoded["parameters"],
        description=encoded["description"],
        config_params=[ToolConfigParam(*item) for item in encoded["config"].items()],
        state_reads=[
            *(ToolStateRead(key) for key in encoded["required"]),
            *(ToolStateRead(key, default) for key, default in encoded["reads"].items()),
        ],
        state_effects=[
            ToolStateEffect(**{**item, "type_hint": kinds.get(item["type_hint"], dict)})
            for item in encoded["effects"]
        ],
    )
