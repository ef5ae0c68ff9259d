"""Fitting tools to the host: their state fields get values, and some get further arguments."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from satchel.catalog import Group, PluginContribution, Status, ToolContribution
from satchel.contracts import ToolContract
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import ConfigField
from satchel.plugins.contract_attachment import contract_mismatch, contracted
from satchel.plugins.lifecycle import fingerprint
from satchel.sources import Configuration, StampedPath
from satchel.tools import FunctionTool, MissingStateError, set_extended_model
from satchel.tools.empty_mapping import NOTHING


@dataclass(frozen=True, slots=True)
class HostContract:
    """A contract that the host registered; two may say the same and check something else."""

    contract: ToolContract
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """One tool as its plugin brings it, what it was fitted with, and what became of it."""

    raw: ToolContribution
    values: Mapping[str, Any] = field(repr=False)
    model: Any
    held_to: HostContract | None
    """What the host holds it to, in place of what its plugin does."""
    served: ToolContribution | None
    problem: Diagnostic | None = None
    invalid: tuple[str, ...] = ()
    """Its state fields whose values the manifest does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPlugin:
    """One plugin's part of the catalog as it is served."""

    supply: PluginContribution
    fittings: Mapping[str, BoundTool] = field(default_factory=dict)
    """The tools that needed something, by name."""
    problems: tuple[Diagnostic, ...] = ()
    """What was wrong with the fitting; the supply has it, too."""
    config_stamps: tuple[StampedPath, ...] = ()
    """The stamps of the configuration file, taken before it was read."""


def bind_config(
    supply: PluginContribution,
    configured: Callable[[str, tuple[ConfigField, ...]], Configuration],
    models: Mapping[str, Any],
    before: BoundPlugin | None,
    contracts: Mapping[str, HostContract] = NOTHING,
) -> BoundPlugin:
    """Bind the state fields of a plugin's tools, each on a copy, and add what the host says.

    `models` are by `plugin:tool`, and `contracts` by the names of tools. A tool that cannot be
    bound is left out, with a diagnostic; the others serve. The same tool with the same values is
    that of `before`. A group whose required keys have no value is told so, and what is wrong with
    a value that the manifest declares. Of a plugin that is switched off nothing is told.
    """
    if supply.state is Status.DISABLED:
        return BoundPlugin(supply=supply)
    if before is not None and before.supply is supply and not (models or contracts):
        return before  # it needed nothing, and still does not
    wanted = {tool.name: models.get(f"{supply.name}:{tool.name}") for tool in supply.tools}
    has_state = any(_fields(tool) for tool in supply.tools)
    requires = any(group.requires for group in supply.groups)
    needs_config = has_state or requires or bool(supply.config or supply.started_with)
    has_wishes = any(model is not None or name in contracts for name, model in wanted.items())
    if not (needs_config or has_wishes):
        return BoundPlugin(supply=supply)
    config = configured(supply.name, supply.config) if needs_config else None
    groups = tuple(_checked(group, config) for group in supply.groups)
    known = before.fittings if before else {}
    fittings = {
        tool.name: _fitting(
            tool, wanted[tool.name], contracts.get(tool.name), config, known.get(tool.name)
        )
        for tool in supply.tools
    }
    found = tuple(item.problem for item in fittings.values() if item.problem)
    problems = (
        *(config.diagnostics if config else ()),
        *found,
        *(_untold(config, found) if config else ()),
        *(_unavailable(group, config) for group in groups if config and group.missing),
    )
    served = replace(
        supply,
        groups=groups,
        tools=tuple(item.served for item in fittings.values() if item.served),
        diagnostics=(*supply.diagnostics, *problems),
    )
    return BoundPlugin(
        supply=served,
        fittings=fittings,
        problems=problems,
        config_stamps=config.stamps if config else (),
    )


def bind_state(tool: FunctionTool, values: Mapping[str, Any], keys: str = "") -> FunctionTool:
    """Return a copy of a tool whose state fields have their values; `keys` says where they go.

    Raises `DefinitionError`.
    """
    return tool.with_state(_own(tool, values), keys)


