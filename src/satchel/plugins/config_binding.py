"""Bind configured values, additional arguments and host contracts to the tools of a plugin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import Status
from satchel.configuration.configuration import fingerprint, without_value
from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.plugins.bound_plugin import BoundPlugin, BoundTool, HostContract
from satchel.plugins.contract_attachment import contract_mismatch, contracted
from satchel.plugins.plugin_diagnostics import unusable
from satchel.tools import FunctionTool, MissingStateError, set_extended_model
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import Group, PluginContribution, ToolContribution
    from satchel.configuration.configuration import Configuration
    from satchel.diagnostics import Diagnostic
    from satchel.formats.config_fields import ConfigField

_QUOTED = re.compile(r"'([^']+)'")


def bind_config(
    contribution: PluginContribution,
    configured: Callable[[str, tuple[ConfigField, ...]], Configuration],
    models: Mapping[str, Any],
    before: BoundPlugin | None,
    contracts: Mapping[str, HostContract] = NOTHING,
) -> BoundPlugin:
    """Bind configuration, models and host contracts to copies of a plugin's tools.

    `models` are keyed by `plugin:tool`, `contracts` by tool name. A tool that cannot be bound is
    left out with a diagnostic; the others are served. A tool whose inputs did not change is taken
    from `before`. Missing and invalid values become diagnostics. Disabled plugins produce none.
    """
    if contribution.state is Status.DISABLED:
        return BoundPlugin(contribution=contribution)
    if before is not None and before.contribution is contribution and not (models or contracts):
        return before  # Nothing had to be bound last time, and nothing changed.
    plugin = contribution.name
    models_by_tool = {tool.name: models.get(f"{plugin}:{tool.name}") for tool in contribution.tools}
    has_state = any(_state_fields(tool) for tool in contribution.tools)
    requires = any(group.requires for group in contribution.groups)
    needs_config = has_state or requires or bool(contribution.config or contribution.started_with)
    has_additions = any(
        model is not None or name in contracts for name, model in models_by_tool.items()
    )
    if not (needs_config or has_additions):
        return BoundPlugin(contribution=contribution)
    config = configured(contribution.name, contribution.config) if needs_config else None
    groups = tuple(_with_missing_keys(group, config) for group in contribution.groups)
    previous = before.bound_tools if before else {}
    bound_tools = {
        tool.name: _bind_tool(
            tool,
            models_by_tool[tool.name],
            contracts.get(tool.name),
            config,
            previous.get(tool.name),
        )
        for tool in contribution.tools
    }
    by_tool = _diagnostics_by_tool(bound_tools)
    of_tools = tuple(dict.fromkeys(by_tool.values()))
    diagnostics = (
        *(config.diagnostics if config else ()),
        *of_tools,
        *(_other_missing_values(config, of_tools) if config else ()),
        *(_unavailable(group, config) for group in groups if config and group.missing),
    )
    served = replace(
        contribution,
        groups=groups,
        tools=tuple(item.served for item in bound_tools.values() if item.served),
        unusable=(*contribution.unusable, *_left_out(bound_tools.values(), by_tool)),
        diagnostics=(*contribution.diagnostics, *diagnostics),
    )
    return BoundPlugin(
        contribution=served,
        bound_tools=bound_tools,
        diagnostics=diagnostics,
        config_stamps=config.stamps if config else (),
    )


def bind_state(tool: FunctionTool, values: Mapping[str, Any], fix: str = "") -> FunctionTool:
    """Return a copy of a tool with its state fields bound. Raises `DefinitionError`.

    `fix` is that of the error for a missing value.
    """
    return tool.with_state(_state_values([field.name for field in tool.state], values), fix)


def _diagnostics_by_tool(bound_tools: Mapping[str, BoundTool]) -> dict[str, Diagnostic]:
    """Return the diagnostic of each tool; tools that lack the same value share one."""
    by_tool = {name: item.diagnostic for name, item in bound_tools.items() if item.diagnostic}
    groups: dict[Diagnostic, list[str]] = {}
    for name, item in by_tool.items():
        if item.code == "tool-state-missing":
            rest = item.message.removeprefix(f"tool {name!r} ")
            groups.setdefault(replace(item, message=rest), []).append(name)
    for item, names in groups.items():
        if len(names) > 1:
            rest = item.message.replace("is left", "are left").replace("keeps its", "keep their")
            message = f"tools {', '.join(map(repr, names))} {rest}"
            by_tool |= dict.fromkeys(names, replace(item, message=message))
    return by_tool


def _left_out(
    bound_tools: Iterable[BoundTool], by_tool: Mapping[str, Diagnostic]
) -> Iterable[ToolContribution]:
    """Yield the tools that are not served, with the reason."""
    for item in bound_tools:
        if item.served is None and (diagnostic := by_tool.get(item.tool.name)):
            is_waiting = diagnostic.code == "tool-state-missing"
            state = Status.HELD if is_waiting else Status.FAILED
            yield unusable(item.tool, state, diagnostic)


def _other_missing_values(
    config: Configuration, reported: Iterable[Diagnostic]
) -> Iterable[Diagnostic]:
    """Report required fields without a value that no tool's diagnostic names.

    This happens if the code was not imported, or if the plugin reads the fields itself.
    """
    messages = "".join(item.message for item in reported if item.code == "tool-state-missing")
    named = {name.lower() for name in _QUOTED.findall(messages)}
    return config.without_values([item for item in config.missing if item.key not in named])


def _with_missing_keys(group: Group, config: Configuration | None) -> Group:
    values = config.values if config else {}
    missing = (key for key in group.requires if values.get(key, values.get(key.lower())) is None)
    return replace(group, missing=tuple(missing))


def _unavailable(group: Group, config: Configuration) -> Diagnostic:
    return make_diagnostic(
        "group-unavailable",
        Where(config.path),
        f"group {group.name!r} is unavailable: it requires {', '.join(group.missing)}",
        config.how_to_set(*group.missing),
    )


def _state_fields(tool: ToolContribution) -> tuple[str, ...]:
    if isinstance(tool.tool, FunctionTool):
        return tuple(field.name for field in tool.tool.state)
    return tool.needs


def _state_values(fields: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    # Keys from files and the environment are in lower case. A key that is spelled exactly as the
    # parameter came from the host, and wins.
    return {name: values[key] for name in fields for key in (name.lower(), name) if key in values}


def _bind_tool(
    tool: ToolContribution,
    model: Any,
    contract: HostContract | None,
    config: Configuration | None,
    before: BoundTool | None,
) -> BoundTool:
    fields = _state_fields(tool)
    has_state = bool(fields) and config is not None
    invalid = tuple(name for name in fields if config and name.lower() in config.invalid)
    values = _state_values(fields, config.values) if config else {}
    if (
        before is not None
        and before.tool is tool
        and before.model is model
        and before.contract is contract
        and before.invalid == invalid
        and _is_equal(before.values, values)
        # A tool that still uses older values is bound again each time: the error may be fixed.
        and not (before.diagnostic and before.served)
    ):
        return before
    # As with code, the last good version serves while a later edit is broken.
    is_same = before is not None and before.tool is tool and before.model is model
    last_good = before.served if before and is_same and before.contract is contract else None
    try:
        _require_allowed(invalid, config)
        served = _with_values(tool, values, model, has_state=has_state)
    except MissingStateError as problem:
        # A removed value is a decision of the user, so no last good version is served. But if the
        # file is unreadable, it may still contain the value.
        if config is None or not config.is_unreadable:
            last_good = None
        diagnostic = _missing_value(tool, problem, config, last_good)
    except DefinitionError as problem:
        diagnostic = _invalid_value(tool, problem, config, last_good)
    else:
        return _with_contract(
            BoundTool(tool=tool, values=values, model=model, contract=contract, served=served)
        )
    return BoundTool(
        tool=tool,
        values=values,
        model=model,
        contract=contract,
        served=last_good,
        diagnostic=diagnostic,
        invalid=invalid,
    )


def _with_contract(bound: BoundTool) -> BoundTool:
    """Bind a tool to the host's contract; leave the tool out if they do not match."""
    if bound.contract is None or bound.served is None:
        return bound
    contract, version = bound.contract.contract, bound.contract.version
    try:
        served = contracted(bound.served, contract)
    except DefinitionError as error:
        diagnostic = contract_mismatch(contract, error, bound.served.path)
        return replace(bound, served=None, diagnostic=diagnostic)
    return replace(bound, served=replace(served, version=f"{served.version}+{version}"))


