"""From an installed package to its part of the catalog: its manifest first, its code if needed."""

from dataclasses import replace

from satchel.catalog import PluginContribution, Status
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import plugin_name_fault
from satchel.plugins.code_contribution import (
    Offer,
    contributed_by_modules,
    with_answers,
    with_offered,
)
from satchel.plugins.contract_attachment import with_contracts
from satchel.plugins.folder_loading import Rank, with_code
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.manifest_contribution import is_isolated, not_isolated, with_manifest
from satchel.plugins.plugin_diagnostics import code_problem, failed_contribution, import_failed
from satchel.settings import Limits
from satchel.sources import (
    ImportedCode,
    PackageFinding,
    PluginCodeError,
    PluginFinding,
    Precedence,
    guarded,
    import_distribution,
)


def read_package(found: PackageFinding, rank: Rank) -> PluginContribution:
    """Tell what is known of an installed plugin without importing it."""
    installed = found.installed
    supply = PluginContribution(
        name=installed.name,
        source=installed.distribution,
        scope=Precedence.PLUGIN,
        path=installed.path,
        unit=f"{installed.distribution}:{installed.name}",
        rank=rank,
        digest=found.digest,
        version=installed.version,
        description=installed.summary,
    )
    if found.part is not None:
        supply = with_manifest(supply, _completed(found.part, found))
    supply = replace(supply, skills=found.skills)
    if found.code is not None:
        told = tuple(dict.fromkeys((*supply.diagnostics, *found.code.diagnostics)))
        supply = replace(supply, diagnostics=told)
    if fault := plugin_name_fault(installed.name):
        problem = make_diagnostic(
            "plugin-name-shape",
            Where(installed.path),
            f"the entry point's name {installed.name!r} {fault}",
            "rename the entry point",
        )
        return failed_contribution(supply, problem)
    return supply


def load_package(
    found: PackageFinding, rank: Rank, limits: Limits, *, alone: bool = True
) -> PluginContribution:
    """Import what an installed plugin needs, and tell what it brings."""
    supply = read_package(found, rank)
    if supply.state is Status.FAILED:
        return supply
    if found.part is not None and is_isolated(found.part):
        return not_isolated(supply, found.part, "this is another's")
    modules, has_entry = found.modules, found.may_have_hooks(limits)
    if not (modules or has_entry):
        return supply
    try:
        code = import_distribution(
            found.installed_with_code,
            limits.plugin_import,
            entry=has_entry,
            modules=dict.fromkeys((*modules.values(), *found.contract_modules.values())),
            edited=found.edited,
            alone=alone,
        )
    except PluginCodeError as problem:
        return failed_contribution(supply, import_failed(problem, supply.path))
    try:
        answered, _ = guarded(
            lambda: _answered(supply, found, code, limits, has_entry=has_entry),
            limits.hook,
            "hook",
            alone=alone,
        )
    except PluginCodeError as problem:
        code.undo()
        return failed_contribution(supply, code_problem("plugin-hook-failed", problem, supply.path))
    return with_code(answered, code)


def _completed(part: PluginFinding, found: PackageFinding) -> PluginFinding:
    """Return a manifest that says what the metadata says, where it is silent itself."""
    manifest, installed = part.manifest, found.installed
    if manifest is None:
        return part
    version = manifest.version or installed.version
    description = manifest.description or installed.summary
    return replace(part, manifest=replace(manifest, version=version, description=description))


def _answered(
    supply: PluginContribution,
    found: PackageFinding,
    code: ImportedCode,
    limits: Limits,
    *,
    has_entry: bool,
) -> PluginContribution:
    """Add what the code brings; it runs foreign code, so it must be guarded."""
    modules = {name: code.modules[full] for name, full in found.modules.items()}
    holders = {name: code.modules[full] for name, full in found.contract_modules.items()}
    offer: Offer = (
        contributed_by_modules(found.part, modules) if found.part and modules else ([], [])
    )
    hooked = [*([code.thing] if has_entry else ()), *(code.modules[it] for it in found.hooked())]
    if not hooked:
        return with_contracts(with_offered(supply, offer), found.part, modules | holders, ())
    part = found.part and _completed(found.part, found)
    # The entry point may be one of the modules.
    answers = call_hooks(*{id(module): module for module in hooked}.values())
    answered = with_answers(supply, part.manifest if part else None, offer, answers, limits)
    return with_contracts(answered, found.part, modules | holders, answers.contracts)
