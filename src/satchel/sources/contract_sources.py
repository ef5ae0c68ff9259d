"""The contracts of a plugin's tools, as its manifest and its code declare them; nothing is run."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.contracts import parameters_of
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import (
    ContractReference,
    DeclaredContract,
    DeclaredTool,
    Mentions,
    PluginManifest,
    declared_contracts,
    imported_beside,
    may_hold,
    mentions_in,
)
from satchel.formats.read_result import quoted
from satchel.names import near_misses
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.tools.schema_validator import SchemaValidator

_RECORD = b"ToolContract"
_HOOK = re.compile(rb"\bsatchel_contracts\b")


def contracts_of(
    found: PluginFinding, manifest: PluginManifest, tools: tuple[DeclaredTool, ...]
) -> tuple[tuple[DeclaredContract, ...], tuple[Diagnostic, ...]]:
    """Return the contract of each tool that has one, and what is wrong with the others."""
    part = _Contracts(found, manifest, frozenset(tool.name for tool in tools))
    contracts = part.of_tools((*part.named(), *part.of_hooks()))
    part.report_unused()
    return contracts, tuple(part.problems)


class _Contracts:
    """One look at the contracts of a plugin; it lives as long as the call that made it."""

    def __init__(
        self, found: PluginFinding, manifest: PluginManifest, tools: frozenset[str]
    ) -> None:
        self._found, self._manifest, self._tools = found, manifest, tools
        self.problems: list[Diagnostic] = []
        self._known: dict[str, dict[str, DeclaredContract]] = {}
        # What is wrong with a contract fails the import of its module, whoever names it.
        for module in manifest.contract_modules:
            self._declared(module)
        for module in manifest.modules:
            if _RECORD in found.sources.get(found.file_of(module), b""):
                self._declared(module)
        self._own = tuple(self._known)

    def report_unused(self) -> None:
        """Report the contracts that neither the manifest nor a hook brings: they do not hold."""
        held = [(module, it) for module in self._own for it in self._known[module].values()]
        used = used_names(self._found.sources, self._brought()) if held else set()
        for module, contract in held:
            name = contract.name.partition("[")[0]  # one of a list has the name of the list
            if (self._found.file_of(module), name) not in used:
                self._add(
                    "contract-unused",
                    Where(contract.path, contract.line),
                    f"{contract.name} is a contract that nobody brings, so it does not hold",
                    f"name it under 'contract:' in toolkit.yaml, as {module}:{name}",
                )

    def _brought(self) -> Iterable[tuple[str, str]]:
        """Yield what the manifest names, and all of each file that may have the hook."""
        for wanted in self._manifest.contracts:
            yield self._found.file_of(wanted.module), wanted.name
        hooked = [file for file, source in self._found.sources.items() if _HOOK.search(source)]
        files = map(self._found.file_of, self._manifest.modules) if hooked else ()
        yield from ((file, "*") for file in (*hooked, *filter(None, files)))

    def named(self) -> Iterable[DeclaredContract]:
        """Yield the contracts that the manifest names."""
        for wanted in self._manifest.contracts:
            if not self._found.file_of(wanted.module):
                self._no_module(wanted)
            elif contract := self._one(wanted):
                yield contract

    def of_hooks(self) -> Iterable[DeclaredContract]:
        """Yield the contracts in the modules of tools, if one of these has the hook for them."""
        modules = [module for module in self._manifest.modules if self._found.file_of(module)]
        if any(_HOOK.search(self._source(module)) for module in modules):
            for module in modules:
                yield from (it for it in self._held(module).values() if it.tool)

    def of_tools(self, contracts: Iterable[DeclaredContract]) -> tuple[DeclaredContract, ...]:
        """Return the contracts that count: of two for one tool the first."""
        first: dict[str, DeclaredContract] = {}
        for contract in contracts:
            before = first.setdefault(contract.tool, contract)
            if (before.path, before.name) != (contract.path, contract.name):
                self._add(
                    "contract-shadowed",
                    Where(contract.path, contract.line),
                    f"tool {contract.tool!r} has another contract, {before.name}, which counts",
                    "remove one of the two",
                )
        for contract in first.values():
            if contract.tool not in self._tools and self._are_all_known(contract.tool):
                near = near_misses(contract.tool, self._tools)
                self._add(
                    "contract-tool-unknown",
                    Where(contract.path, contract.line),
                    f"{contract.name} is the contract of {quoted(contract.tool)}, which is no tool "
                    "of the plugin",
                    f"did you mean {', '.join(near)}?" if near else "correct the name",
                )
        return tuple(it for it in first.values() if it.tool in self._tools)

    def _declared(self, module: str) -> Mapping[str, DeclaredContract]:
        """Return the contracts of a module by the names that it gives them."""
        file = self._found.file_of(module)
        if file and module not in self._known:
            path = os.path.join(self._found.code_path, *file.split("/"))
            reading = declared_contracts(self._source(module), path)
            self.problems.extend(reading.diagnostics)
            self._known[module] = {contract.name: contract for contract in reading.value or ()}
            for contract in reading.value or ():
                self._check_schema(contract)
        return self._known.get(module, {})

    def _check_schema(self, contract: DeclaredContract) -> None:
        """Report a schema of which no contract could be made."""
        if contract.schema is None:
            return
        place = f"contract {quoted(contract.tool or contract.name)}"
        try:
            SchemaValidator(parameters_of(contract.schema, place), place)
        except DefinitionError as problem:
            where = Where(contract.path, contract.line)
            told = f"{problem.where}: {problem.message}"
            self._add("contract-invalid", where, told, problem.fix)

    def _held(self, module: str) -> Mapping[str, DeclaredContract]:
        """Return the contracts of a module, with those that it imports from beside it."""
        is_package = self._found.file_of(module).endswith("/__init__.py")
        package = module if is_package else module.rpartition(".")[0]
        held = dict(self._declared(module))
        for own, other, name in imported_beside(self._source(module), package):
            whole = f"{other}.{name}" if other else name
            for there, contract in self._declared(whole).items():
                held[f"{own}.{there}"] = contract
            for there, contract in self._declared(other).items():
                if name == "*":
                    held[there] = contract
                elif there.partition("[")[0] == name:  # one of a list has the name of the list
                    held[own + there.removeprefix(name)] = contract
        return held

    def _one(self, wanted: ContractReference) -> DeclaredContract | None:
        """Return the contract that the manifest means, if its source says it."""
        contract = self._held(wanted.module).get(wanted.name)
        if contract is None:
            if not may_hold(self._source(wanted.module), wanted.name):
                file = self._found.file_of(wanted.module)
                told = f"'contract' names {quoted(wanted.name)}, which {file} does not hold"
                fix = "correct the name, or define it there"
                self._add("contract-invalid", self._where(wanted), told, fix)
            return None
        if wanted.tool and contract.tool not in {"", wanted.tool}:
            told = f"'contract' of {quoted(wanted.tool)} names that of {quoted(contract.tool)}"
            fix = "name the contract of this tool"
            self._add("contract-invalid", self._where(wanted), told, fix)
            return None
        contract = replace(contract, tool=contract.tool or wanted.tool)
        return contract if contract.tool else None

    def _are_all_known(self, tool: str) -> bool:
        """Tell whether no tool of this name can come from what the code does when it runs."""
        if self._found.entry_point or any(
            b"satchel_tools" in source for source in self._found.sources.values()
        ):
            return False
        if self._manifest.chosen:
            return True
        files = filter(None, map(self._found.file_of, self._manifest.modules))
        return not any(may_hold(self._found.sources[file], tool) for file in files)

    def _no_module(self, wanted: ContractReference) -> None:
        file = f"{wanted.module.replace('.', '/')}.py"
        told = f"'contract' names a module, but there is no {file}"
        fix = f"create {file}, or name the module that holds {wanted.name}"
        self._add("plugin-field-type", self._where(wanted), told, fix)

    def _source(self, module: str) -> bytes:
        return self._found.sources[self._found.file_of(module)]

    def _where(self, wanted: ContractReference) -> Where:
        path = os.path.join(self._found.code_path, MANIFEST_FILE)
        return Where(path, self._manifest.line(*wanted.at))

    def _add(self, code: str, where: Where, message: str, fix: str) -> None:
        self.problems.append(make_diagnostic(code, where, message, fix))


def used_names(
    sources: Mapping[str, bytes], brought: Iterable[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return what is brought, and the names that it may be made of, each with its file.

    The name `*` stands for all of a file. Which module an import means is told by its last part
    alone: rather too much is used than too little.
    """
    files: dict[str, list[str]] = {}
    for file in sources:
        files.setdefault(_stem(file), []).append(file)
    read: dict[str, Mentions] = {}
    used: set[tuple[str, str]] = set()
    waiting = list(brought)
    while waiting:
        file, name = waiting.pop()
        if (file, name) in used:
            continue
        used.add((file, name))
        if file not in read:
            found = mentions_in(sources.get(file, b""))
            beside = {own: _beside(items, files) for own, items in found.imports.items()}
            read[file] = replace(found, imports=beside)
        here = read[file]
        if name == "*":
            waiting += [(file, other) for other in (*here.names, *here.imports)]
        waiting += [(file, other) for other in here.names.get(name, ())]
        for origin, there in (*here.imports.get(name, ()), *here.imports.get("*", ())):
            wanted = name if there == "*" else there
            waiting += [(it, wanted) for it in files.get(origin, ())]
            waiting += [(it, "*") for it in files.get(there, ())]
    return used


def _beside(
    imports: Iterable[tuple[str, str]], files: Mapping[str, list[str]]
) -> frozenset[tuple[str, str]]:
    """Return the imports that may be from files of the plugin."""
    return frozenset(it for it in imports if it[0] in files or it[1] in files)


def _stem(file: str) -> str:
    """Return the last part of the name of the module that a file holds."""
    return file.removesuffix(".py").removesuffix("__init__").rstrip("/").rpartition("/")[2]