def _require_allowed(invalid: tuple[str, ...], config: Configuration | None) -> None:
    """Raise `DefinitionError` for a field whose value the manifest does not allow."""
    if config and invalid:
        name = invalid[0]
        fault = config.invalid[name.lower()]
        raise DefinitionError(f"the configured value of {name!r} {fault}", fix=config.fix_for(name))


def _is_equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return bool(one == other)
    except Exception:  # Objects of the host may raise in `__eq__`.
        return False


def _with_values(
    tool: ToolContribution, values: Mapping[str, Any], model: Any, *, has_state: bool
) -> ToolContribution:
    bound, version = tool.tool, tool.version
    if bound is None:
        _require_needs(tool, values)
        return tool
    if isinstance(bound, FunctionTool) and has_state:
        version = f"{version}+{fingerprint(values)}"
        bound = bind_state(bound, values)
    if model is not None:
        bound = set_extended_model(bound, model)
        version = f"{version}+{model.__module__}.{model.__qualname__}.{id(model):x}"
    return replace(tool, tool=bound, version=version)


def _require_needs(tool: ToolContribution, values: Mapping[str, Any]) -> None:
    """Raise `MissingStateError` if a tool whose code was not run would lack a value."""
    for name in tool.needs:
        if name not in values:
            raise MissingStateError(name, tool.path, "")


def _missing_value(
    tool: ToolContribution,
    problem: MissingStateError,
    config: Configuration | None,
    last_good: ToolContribution | None,
) -> Diagnostic:
    values = config.values if config else {}
    required: Iterable[str] = tool.needs
    if isinstance(tool.tool, FunctionTool):
        required = (field.name for field in tool.tool.state if field.required)
    missing = [name for name in required if not _state_values([name], values)] or [problem.field]
    return make_diagnostic(
        "tool-state-missing",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} {_consequence(last_good)}: {without_value(missing)}",
        config.how_to_set(*missing) if config else "",
    )


def _invalid_value(
    tool: ToolContribution,
    problem: DefinitionError,
    config: Configuration | None,
    last_good: ToolContribution | None,
) -> Diagnostic:
    return make_diagnostic(
        "tool-unfit",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} {_consequence(last_good)}: {problem.message}",
        problem.fix or "correct the value, or the function",
    )


def _consequence(last_good: ToolContribution | None) -> str:
    return "keeps its last valid configuration" if last_good else "is left out"
