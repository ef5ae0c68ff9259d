"""Turn a plugin folder into a contribution, with or without importing its code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.configuration.configuration import without_value
from satchel.diagnostics import Where, make_diagnostic
from satchel.importing.code_guard import PluginCodeError, guarded
from satchel.importing.importer import import_folder
from satchel.plugins.code_contribution import (
    tools_of_modules,
    with_code_tools,
    with_hook_answers,
)
from satchel.plugins.contract_attachment import with_contracts
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.manifest_contribution import (
    code_path,
    is_isolated,
    not_isolated,
)
from satchel.plugins.plugin_diagnostics import (
    code_problem,
    failed_contribution,
    import_failed,
    process_changed,
    reading_failed,
    without_tools,
)
from satchel.plugins.plugin_reading import Rank, read_folder
from satchel.plugins.value_fingerprint import fingerprint

if TYPE_CHECKING:
    from satchel.configuration.configuration import Configuration
    from satchel.diagnostics import Diagnostic
    from satchel.importing.importer import ImportedCode
    from satchel.settings import Limits
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
        if not has_hooks:
            return with_contracts(with_code_tools(contribution, tools), finding, code.modules, ())
        answers = call_hooks(*modules.values())
        hooked = with_hook_answers(contribution, finding.manifest, tools, answers, limits)
        return with_contracts(hooked, finding, code.modules, answers.contracts)

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
