"""The contracts that the code of a plugin brings, each bound to its tool."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from satchel.catalog import PluginContribution, Status, ToolContribution
from satchel.contracts import ToolContract, bind_contract, fingerprint_of
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import ContractReference
from satchel.names import near_misses
from satchel.plugins.plugin_diagnostics import failed_contribution
from satchel.sources import PluginFinding
from satchel.text import visible


def with_contracts(
    supply: PluginContribution,
    found: PluginFinding | None,
    modules: Mapping[str, Any],
    more: Iterable[Any],
) -> PluginContribution:
    """Bind tools to the contracts that a manifest names and to those `more` of the hooks.

    A tool that does not fit its contract is left out. It runs foreign code, so it must be guarded.
    """
    contracts: dict[str, ToolContract] = {}
    tools = {tool.name: tool for tool in supply.tools}
    problems: list[Diagnostic] = []
    is_lost = False
    try:
        named = [item for chosen in _named(found) for item in _chosen(chosen, modules)]
    except DefinitionError as problem:
        told = make_diagnostic("contract-invalid", Where(supply.path), problem.message, problem.fix)
        return failed_contribution(supply, told)
    for item in {id(item): item for item in (*named, *more)}.values():
        if item.name not in tools:
            # A typo must not switch the rules of a tool off: its last good version goes on.
            is_lost = True
            problems.append(contract_without_tool(item.name, tools, supply.path))
        elif contracts.setdefault(item.name, item) is not item:
            problems.append(_second(item, supply.path))
    misfits = []
    for name, contract in contracts.items():
        try:
            tools[name] = contracted(tools[name], contract)
        except DefinitionError as problem:
            misfits.append(contract_mismatch(contract, problem, tools.pop(name).path))
    problems += _unused(modules, tools.keys() - contracts.keys(), supply.path)
    return replace(
        supply,
        tools=tuple(tools.values()),
        state=Status.DEGRADED if is_lost or misfits else supply.state,
        diagnostics=(*supply.diagnostics, *problems, *misfits),
    )


def contracted(tool: ToolContribution, contract: ToolContract) -> ToolContribution:
    """Return a tool that is bound to a contract. Raises `DefinitionError` if they do not fit."""
    return replace(
        tool,
        tool=bind_contract(tool.tool, contract) if tool.tool is not None else None,
        contract=contract,
        description=visible(contract.description),
        version=f"{tool.version}+{fingerprint_of(contract)}",
    )


def contract_mismatch(contract: ToolContract, problem: DefinitionError, path: str) -> Diagnostic:
    """Report a tool that is left out since it does not fit its contract."""
    told = f"tool {contract.name!r} is left out: its contract does not fit; {problem.message}"
    return make_diagnostic(
        "contract-unfit", Where(path), told, problem.fix or "correct one of the two"
    )


def contract_without_tool(name: str, known: Iterable[str], path: str) -> Diagnostic:
    """Report a contract of a tool that there is not."""
    near = near_misses(name, known)
    return make_diagnostic(
        "contract-tool-unknown",
        Where(path),
        f"there is a contract of the tool {name!r}, and no such tool",
        f"did you mean {', '.join(near)}?" if near else "define the tool, or remove the contract",
    )


def _unused(modules: Mapping[str, Any], tools: Collection[str], path: str) -> Iterable[Diagnostic]:
    """Report contracts in modules of a plugin for tools that are held to none."""
    for module, code in modules.items():
        for name, thing in vars(code).items():
            if isinstance(thing, ToolContract) and thing.name in tools:
                yield make_diagnostic(
                    "contract-unused",
                    Where(path),
                    f"{name} in {module} is a contract that nothing names, so it does not hold",
                    f"name it under 'contract:' in toolkit.yaml, as {module}:{name}",
                )


def _second(contract: ToolContract, path: str) -> Diagnostic:
    return make_diagnostic(
        "contract-shadowed",
        Where(path),
        f"there are two contracts of the tool {contract.name!r}; the first counts",
        "remove one of them",
    )


def _named(found: PluginFinding | None) -> Iterable[ContractReference]:
    return found.manifest.contracts if found and found.manifest else ()


def _chosen(chosen: ContractReference, modules: Mapping[str, Any]) -> list[ToolContract]:
    """Return the contracts that a manifest names, one or a list. Raises `DefinitionError`."""
    named = f"'contract' names {chosen.module}:{chosen.name}"
    thing = getattr(modules[chosen.module], chosen.name, None)
    several = [thing] if isinstance(thing, ToolContract) else thing
    if not isinstance(several, list | tuple) or not all(
        isinstance(item, ToolContract) for item in several
    ):
        raise DefinitionError(f"{named}, which is no ToolContract", fix="correct the name")
    if chosen.tool and any(item.name != chosen.tool for item in several):
        raise DefinitionError(
            f"{named} for the tool {chosen.tool!r}, and it is of another tool",
            fix="give the tool and its contract one name",
        )
    return list(several)
