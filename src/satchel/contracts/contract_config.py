"""Resolve a tool's configuration: from the call, then the session's state, then the default."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from satchel.contracts.contract_parts import STATE_CONFIG, ToolConfigParam, require_sync
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError

_CONFIGURABLE = "configurable"
"""The key under which some frameworks keep the configuration of a call."""


class ResolvedConfig(dict[str, Any]):
    """A call's configuration with the resolved values of one contract."""

    __slots__ = ("contract", "unresolved")

    def __init__(
        self, contract: ToolContract, unresolved: Mapping[str, Any], values: Mapping[str, Any]
    ) -> None:
        super().__init__({**unresolved, **values})
        self.contract, self.unresolved = contract, unresolved


def resolve_config(
    contract: ToolContract, config: Mapping[str, Any], state: Mapping[str, Any]
) -> ResolvedConfig:
    """Choose and normalize each value once; a config that is resolved already is returned.

    `None` counts as no value. Raises `ContractError`, which names the tool and the key.
    """
    if isinstance(config, ResolvedConfig):
        if config.contract is contract:
            return config
        config = config.unresolved
    config = _mapping(config)
    sources = (config, _mapping(config.get(_CONFIGURABLE)), _mapping(state.get(STATE_CONFIG)))
    values = {item.key: _value(contract, item, sources) for item in contract.config_params}
    return ResolvedConfig(contract, config, values)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _value(
    contract: ToolContract, param: ToolConfigParam, sources: tuple[Mapping[str, Any], ...]
) -> Any:
    values = (source[param.key] for source in sources if source.get(param.key) is not None)
    value = next(values, None)
    if value is None:
        value = deepcopy(param.default)
    if param.normalizer is None or value is None:
        return value
    try:
        return require_sync(param.normalizer(value))
    except (Exception, SystemExit) as problem:
        raise ContractError(
            contract.name, param.key, f"the configured value of {param.key!r} is invalid"
        ) from problem
