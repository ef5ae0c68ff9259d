"""Bind a tool to its contract: the schema for the model, the configuration, the injected values."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from satchel.contracts.contract_parts import (
    STATE_CONFIG,
    ToolConfigParam,
    ToolStateRead,
    require_sync,
)
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError, DefinitionError
from satchel.tools import FunctionTool, Tool, ToolContext

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


def bind_contract(tool: Tool, contract: ToolContract) -> FunctionTool:
    """Return a copy of a tool with a contract's schema, description and injected values.

    Raises `DefinitionError` if the two do not fit.
    """
    function_tool = tool if isinstance(tool, FunctionTool) else _function_tool(tool)
    _require_fit(function_tool, contract)
    parameters = {item.name for item in function_tool.open_parameters}
    takes_any = function_tool.takes_kwargs
    names = tuple(key for key in contract.injected_names if key in parameters or takes_any)

    def complete(arguments: Mapping[str, Any]) -> dict[str, Any]:
        completed = contract.with_defaults(arguments)
        fixed = function_tool.fixed_parameters
        return {name: value for name, value in completed.items() if name not in fixed}

    def supply(context: ToolContext) -> dict[str, Any]:
        values = injected_arguments(contract, context)
        return {name: values[name] for name in names}

    return function_tool.with_call_values(
        names,
        supply,
        description=contract.description,
        parameters=contract.parameters,
        add_defaults=complete,
    )


def _require_fit(tool: FunctionTool, contract: ToolContract) -> None:
    """Raise `DefinitionError` if the contract has unknown parameters or lacks required ones."""
    location, takes_any = f"contract {contract.name!r}", tool.takes_kwargs
    if tool.is_extended:
        raise DefinitionError(
            "its tool is extended by a model, and a contract already describes all arguments",
            where=location,
            fix="remove the model, and add its fields to the schema",
        )
    parameters = {item.name for item in tool.open_parameters}
    unknown = [key for key in contract.injected_names if key not in parameters and not takes_any]
    if unknown and not tool.takes_context:
        raise DefinitionError(
            f"the function does not take {unknown[0]!r}",
            where=location,
            fix=f"add a parameter {unknown[0]!r} to the function, or one of type ToolContext",
        )
    accepted = tool.fixed_parameters | parameters
    properties = contract.parameters.get("properties", {})
    if extra := [name for name in properties if name not in accepted and not takes_any]:
        raise DefinitionError(
            f"its schema has {extra[0]!r}, which the function does not take",
            where=location,
            fix="remove it from the schema, or add the parameter",
        )
    required = contract.parameters.get("required", ())
    filled = {*contract.injected_names, *contract.with_defaults({}), *required}
    needed = {item.name for item in tool.open_parameters if item.is_required}
    if missing := sorted(needed - filled):
        raise DefinitionError(
            f"the function needs {missing[0]!r}, which its schema does not require",
            where=location,
            fix="require it in the schema, or give the parameter a default",
        )


def injected_arguments(contract: ToolContract, context: ToolContext) -> dict[str, Any]:
    """Return the configuration and state that a tool gets in one call. Raises `ContractError`."""
    config = resolve_config(contract, context.config, context.state)
    values = {item.key: config[item.key] for item in contract.config_params}
    return values | {item.key: _read(contract, item, context) for item in contract.state_reads}


def _read(contract: ToolContract, item: ToolStateRead, context: ToolContext) -> Any:
    if item.key in context.state:
        return context.state[item.key]
    if item.is_required:
        message = f"it needs {item.key!r} from the session's state, which is not set yet"
        raise ContractError(contract.name, item.key, message)
    return deepcopy(item.default)


def _function_tool(tool: Tool) -> FunctionTool:
    """Return a function tool that calls the `execute` of an object."""
    if type(tool).bind is not Tool.bind or type(tool).check is not Tool.check:
        raise DefinitionError(
            f"tool {tool.name!r} of class {type(tool).__name__} overrides bind() or check()",
            where=f"contract {tool.name!r}",
            fix="override only execute() in its class",
        )
    function_tool = FunctionTool(
        tool.execute,
        name=tool.name,
        description=tool.description,
        group=tool.group,
        timeout=tool.timeout,
        idempotent=tool.idempotent,
        remember=tool.remember,
        background=tool.background,
        runner=tool.runner_name,
        annotations=tool.annotations,
        examples=tool.examples,
        postprocess=tool.postprocess,
    )
    if tool.output is not None:
        function_tool.output = tool.output
    return function_tool
