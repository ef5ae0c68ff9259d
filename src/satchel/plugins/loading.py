"""From a plugin folder to its part of the catalog: reading it, or importing it as well."""

from dataclasses import replace
from typing import Any

from satchel.catalog import Supply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.plugins.declaring import code_path, is_isolated, with_manifest
from satchel.plugins.host import ask
from satchel.plugins.life import fingerprint
from satchel.plugins.offering import offered_by_part, with_answers, with_offered
from satchel.plugins.problems import code_problem, failed_supply, import_failed, meddling
from satchel.settings import Limits
from satchel.sources import (
    Configuration,
    Format,
    ImportedCode,
    PluginCodeError,
    PluginFinding,
    guarded,
    import_folder,
)

Rank = tuple[Any, ...]


_HOOK = b"hookimpl"


def read_folder(found: PluginFinding, rank: Rank) -> Supply:
    """Tell what a plugin folder brings without running its code."""
    manifest = found.manifest
    supply = Supply(
        name=manifest.name if manifest else found.folder_name,
        source=found.place.source,
        scope=found.place.scope,
        path=found.path,
        unit=found.path,
        rank=rank,
        digest=found.digest,
        is_contained=found.format is not Format.TOOLKIT,
        is_open=found.format is Format.OPEN,
    )
    return with_manifest(supply, found)


def load_folder(found: PluginFinding, rank: Rank, limits: Limits, *, alone: bool = True) -> Supply:
    """Import a plugin folder's code and tell what it brings; whatever it does is a diagnostic."""
    supply = read_folder(found, rank)
    file = code_path(found)
    if supply.failed or supply.flawed or not file or is_isolated(found):
        return supply
    try:
        first, *more = found.modules
        code = import_folder(
            found.code_path, found.sources, first, limits.plugin_import, more=more, alone=alone
        )
    except PluginCodeError as problem:
        return failed_supply(supply, import_failed(problem, file))
    # Reading costs nothing, and most folders have no hooks.
    has_hooks = any(_HOOK in source for source in found.sources.values())

    def answered() -> Supply:
        offer = offered_by_part(found, code.modules)
        if not has_hooks:
            return with_offered(supply, offer)
        answers = ask(*code.modules.values())
        return with_answers(supply, found.manifest, offer, answers, limits)

    try:
        served, _ = guarded(answered, limits.hook, "hook", alone=alone)
    except PluginCodeError as problem:
        code.purge()
        trouble = "plugin-hook-failed" if has_hooks else "plugin-tool-invalid"
        return failed_supply(supply, code_problem(trouble, problem, file))
    return with_code(served, code)


def with_code(supply: Supply, code: ImportedCode) -> Supply:
    """Keep the handle to the imported version, and say what looks wrong with what it brought."""
    problems = list(meddling(supply, code.meddled))
    names = {tool.name for tool in supply.tools}
    for group in supply.groups:
        problems += [
            report(
                "plugin-group-unknown",
                Where(supply.path),
                f"group {group.name!r} lists the tool {name!r}, which the plugin does not bring",
                "correct the name, or define the tool",
            )
            for name in group.tools
            if name not in names
        ]
    return replace(supply, code=code, diagnostics=(*supply.diagnostics, *problems))


def started(supply: Supply, config: Configuration, *, alone: bool = True) -> Supply:
    """Run the startup of a version that was just imported; one that fails is not served.

    Without a value that it requires it is not started: then it has no tools, and the rest serves.
    """
    life = supply.life
    if life is None or supply.failed:
        return supply
    supply = replace(supply, started_with=fingerprint(config.values) if life.has_startup else "")
    if life.has_startup and config.missing:
        problem = _not_ready(config)
        bare = replace(supply, tools=(), layers=(), commands=(), life=None, flawed=True)
        return replace(bare, diagnostics=(*supply.diagnostics, problem))
    try:
        meddled = life.begin(config.values, alone=alone)
    except PluginCodeError as problem:
        supply.code.purge()
        return failed_supply(supply, code_problem("plugin-startup-failed", problem, supply.path))
    supply.code.at_end(life.end)
    return replace(supply, diagnostics=(*supply.diagnostics, *meddling(supply, meddled)))


def _not_ready(config: Configuration) -> Diagnostic:
    key = config.missing[0].name
    return report(
        "plugin-startup-failed",
        Where(config.path),
        f"it is not started, and its tools are left out: {key!r} has no value",
        config.how_to_set(key),
    )
