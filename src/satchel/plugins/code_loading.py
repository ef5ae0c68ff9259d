"""Import the code of plugin folders and packages, add its parts to a contribution, and start it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
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
        hook_modules = modules.values() if has_hooks else ()
        served, contracts = _add_tools_and_hooks(
            contribution, finding.manifest, tools, hook_modules, limits
        )
        return with_contracts(served, finding, code.modules, contracts)

    return _add_code(
        contribution,
        code,
        collect,
        partial(reading_failed, path=file, has_hooks=has_hooks),
        # Making schemas may take long on a busy machine. A hook may hang.
        of_processor=not has_hooks,
        limit=limits.hook,
        alone=alone,
    )


def _add_code(
    contribution: PluginContribution,
    code: ImportedCode,
    collect: Callable[[], PluginContribution],
    report: Callable[[PluginCodeError], Diagnostic],
    **guards: Any,
) -> PluginContribution:
    """Return what `collect` adds to a contribution, with the imported code; undo it on an error.

    Unknown tools in groups and changes of the process are reported.
    """
    # Lazy, but not in the time of a hook: schemas need it, and it takes long on a busy machine.
    import pydantic  # noqa: F401

    try:
        contribution, changed = guarded(collect, limit_name="hook", **guards)
    except PluginCodeError as error:
        code.undo()
        return failed_contribution(contribution, report(error))
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
    return _add_code(
        contribution,
        code,
        lambda: _collect_package(contribution, finding, code, limits, has_entry=has_entry),
        partial(reading_failed, path=contribution.path, has_hooks=True),
        limit=limits.hook,
        alone=alone,
        own_modules=code.modules.keys() | {finding.installed.module},
    )


def _collect_package(
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
    entry = [code.thing] if has_entry else []
    hook_modules = [*entry, *(code.modules[name] for name in finding.hook_modules())]
    part = finding.part and with_metadata(finding.part, finding)
    contribution, contracts = _add_tools_and_hooks(
        contribution,
        part.manifest if part else None,
        tools,
        # The entry point may be one of the modules.
        {id(module): module for module in hook_modules}.values(),
        limits,
    )
    return with_contracts(contribution, finding.part, all_modules, contracts)


def _add_tools_and_hooks(
    contribution: PluginContribution,
    manifest: PluginManifest | None,
    tools: ToolsFound,
    hook_modules: Collection[Any],
    limits: Limits,
) -> tuple[PluginContribution, Iterable[Any]]:
    """Return the contribution with tools and hook answers, and the contracts of the hooks."""
    if not hook_modules:
        return with_code_tools(contribution, tools), ()
    answers = call_hooks(*hook_modules)
    served = with_hook_answers(contribution, manifest, tools, answers, limits)
    return served, answers.contracts
