"""Compute what a tool writes to the session's state, and what a new turn keeps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_origin

from satchel.contracts.contract_parts import ToolStateEffect
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError
from satchel.names import near_misses
from satchel.tools import ToolResult

_NOT_OBJECTS = (list, tuple, set, frozenset, Sequence, str, bytes, int, float, bool)
"""Types that are not a JSON object."""

EFFECTS = "effects"
"""The key of a result's metadata for state values that the model does not see."""


def effects_of(
    contract: ToolContract, result: ToolResult, state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the new state values after one call; the old ones are not modified.

    A failed or interrupted call writes nothing. Raises `ContractError` with the key if a value
    cannot be merged; then the whole call writes nothing.
    """
    if result.is_error or result.is_interrupted:
        return {}
    values = _written(contract, result)
    effects = [item for item in contract.state_effects if item.key in values]
    return {item.key: _merged(contract, item, values[item.key], state) for item in effects}


def kept_keys(contracts: Iterable[ToolContract]) -> dict[str, bool]:
    """Map each key that a tool writes to whether a new turn keeps it."""
    keys: dict[str, bool] = {}
    for contract in contracts:
        for item in contract.state_effects:
            keys[item.key] = keys.get(item.key, False) or item.preserve_across_turns
    return keys


def _written(contract: ToolContract, result: ToolResult) -> Mapping[str, Any]:
    """Return the values by key: those that the tool names, or else its single result."""
    named = result.metadata.get(EFFECTS)
    if isinstance(named, Mapping):
        _require_known(contract, named)
        return named
    effects, value = contract.state_effects, result.structured
    if isinstance(value, Mapping) and any(item.key in value for item in effects):
        return value
    if value is None:
        value = result.text or None
    if len(effects) == 1 and value is not None and _is_one_value(effects[0], value):
        return {effects[0].key: value}
    return {}


def _is_one_value(effect: ToolStateEffect, value: Any) -> bool:
    """Return whether the whole result is the value, and not an object without the key."""
    hint = get_origin(effect.type_hint) or effect.type_hint
    can_be_object = hint not in _NOT_OBJECTS
    return can_be_object or effect.merge != "replace" or not isinstance(value, Mapping)


def _require_known(contract: ToolContract, values: Mapping[str, Any]) -> None:
    """Raise `ContractError` for a key that is not in the contract."""
    keys = [item.key for item in contract.state_effects]
    for key in values:
        if key not in keys:
            near = near_misses(str(key), keys, most=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ContractError(contract.name, str(key), f"it has no effect {key!r}{hint}")


def _merged(
    contract: ToolContract, effect: ToolStateEffect, value: Any, state: Mapping[str, Any]
) -> Any:
    try:
        before, value = state.get(effect.key), _copied(value)
    except RecursionError:
        raise _merge_error(contract, effect, "the tool returned an endless value") from None
    if effect.merge == "append":
        if before is not None and not isinstance(before, list):
            raise _merge_error(contract, effect, f"the state holds {_kind(before)}, not a list")
        return [*(before or ()), *(value if isinstance(value, list) else [value])]
    if effect.merge == "merge_dict":
        if before is not None and not isinstance(before, dict):
            raise _merge_error(contract, effect, f"the state holds {_kind(before)}, not a dict")
        if not isinstance(value, Mapping):
            raise _merge_error(contract, effect, f"the tool returned {_kind(value)}, not a dict")
        return {**(before or {}), **value}
    return value


def _merge_error(contract: ToolContract, effect: ToolStateEffect, why: str) -> ContractError:
    return ContractError(contract.name, effect.key, f"{effect.key!r} cannot be written: {why}")


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _copied(value: Any) -> Any:
    """Copy nested lists and dicts, so that the state shares none with the result."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):  # A saved state is JSON, which has no tuples.
        return [_copied(item) for item in value]
    return value
