"""From a plugin folder to its part of the catalog: reading it, or importing it as well."""

from dataclasses import replace
from typing import Any

from satchel.catalog import PluginContribution, Status
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.plugins.code_contribution import contributed_by_modules, with_answers, with_offered
from satchel.plugins.contract_attachment import with_contracts
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.lifecycle import fingerprint
from satchel.plugins.manifest_contribution import (
    code_path,
    is_isolated,
    not_isolated,
    with_manifest,
)
from satchel.plugins.plugin_diagnostics import (
    code_problem,
    failed_contribution,
    import_failed,
    process_changed,
)
from satchel.settings import Limits
from satchel.sources import (
    Configuration,
    ImportedCode,
    PluginCodeError,
    PluginFinding,
    guarded,
    import_folder,
)

Rank = tuple[Any, ...]


_HOOKS = (b"hookimpl", b"def satchel_")


def read_folder(found: PluginFinding, rank: Rank) -> PluginContribution:
    """Tell what a plugin folder brings without running its code."""
    manifest = found.manifest
    supply = PluginContribution(
        name=manifest.name if manifest else found.folder_name,
        source=found.place.source,
        scope=found.place.scope,
        path=found.path,
        unit=found.path,
        rank=rank,
        digest=found.digest,
        policy=found.policy,
    )
    return with_manifest(supply, found)


def load_folder(
    found: PluginFinding, rank: Rank, limits: Limits, *, alone: bool = True
) -> PluginContribution:
    """Import a plugin folder's code and tell what it brings; whatever it does is a diagnostic."""
    supply = read_folder(found, rank)
    file = code_path(found)
    if supply.state is not Status.OK or not file:
        return supply
    if is_isolated(found):
        return not_isolated(supply, found, "this is another's")
    try:
        first, *others = found.modules
        more = (*others, *found.contract_modules)
        code = import_folder(
            found.code_path, found.sources, first, limits.plugin_import, more=more, alone=alone
        )
    except PluginCodeError as problem:
        return failed_contribution(supply, import_failed(problem, file))
    # Reading costs nothing, and most folders have no hooks.
    has_hooks = any(word in text for text in found.sources.values() for word in _HOOKS)

    # Modules of contracts alone bring neither tools nor hooks.
    modules = {name: code.modules[name] for name in found.modules}

    def answered() -> PluginContribution:
        offer = contributed_by_modules(found, modules)
        if not has_hooks:
            return with_contracts(with_offered(supply, offer), found, code.modules, ())
        answers = call_hooks(*modules.values())
        answered = with_answers(supply, found.manifest, offer, answers, limits)
        return with_contracts(answered, found, code.modules, answers.contracts)

    try:
        served, changed = guarded(answered, limits.hook, "hook", alone=alone)
    except PluginCodeError as problem:
        code.undo()
        trouble = "plugin-hook-failed" if has_hooks else "plugin-tool-invalid"
        return failed_contribution(supply, code_problem(trouble, problem, file))
    return with_code(served, code, changed)


def with_code(
    supply: PluginContribution, code: ImportedCode, changed: tuple[str, ...] = ()
) -> PluginContribution:
    """Keep the handle to the imported version, and say what looks wrong with what it brought.

    `changed` is what its hooks changed in the process, beside what its import did.
    """
    problems = list(process_changed(supply, dict.fromkeys((*code.meddled, *changed))))
    names = {tool.name for tool in supply.tools}
    for group in supply.groups:
        problems += [
            make_diagnostic(
                "plugin-group-unknown",
                Where(supply.path),
                f"group {group.name!r} lists the tool {name!r}, which the plugin does not bring",
                "correct the name, or define the tool",
            )
            for name in group.tools
            if name not in names
        ]
    return replace(supply, code=code, diagnostics=(*supply.diagnostics, *problems))


def started(
    supply: PluginContribution, config: Configuration, *, alone: bool = True
) -> PluginContribution:
    """Run the startup of a version that was just imported; one that fails is not served.

    With a value that is missing or not allowed it is not started: then it has no tools, and the
    rest serves. Only where the value is not allowed, an older version goes on.
    """
    life = supply.life
    if life is None or supply.state is Status.FAILED:
        return supply
    supply = replace(supply, started_with=fingerprint(config.values) if life.has_startup else "")
    if life.has_startup and (problem := _not_ready(config)):
        supply.code.undo()  # A version that goes on keeps its own modules.
        return replace(
            supply,
            tools=(),
            layers=(),
            commands=(),
            life=None,
            code=None,
            state=Status.HELD if config.missing else Status.DEGRADED,
            diagnostics=(*supply.diagnostics, problem),
        )
    supply.code.claim()
    try:
        changed = life.begin(config.values, alone=alone)
    except PluginCodeError as fault:
        supply.code.undo()
        told = code_problem("plugin-startup-failed", fault, supply.path, config.values)
        return failed_contribution(supply, told)
    supply.code.at_end(life.end)
    return replace(supply, diagnostics=(*supply.diagnostics, *process_changed(supply, changed)))


def _not_ready(config: Configuration) -> Diagnostic | None:
    """Say which value the startup waits for."""
    if config.missing:
        name, fault, fix = config.missing[0].name, "has no value", config.how_to_set
    elif config.invalid:
        (name, fault), fix = next(iter(config.invalid.items())), config.mend
    else:
        return None
    message = f"this version is not started, and brings no tools: {name!r} {fault}"
    return make_diagnostic("plugin-startup-failed", Where(config.path), message, fix(name))
