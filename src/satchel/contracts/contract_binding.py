"""Fitting a tool to its contract: what the model is shown, and what it is handed beside."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from satchel.contracts.contract_config import resolve_config
from satchel.contracts.contract_errors import ContractError
from satchel.contracts.contract_parts import ToolStateRead
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.tools import FunctionTool, Tool, ToolContext


def bind_contract(tool: Tool, contract: ToolContract) -> FunctionTool:
    """Return a copy of a tool that is described by a contract and handed what that names.

    Raises `DefinitionError` if the two do not fit.
    """
    made = tool if isinstance(tool, FunctionTool) else _of_execute(tool)
    _require_fitting(made, contract)
    taken = {item.name for item in made.open_parameters}
    names = tuple(key for key in contract.supplied if key in taken or made.takes_further)

    def complete(arguments: Mapping[str, Any]) -> dict[str, Any]:
        completed = contract.with_defaults(arguments)
        return {name: value for name, value in completed.items() if name not in made.settled}

    def supply(context: ToolContext) -> dict[str, Any]:
        values = injected_arguments(contract, context)
        return {name: values[name] for name in names}

    return made.supplied(
        names,
        supply,
        description=contract.description,
        parameters=contract.parameters,
        complete=complete,
    )


def _require_fitting(tool: FunctionTool, contract: ToolContract) -> None:
    """Raise `DefinitionError` for what the function does not take, or would miss."""
    place, is_open = f"contract {contract.name!r}", tool.takes_further
    if tool.is_extended:
        raise DefinitionError(
            "its tool is extended by a model, and a contract says all that the tool takes",
            where=place,
            fix="take the model away, and name its fields in the schema",
        )
    taken = {item.name for item in tool.open_parameters}
    unknown = [key for key in contract.supplied if key not in taken and not is_open]
    if unknown and not tool.takes_context:
        raise DefinitionError(
            f"nothing takes {unknown[0]!r}",
            where=place,
            fix=f"add a parameter {unknown[0]!r} to the function, or one of type ToolContext",
        )
    known, properties = tool.settled | taken, contract.parameters.get("properties", {})
    if extra := [name for name in properties if name not in known and not is_open]:
        raise DefinitionError(
            f"its schema has {extra[0]!r}, which the function does not take",
            where=place,
            fix="take it out of the schema, or add the parameter",
        )
    required = contract.parameters.get("required", ())
    given = {*contract.supplied, *contract.with_defaults({}), *required}
    needed = {item.name for item in tool.open_parameters if item.is_required}
    if left := sorted(needed - given):
        raise DefinitionError(
            f"the function needs {left[0]!r}, which its schema lets the model leave out",
            where=place,
            fix="require it in the schema, or give the parameter a default",
        )


def injected_arguments(contract: ToolContract, context: ToolContext) -> dict[str, Any]:
    """Return what a contract's tool is handed in one call. Raises `ContractError`."""
    config = resolve_config(contract, context.config, context.state)
    values = {item.key: config[item.key] for item in contract.config_params}
    return values | {item.key: _read(contract, item, context) for item in contract.state_reads}


def _read(contract: ToolContract, item: ToolStateRead, context: ToolContext) -> Any:
    if item.key in context.state:
        return context.state[item.key]
    if item.is_required:
        told = f"it needs {item.key!r} from the session's state, which is not there yet"
        raise ContractError(contract.name, item.key, told)
    return deepcopy(item.default)


def _of_execute(tool: Tool) -> FunctionTool:
    """Return a tool that calls the `execute` of an object."""
    if type(tool).bind is not Tool.bind or type(tool).check is not Tool.check:
        raise DefinitionError(
            f"tool {tool.name!r} of class {type(tool).__name__} runs itself",
            where=f"contract {tool.name!r}",
            fix="let its class write only execute()",
        )
    made = FunctionTool(
        tool.execute,
        name=tool.name,
        description=tool.description,
        group=tool.group,
        timeout=tool.timeout,
        idempotent=tool.idempotent,
        remember=tool.remember,
        background=tool.background,
        annotations=tool.annotations,
        examples=tool.examples,
        postprocess=tool.postprocess,
    )
    if tool.output is not None:
        made.output = tool.output
    return made
