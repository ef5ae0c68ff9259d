"""Import the code of plugin folders and packages, add its parts to a contribution, and start it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.configuration.configuration import fingerprint, without_value
from satchel.diagnostics import Where, make_diagnostic
from satchel.importing.code_guard import PluginCodeError, guarded
from satchel.importing.editable_imports import import_from_source
from satchel.importing.importer import import_distribution, import_folder
from satchel.plugins.code_contribution import (
    tools_of_modules,
    with_code_tools,
    with_hook_answers,
)
from satchel.plugins.contract_attachment import with_contracts
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.plugin_diagnostics import (
    code_problem,
    failed_contribution,
    import_failed,
    process_changed,
    reading_failed,
    without_tools,
)
from satchel.plugins.plugin_reading import (
    code_path,
    is_isolated,
    not_isolated,
    read_folder,
    read_package,
    with_metadata,
)

if TYPE_CHECKING:
    from satchel.configuration.configuration import Configuration
    from satchel.diagnostics import Diagnostic
    from satchel.formats.toolkit_manifest import PluginManifest
    from satchel.importing.importer import ImportedCode
    from satchel.plugins.code_contribution import ToolsFound
    from satchel.plugins.plugin_reading import Rank
    from satchel.settings import Limits
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding

_HOOK_MARKS = (b"hookimpl", b"def satchel_")


def load_folder(
    finding: PluginFinding, rank: Rank, limits: Limits, *, alone: bool = True
) -> PluginContribution:
    """Import a plugin folder's code and return its contribution; errors become diagnostics."""
    contribution = read_folder(finding, rank)
    file = code_path(finding)
    if contribution.state is not Status.OK or not file:
        return contribution
    if is_isolated(finding):
        return not_isolated(contribution, finding)
    try:
        first, *others = finding.modules
        other_modules = (*others, *finding.contract_modules)
        code = import_folder(
            finding.code_path,
            finding.sources,
            first,
            limits.plugin_import,
            extra=other_modules,
            alone=alone,
        )
    except PluginCodeError as error:
        return failed_contribution(contribution, import_failed(error, file, contribution.name))
    # Searching the text is cheap, and most folders have no hooks.
    has_hooks = any(mark in text for text in finding.sources.values() for mark in _HOOK_MARKS)

    # Tools and hooks of modules that are imported only for their contracts are ignored.
    modules = {name: code.modules[name] for name in finding.modules}

    def collect() -> PluginContribution:
        tools = tools_of_modules(finding, modules, limits)
        hooked = modules.values() if has_hooks else ()
        served, contracts = _with_parts(contribution, finding.manifest, tools, hooked, limits)
        return with_contracts(served, finding, code.modules, contracts)

    try:
        # Making schemas imports pydantic, which takes long on a busy machine. A hook may hang.
        served, changed = guarded(
            collect, limits.hook, "hook", alone=alone, of_processor=not has_hooks
        )
    except PluginCodeError as error:
        code.undo()
        problem = reading_failed(error, file, has_hooks=has_hooks)
        return failed_contribution(contribution, problem)
    return with_code(served, code, changed)


def with_code(
    contribution: PluginContribution, code: ImportedCode, changed: tuple[str, ...] = ()
) -> PluginContribution:
    """Attach the imported code, and report unknown tools in groups and changes of the process.

    `changed` names what the hooks changed in the process; the import's changes are in `code`.
    """
    diagnostics = list(
        process_changed(contribution, dict.fromkeys((*code.process_changes, *changed)))
    )
    names = {tool.name for tool in contribution.tools}
    for group in contribution.groups:
        diagnostics += [
            make_diagnostic(
                "plugin-group-unknown",
                Where(contribution.path),
                f"group {group.name!r} lists the tool {name!r}, which the plugin does not have",
                "correct the name, or define the tool",
            )
            for name in group.tools
            if name not in names
        ]
    return replace(contribution, code=code, diagnostics=(*contribution.diagnostics, *diagnostics))


def started(
    contribution: PluginContribution, config: Configuration, *, alone: bool = True
) -> PluginContribution:
    """Run the startup of a new version; a version whose startup fails is not served.

    If a configuration value is missing or invalid, the startup does not run. The version is served
    without its tools. If the value is invalid, the last good version is served instead, if any.
    """
    lifecycle = contribution.lifecycle
    if lifecycle is None or contribution.state is Status.FAILED:
        return contribution
    contribution = replace(
        contribution, started_with=fingerprint(config.values) if lifecycle.has_startup else ""
    )
    if lifecycle.has_startup and (problem := _config_fault(config)):
        contribution.code.undo()  # An older version that keeps serving has its own modules.
        state = Status.HELD if config.missing else Status.DEGRADED
        return replace(
            without_tools(contribution, Status.HELD if config.missing else Status.FAILED, problem),
            middleware=(),
            commands=(),
            lifecycle=None,
            code=None,
            state=state,
            diagnostics=(*contribution.diagnostics, problem),
        )
    contribution.code.own()
    try:
        changed = lifecycle.begin(config.values, alone=alone)
    except PluginCodeError as error:
        contribution.code.undo()
        problem = code_problem("plugin-startup-failed", error, contribution.path, config.values)
        return failed_contribution(contribution, problem)
    contribution.code.add_finalizer(lifecycle.end)
    return replace(
        contribution,
        diagnostics=(*contribution.diagnostics, *process_changed(contribution, changed)),
    )


def _config_fault(config: Configuration) -> Diagnostic | None:
    """Report the values that the startup needs and that are missing, or the first invalid one."""
    if config.missing:
        names = [item.name for item in config.missing]
        fault, fix = without_value(names), config.how_to_set(*names)
    elif config.invalid:
        name, reason = next(iter(config.invalid.items()))
        fault, fix = f"{name!r} {reason}", config.fix_for(name)
    else:
        return None
    message = f"this version is not started and has no tools: {fault}"
    return make_diagnostic("plugin-startup-failed", Where(config.path), message, fix)


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
    part = finding.part and with_metadata(finding.part, finding)
    contribution, contracts = _with_parts(
        contribution,
        part.manifest if part else None,
        tools,
        # The entry point may be one of the modules.
        {id(module): module for module in hooked}.values(),
        limits,
    )
    return with_contracts(contribution, finding.part, all_modules, contracts)


def _with_parts(
    contribution: PluginContribution,
    manifest: PluginManifest | None,
    tools: ToolsFound,
    hooked: Collection[Any],
    limits: Limits,
) -> tuple[PluginContribution, Iterable[Any]]:
    """Add tools, and the answers of the modules with hooks; return also their contracts."""
    if not hooked:
        return with_code_tools(contribution, tools), ()
    answers = call_hooks(*hooked)
    served = with_hook_answers(contribution, manifest, tools, answers, limits)
    return served, answers.contracts
