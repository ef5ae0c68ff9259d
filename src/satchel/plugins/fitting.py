"""Fitting tools to the host: their state fields get values, and some get further arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from satchel.catalog import Supply, ToolSupply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import DefinitionError
from satchel.sources import Configuration
from satchel.tools import FunctionTool, MissingStateError, set_extended_model


@dataclass(frozen=True, slots=True)
class Fitted:
    """One plugin's part of the catalog as it is served, and what it was fitted with."""

    supply: Supply
    raw: tuple[ToolSupply, ...] = field(repr=False)
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    models: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config_path: str = ""


def fit(
    supply: Supply,
    configured: Callable[[str], Configuration],
    models: Mapping[str, Any],
    before: Fitted | None,
) -> Fitted:
    """Bind the state fields of a plugin's tools, each on a copy, and add the host's models.

    A tool that cannot be bound is left out, with a diagnostic; the others serve. The same
    tools with the same values are those of `before`.
    """
    wanted = {name: model for name, model in models.items() if name in _names(supply)}
    if not any(_has_state(tool) for tool in supply.tools):
        if not wanted:
            return Fitted(supply, supply.tools)
        config = None
    else:
        config = configured(supply.name)
    values = _relevant(supply, config.values) if config else {}
    if (
        before is not None
        and before.raw is supply.tools
        and before.models == wanted
        and _same(before.values, values)
    ):
        served = replace(supply, tools=before.supply.tools, diagnostics=before.supply.diagnostics)
        return replace(before, supply=served)
    tools: list[ToolSupply] = []
    problems: list[Diagnostic] = list(config.diagnostics) if config else []
    for tool in supply.tools:
        try:
            tools.append(_fitted(tool, values, wanted.get(tool.name)))
        except MissingStateError as problem:
            problems.append(_missing(tool, problem, config))
        except DefinitionError as problem:
            problems.append(_unfit(tool, problem, config))
    served = replace(supply, tools=tuple(tools), diagnostics=(*supply.diagnostics, *problems))
    return Fitted(served, supply.tools, values, wanted, config.path if config else "")


def _names(supply: Supply) -> set[str]:
    return {tool.name for tool in supply.tools}


def _has_state(tool: ToolSupply) -> bool:
    return isinstance(tool.tool, FunctionTool) and bool(tool.tool.state)


def _relevant(supply: Supply, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that some tool takes."""
    wanted = {
        state.name
        for tool in supply.tools
        if isinstance(tool.tool, FunctionTool)
        for state in tool.tool.state
    }
    # Keys of files and of the environment are in lower case; parameters need not be.
    return {
        name: values[key]
        for name in sorted(wanted)
        for key in (name, name.lower())
        if key in values
    }


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether values are the same; what a host gave may refuse to be compared."""
    try:
        return bool(one == other)
    except Exception:
        return False


def _fitted(tool: ToolSupply, values: Mapping[str, Any], model: Any) -> ToolSupply:
    made = tool.tool
    if made is None:
        return tool
    # Differs when the values do. Salted by Python for each process, so it gives no secret away.
    version = tool.version
    if isinstance(made, FunctionTool) and made.state:
        version = f"{version}+{hash(repr(sorted(values.items(), key=repr))):x}"
        made = made.with_state(values)
    if model is not None:
        made = set_extended_model(made, model)
        version = f"{version}+{model.__module__}.{model.__qualname__}.{id(model):x}"
    return replace(tool, tool=made, version=version)


def _missing(
    tool: ToolSupply, problem: MissingStateError, config: Configuration | None
) -> Diagnostic:
    return report(
        "tool-state-missing",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} is left out: {problem.field!r} has no value",
        config.how_to_set(problem.field) if config else "",
    )


def _unfit(tool: ToolSupply, problem: DefinitionError, config: Configuration | None) -> Diagnostic:
    return report(
        "tool-unfit",
        Where(config.path if config else tool.path),
        f"tool {tool.name!r} is left out: {problem.message}",
        problem.fix or "correct the value, or the function",
    )
