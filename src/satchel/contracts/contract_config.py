"""The one cascade of a tool's configuration: the call, the session's state, the default."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from satchel.contracts.contract_errors import ContractError
from satchel.contracts.contract_parts import STATE_CONFIG, ToolConfigParam, require_sync
from satchel.contracts.tool_contract import ToolContract

_CONFIGURABLE = "configurable"
"""The key under which some frameworks keep what can be configured for a call."""


class ResolvedConfig(dict[str, Any]):
    """The configuration of a call in which the values of one contract are settled."""

    __slots__ = ("contract", "given")

    def __init__(
        self, contract: ToolContract, given: Mapping[str, Any], values: Mapping[str, Any]
    ) -> None:
        super().__init__({**given, **values})
        self.contract, self.given = contract, given


def resolve_config(
    contract: ToolContract, config: Mapping[str, Any], state: Mapping[str, Any]
) -> ResolvedConfig:
    """Choose and normalise each value, once: what is settled already stays as it is.

    A value of `None` counts as none. Raises `ContractError`, which names the tool and the key.
    """
    if isinstance(config, ResolvedConfig):
        if config.contract is contract:
            return config
        config = config.given
    config = _mapping(config)
    ways = (config, _mapping(config.get(_CONFIGURABLE)), _mapping(state.get(STATE_CONFIG)))
    values = {item.key: _value(contract, item, ways) for item in contract.config_params}
    return ResolvedConfig(contract, config, values)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _value(
    contract: ToolContract, param: ToolConfigParam, ways: tuple[Mapping[str, Any], ...]
) -> Any:
    said = (way[param.key] for way in ways if way.get(param.key) is not None)
    value = next(said, None)
    if value is None:
        value = deepcopy(param.default)
    if param.normalizer is None or value is None:
        return value
    try:
        return require_sync(param.normalizer(value))
    except (Exception, SystemExit) as problem:
        raise ContractError(
            contract.name, param.key, f"the host's value for {param.key!r} is refused"
        ) from problem
