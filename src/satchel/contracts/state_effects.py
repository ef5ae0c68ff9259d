"""What a tool writes back into the session's state, and what a new turn clears of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_origin

from satchel.contracts.contract_errors import ContractError
from satchel.contracts.contract_parts import ToolStateEffect
from satchel.contracts.tool_contract import ToolContract
from satchel.names import near_misses
from satchel.tools import ToolResult

_NO_OBJECTS = (list, tuple, set, frozenset, Sequence, str, bytes, int, float, bool)
"""Kinds of values that JSON has no object for."""

EFFECTS = "effects"
"""The key of a result's metadata under which a tool may write more than the model is told."""


def effects_of(
    contract: ToolContract, result: ToolResult, state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the new values of the state after one call; the old ones are not touched.

    A call that failed, or was interrupted, writes nothing. Raises `ContractError`, naming the
    key, for a value that cannot be merged: then nothing is written of the whole call.
    """
    if result.is_error or result.is_interrupted:
        return {}
    written = _written(contract, result)
    effects = [item for item in contract.state_effects if item.key in written]
    return {item.key: _merged(contract, item, written[item.key], state) for item in effects}


def kept_keys(contracts: Iterable[ToolContract]) -> dict[str, bool]:
    """Return each key that some tool writes, with whether a new turn keeps it."""
    keys: dict[str, bool] = {}
    for contract in contracts:
        for item in contract.state_effects:
            keys[item.key] = keys.get(item.key, False) or item.preserve_across_turns
    return keys


def _written(contract: ToolContract, result: ToolResult) -> Mapping[str, Any]:
    """Return the values by key: those the tool names, or else its one value."""
    apart = result.metadata.get(EFFECTS)
    if isinstance(apart, Mapping):
        _require_known(contract, apart)
        return apart
    effects, value = contract.state_effects, result.structured
    if isinstance(value, Mapping) and any(item.key in value for item in effects):
        return value
    if value is None:
        value = result.text or None
    if len(effects) == 1 and value is not None and _is_one_value(effects[0], value):
        return {effects[0].key: value}
    return {}


def _is_one_value(effect: ToolStateEffect, value: Any) -> bool:
    """Tell whether a tool's whole answer is the value: an object may be one that lacks the key."""
    hint = get_origin(effect.type_hint) or effect.type_hint
    can_be_an_object = hint not in _NO_OBJECTS
    return can_be_an_object or effect.merge != "replace" or not isinstance(value, Mapping)


def _require_known(contract: ToolContract, apart: Mapping[str, Any]) -> None:
    """Raise `ContractError` for a key that a tool names and its contract does not."""
    keys = [item.key for item in contract.state_effects]
    for key in apart:
        if key not in keys:
            near = near_misses(str(key), keys, most=1)
            meant = f"; did it mean {near[0]!r}?" if near else ""
            raise ContractError(contract.name, str(key), f"it has no effect {key!r}{meant}")


def _merged(
    contract: ToolContract, effect: ToolStateEffect, value: Any, state: Mapping[str, Any]
) -> Any:
    try:
        before, value = state.get(effect.key), _copied(value)
    except RecursionError:
        raise _misfit(contract, effect, "the tool gave a value without end") from None
    if effect.merge == "append":
        if before is not None and not isinstance(before, list):
            raise _misfit(contract, effect, f"the state holds {_kind(before)}, not a list")
        return [*(before or ()), *(value if isinstance(value, list) else [value])]
    if effect.merge == "merge_dict":
        if before is not None and not isinstance(before, dict):
            raise _misfit(contract, effect, f"the state holds {_kind(before)}, not a dict")
        if not isinstance(value, Mapping):
            raise _misfit(contract, effect, f"the tool gave {_kind(value)}, not a dict")
        return {**(before or {}), **value}
    return value


def _misfit(contract: ToolContract, effect: ToolStateEffect, why: str) -> ContractError:
    return ContractError(contract.name, effect.key, f"{effect.key!r} cannot be written: {why}")


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _copied(value: Any) -> Any:
    """Return a value that shares no list and no dict with the result that it came in."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):  # as JSON has it, which a state is saved as
        return [_copied(item) for item in value]
    return value