def _untold(config: Configuration, found: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    """Report the required fields without a value that no tool is refused for.

    Perhaps no code was run, or the plugin reads them itself.
    """
    told = {item.fix.lower() for item in found}
    return (
        config.without_value(item)
        for item in config.missing
        if config.how_to_set(item.name).lower() not in told
    )


def _checked(group: Group, config: Configuration | None) -> Group:
    """Return a group that knows which of the keys that it requires have no value."""
    values = config.values if config else {}
    missing = (key for key in group.requires if values.get(key, values.get(key.lower())) is None)
    return replace(group, missing=tuple(missing))


def _unavailable(group: Group, config: Configuration) -> Diagnostic:
    return make_diagnostic(
        "group-unavailable",
        Where(config.path),
        f"group {group.name!r} is unavailable: it requires {', '.join(group.missing)}",
        "; ".join(config.how_to_set(key) for key in group.missing),
    )


def _fields(tool: ToolContribution) -> tuple[str, ...]:
    """Return the names of the state fields of a tool."""
    made = tool.tool
    return tuple(item.name for item in made.state) if isinstance(made, FunctionTool) else ()


def _own(tool: FunctionTool, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a tool takes."""
    # Keys of files and of the environment are in lower case; parameters need not be. What is
    # spelled as the parameter is came from the host, and wins.
    return {
        item.name: values[key]
        for item in tool.state
        for key in (item.name.lower(), item.name)
        if key in values
    }


def _fitting(
    tool: ToolContribution,
    model: Any,
    contract: HostContract | None,
    config: Configuration | None,
    before: BoundTool | None,
) -> BoundTool:
    made = tool.tool
    has_state = bool(_fields(tool)) and config is not None
    invalid = tuple(n for n in _fields(tool) if config and n.lower() in config.invalid)
    values = _own(made, config.values) if isinstance(made, FunctionTool) and config else {}
    if (
        before is not None
        and before.raw is tool
        and before.model is model
        and before.held_to is contract
        and before.invalid == invalid
        and _same(before.values, values)
        # What goes on with an older value may do so only while the reason for that lasts.
        and not (before.problem and before.served)
    ):
        return before
    # As with code, what worked goes on while a later edit is broken.
    is_same = before is not None and before.raw is tool and before.model is model
    last_good = before.served if before and is_same and before.held_to is contract else None
    try:
        _require_allowed(invalid, config)
        served = _fitted(tool, values, model, has_state=has_state)
    except MissingStateError as problem:
        # Who takes a value away means it; but in a file that cannot be read it may still be.
        if config is None or not config.is_unreadable:
            last_good = None
        told = _missing(tool, problem, config, last_good)
    except DefinitionError as problem:
        told = _unfit(tool, problem, config, last_good)
    else:
        return _held(
            BoundTool(raw=tool, values=values, model=model, held_to=contract, served=served)
        )
    return BoundTool(
        raw=tool,
        values=values,
        model=model,
        held_to=contract,
        served=last_good,
        problem=told,
        invalid=invalid,
    )


def _held(fitting: BoundTool) -> BoundTool:
    """Hold a tool that fits to the host's contract; one that does not fit that is left out."""
    held_to, served = fitting.held_to, fitting.served
    if held_to is None or served is None:
        return fitting
    try:
        held = contracted(served, held_to.contract)
    except DefinitionError as problem:
        told = contract_mismatch(held_to.contract, problem, served.path)
        return replace(fitting, served=None, problem=told)
    return replace(fitting, served=replace(held, version=f"{held.version}+{held_to.version}"))


def _require_allowed(invalid: tuple[str, ...], config: Configuration | None) -> None:
    """Raise `DefinitionError` for a field whose value the manifest does not allow."""
    if config and invalid:
        name = invalid[0]
        fault = config.invalid[name.lower()]
        raise DefinitionError(f"the configured value of {name!r} {fault}", fix=config.mend(name))


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether values are the same; what a host gave may refuse to be compared."""
    try:
        return bool(one == other)
    except Exception:
        return False


def _fitted(
    tool: ToolContribution, values: Mapping[str, Any], model: Any, *, has_state: bool
) -> ToolContribution:
    made, version = tool.tool, tool.version
    if made is None:
        return tool
    if isinstance(made, FunctionTool) and has_state:
        version = f"{version}+{fingerprint(values)}"
        made = bind_state(made, values)
    if model is not None:
        made = set_extended_model(made, model)
        version = f"{version}+{model.__module__}.{model.__qualname__}.{id(model):x}"
    return replace(tool, tool=made, version=version)


def _missing(
    tool: ToolContribution,
    problem: MissingStateError,
    config: Configuration | None,
    last_good: ToolContribution | None,
) -> Diagnostic:
    return make_diagnostic(
        "tool-state-missing",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} {_became(last_good)}: {problem.field!r} has no value",
        config.how_to_set(problem.field) if config else "",
    )


def _unfit(
    tool: ToolContribution,
    problem: DefinitionError,
    config: Configuration | None,
    last_good: ToolContribution | None,
) -> Diagnostic:
    return make_diagnostic(
        "tool-unfit",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} {_became(last_good)}: {problem.message}",
        problem.fix or "correct the value, or the function",
    )


def _became(last_good: ToolContribution | None) -> str:
    return "goes on with what fitted last" if last_good else "is left out"
