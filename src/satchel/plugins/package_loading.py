"""Turn an installed package into a contribution, importing its code only if needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.importing.code_guard import PluginCodeError, guarded
from satchel.importing.editable_imports import import_from_source
from satchel.importing.importer import import_distribution
from satchel.plugins.code_contribution import (
    tools_of_modules,
    with_code_tools,
    with_hook_answers,
)
from satchel.plugins.contract_attachment import with_contracts
from satchel.plugins.folder_loading import with_code
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.manifest_contribution import is_isolated, not_isolated
from satchel.plugins.plugin_diagnostics import code_problem, failed_contribution, import_failed
from satchel.plugins.plugin_reading import read_package, with_metadata

if TYPE_CHECKING:
    from satchel.importing.importer import ImportedCode
    from satchel.plugins.code_contribution import (
        ToolsFound,
    )
    from satchel.plugins.plugin_reading import Rank
    from satchel.settings import Limits
    from satchel.sources.package_scan import PackageFinding


def load_package(
    finding: PackageFinding,
    rank: Rank,
    limits: Limits,
    *,
    alone: bool = True,
    from_source: bool = False,
) -> PluginContribution:
    """Import what an installed plugin needs, and return its contribution.

    `from_source` means that compiled files of the package are never used.
    """
    contribution = read_package(finding, rank)
    if contribution.state is Status.FAILED:
        return contribution
    if finding.part is not None and is_isolated(finding.part):
        return not_isolated(contribution, finding.part)
    modules, has_entry = finding.modules, finding.may_have_hooks(limits)
    if not (modules or has_entry):
        return contribution
    if from_source and finding.edited is None:
        installed = finding.installed
        import_from_source(installed.distribution, installed.site, installed.files)
    try:
        code = import_distribution(
            finding.installed_with_code,
            limits.plugin_import,
            entry=has_entry,
            modules=dict.fromkeys((*modules.values(), *finding.contract_modules.values())),
            edited=finding.edited,
            alone=alone,
        )
    except PluginCodeError as error:
        return failed_contribution(
            contribution, import_failed(error, contribution.path, contribution.name)
        )
    try:
        contribution, _ = guarded(
            lambda: _with_code_parts(contribution, finding, code, limits, has_entry=has_entry),
            limits.hook,
            "hook",
            alone=alone,
            own_modules=code.modules.keys() | {finding.installed.module},
        )
    except PluginCodeError as error:
        code.undo()
        problem = code_problem("plugin-hook-failed", error, contribution.path)
        return failed_contribution(contribution, problem)
    return with_code(contribution, code)


def _with_code_parts(
    contribution: PluginContribution,
    finding: PackageFinding,
    code: ImportedCode,
    limits: Limits,
    *,
    has_entry: bool,
) -> PluginContribution:
    """Add tools, hook answers and contracts. Runs plugin code: call it inside `guarded`."""
    modules = {name: code.modules[full] for name, full in finding.modules.items()}
    contract_modules = {name: code.modules[full] for name, full in finding.contract_modules.items()}
    all_modules = modules | contract_modules
    tools: ToolsFound = (
        tools_of_modules(finding.part, modules, limits) if finding.part and modules else ([], [])
    )
    hooked = [*([code.thing] if has_entry else ()), *(code.modules[it] for it in finding.hooked())]
    if not hooked:
        return with_contracts(with_code_tools(contribution, tools), finding.part, all_modules, ())
    part = finding.part and with_metadata(finding.part, finding)
    # The entry point may be one of the modules.
    answers = call_hooks(*{id(module): module for module in hooked}.values())
    manifest = part.manifest if part else None
    contribution = with_hook_answers(contribution, manifest, tools, answers, limits)
    return with_contracts(contribution, finding.part, all_modules, answers.contracts)
