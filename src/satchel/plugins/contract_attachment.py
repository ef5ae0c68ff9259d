"""Bind the contracts of a plugin's code to its tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import Status
from satchel.contracts.contract_binding import bind_contract
from satchel.contracts.contract_description import fingerprint_of
from satchel.contracts.tool_contract import ToolContract
from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.names import near_misses
from satchel.plugins.plugin_diagnostics import failed_contribution, unusable
from satchel.text import visible

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution
    from satchel.diagnostics import Diagnostic
    from satchel.formats.code_references import ContractReference
    from satchel.sources.plugin_findings import PluginFinding


def with_contracts(
    contribution: PluginContribution,
    finding: PluginFinding | None,
    modules: Mapping[str, Any],
    hook_contracts: Iterable[Any],
) -> PluginContribution:
    """Bind tools to the contracts of the manifest and of the hooks.

    A tool that does not fit its contract is left out. Runs plugin code: call it inside `guarded`.
    """
    contracts: dict[str, ToolContract] = {}
    tools = {tool.name: tool for tool in contribution.tools}
    diagnostics: list[Diagnostic] = []
    has_unknown_tool = False
    try:
        named = [item for ref in _references(finding) for item in _referenced(ref, modules)]
    except DefinitionError as error:
        where = Where(contribution.path)
        invalid = make_diagnostic("contract-invalid", where, error.message, error.fix)
        return failed_contribution(contribution, invalid)
    for item in {id(item): item for item in (*named, *hook_contracts)}.values():
        if item.name not in tools:
            # A typo must not disable the rules of a tool: the last good version keeps serving.
            has_unknown_tool = True
            diagnostics.append(contract_without_tool(item.name, tools, contribution.path))
        elif contracts.setdefault(item.name, item) is not item:
            diagnostics.append(_duplicate(item, contribution.path))
    misfits, left_out = [], []
    for name, contract in contracts.items():
        try:
            tools[name] = contracted(tools[name], contract)
        except DefinitionError as error:
            tool = tools.pop(name)
            misfits.append(contract_mismatch(contract, error, tool.path))
            left_out.append(unusable(tool, Status.FAILED, misfits[-1]))
    diagnostics += _unused(modules, tools.keys() - contracts.keys(), contribution.path)
    return replace(
        contribution,
        tools=tuple(tools.values()),
        unusable=(*contribution.unusable, *left_out),
        state=Status.DEGRADED if has_unknown_tool or misfits else contribution.state,
        diagnostics=(*contribution.diagnostics, *diagnostics, *misfits),
    )


def contracted(tool: ToolContribution, contract: ToolContract) -> ToolContribution:
    """Return a tool bound to a contract. Raises `DefinitionError` if they do not fit."""
    return replace(
        tool,
        tool=bind_contract(tool.tool, contract) if tool.tool is not None else None,
        contract=contract,
        description=visible(contract.description),
        version=f"{tool.version}+{fingerprint_of(contract)}",
    )


def contract_mismatch(contract: ToolContract, problem: DefinitionError, path: str) -> Diagnostic:
    """Report a tool that is left out because it does not fit its contract."""
    message = f"tool {contract.name!r} is left out: its contract does not fit; {problem.message}"
    fix = problem.fix or "correct the tool or the contract"
    return make_diagnostic("contract-unfit", Where(path), message, fix)


def contract_without_tool(name: str, tool_names: Iterable[str], path: str) -> Diagnostic:
    """Report a contract whose tool does not exist."""
    near = near_misses(name, tool_names)
    return make_diagnostic(
        "contract-tool-unknown",
        Where(path),
        f"there is a contract for the tool {name!r}, and no such tool",
        f"did you mean {', '.join(near)}?" if near else "define the tool, or remove the contract",
    )


def _unused(modules: Mapping[str, Any], tools: Collection[str], path: str) -> Iterable[Diagnostic]:
    """Report unused contracts in the modules, if their tools have no contract."""
    for module, code in modules.items():
        for name, value in vars(code).items():
            if isinstance(value, ToolContract) and value.name in tools:
                yield make_diagnostic(
                    "contract-unused",
                    Where(path),
                    f"{name} in {module} is a contract that nothing names, so it has no effect",
                    f"name it under 'contract:' in toolkit.yaml, as {module}:{name}",
                )


def _duplicate(contract: ToolContract, path: str) -> Diagnostic:
    return make_diagnostic(
        "contract-shadowed",
        Where(path),
        f"there are two contracts for the tool {contract.name!r}; the first one counts",
        "remove one of them",
    )


def _references(finding: PluginFinding | None) -> Iterable[ContractReference]:
    return finding.manifest.contracts if finding and finding.manifest else ()


def _referenced(reference: ContractReference, modules: Mapping[str, Any]) -> list[ToolContract]:
    """Return the contract, or list of contracts, that a manifest names.

    Raises `DefinitionError`.
    """
    named = f"'contract' names {reference.module}:{reference.name}"
    value = getattr(modules[reference.module], reference.name, None)
    contracts = [value] if isinstance(value, ToolContract) else value
    if not isinstance(contracts, list | tuple) or not all(
        isinstance(item, ToolContract) for item in contracts
    ):
        raise DefinitionError(f"{named}, which is not a ToolContract", fix="correct the name")
    if reference.tool and any(item.name != reference.tool for item in contracts):
        raise DefinitionError(
            f"{named} for the tool {reference.tool!r}, but it is for another tool",
            fix="give the tool and its contract the same name",
        )
    return list(contracts)
