"""`satchel validate`: check skills and plugins strictly against their formats."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

import satchel
from satchel.cli.base_command import Command, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADED
from satchel.cli.format_checks import PathCheck, check_path
from satchel.cli.installed_project import installed_project
from satchel.cli.rendering import COLOURS, diagnostic_line, workflow_command
from satchel.diagnostics import Diagnostic, Severity, has_error, strictly
from satchel.errors import SatchelError
from satchel.reports.repair_advice import with_free_names
from satchel.reports.short_texts import count, count_units, joined_names, relative, worst_first
from satchel.settings import Limits
from satchel.sources.plugin_formats import PluginFormat
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.formats.toolkit_manifest import GroupManifest, PluginManifest
    from satchel.sources.plugin_findings import PluginFinding


@click.command("validate", cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="The output format; github annotates the lines of a pull request.",
)
@click.option("--json", "output_format", flag_value="json", help="The same as --format json.")
@run_code
def command(console: Console, *, paths: tuple[str, ...], output_format: str, run: bool) -> int:
    """Check skills and plugins strictly, and print all problems.

    PATH is a SKILL.md, the manifest or folder of a plugin or a marketplace, or a folder to search
    for them.
    No plugin code is run without --run. With it, plugins are loaded as in an application, and
    contracts are checked too.
    """
    checks = [check_path(path) for path in paths]
    # A dict as an ordered set.
    diagnostics = {item: None for checked in checks for item in checked.problems}
    plugins = {plugin.unit: plugin for checked in checks for plugin in checked.plugins}
    if run:
        # The plugins of a marketplace are loaded together.
        for path in dict.fromkeys(plugin.root.path for plugin in plugins.values()):
            diagnostics.update(dict.fromkeys(_run_diagnostics(path, console)))
    elif any(map(_may_have_contracts, plugins.values())):
        console.say(f"contracts are {NOT_LOADED}")
    skills = {skill.path: skill.name for checked in checks for skill in checked.skills}
    corrected = with_free_names(diagnostics, skills)
    findings = [
        replace(item, where=replace(item.where, path=relative(item.where.path)))
        for item in strictly(corrected.get(item, item) for item in diagnostics)
    ]
    _write(findings, output_format, console)
    errors = sum(item.severity is Severity.ERROR for item in findings)
    warnings = sum(item.severity is Severity.WARNING for item in findings)
    for line in _inactive_groups(plugins.values()):
        console.say(one_line(line))
    if unlisted := sorted({relative(path) for checked in checks for path in checked.unlisted}):
        console.say(
            f"not checked, since the marketplace does not list it: {joined_names(unlisted)}"
        )
    if too_deep := [skill for path in paths for skill in _too_deep(path, skills)]:
        number = count(len(too_deep), "skill")
        limit = f"limit find_depth, {Limits().find_depth}"
        names = joined_names(map(relative, too_deep))
        console.say(f"{number} too deep to be loaded from here ({limit}): {names}")
    units = _units(checks, plugins.values())
    console.say(f"{units} checked: {count(errors, 'error')}, {count(warnings, 'warning')}")
    if not all(map(os.path.lexists, paths)):
        return 2  # wrong usage, as in the other commands
    return 1 if has_error(findings) else 0


def _too_deep(path: str, skills: Iterable[str]) -> list[str]:
    """Return the skills that a source with this path is not searched for."""
    root = os.path.join(os.path.abspath(path), "")
    below, deepest = [skill for skill in skills if skill.startswith(root)], Limits().find_depth
    return [skill for skill in below if skill.removeprefix(root).count(os.sep) >= deepest]


def _inactive_groups(plugins: Iterable[PluginFinding]) -> Iterable[str]:
    """Yield what will not be served in a new session, and who serves it all the same."""
    named: list[PluginManifest | GroupManifest] = []
    for plugin in plugins:
        if plugin.manifest and plugin.format is PluginFormat.TOOLKIT:
            named += (plugin.manifest, *plugin.manifest.groups)
    groups = [group for group in named if not group.active]
    # A package's manifest may have no name: its distribution has one.
    said_nothing = sorted({group.name for group in groups if group.name and not group.is_off})
    is_off = sorted({group.name for group in groups if group.name and group.is_off})
    if said_nothing:
        yield (
            f"active in 'satchel serve' but not in a new session: {', '.join(said_nothing)}; "
            "'active: true' activates it in both"
        )
    if is_off:
        yield f"off until it is switched on: {', '.join(is_off)}"


def _units(checks: list[PathCheck], plugins: Iterable[PluginFinding]) -> str:
    """Return how much of each kind was checked; few folders have marketplaces."""
    skills = [skill for checked in checks for skill in checked.skills]
    marketplaces = {path for checked in checks for path in checked.marketplaces}
    sizes = [count_units(skills, "skill"), count_units(plugins, "plugin")]
    sizes += [count(len(marketplaces), "marketplace")] if marketplaces else []
    return ", ".join(sizes)


def _run_diagnostics(path: str, console: Console) -> Iterable[Diagnostic]:
    """Load a plugin with its code, and return the diagnostics that only this finds."""
    with installed_project(path) as name:
        earlier, catalog = (_catalog(path, name, run_code=run_code) for run_code in (False, True))
    for item in (item for plugin in catalog.all_plugins for item in plugin.diagnostics):
        if item.code == "choices-held":
            raise SatchelError(item.message, where=item.where.path, fix=item.fix)
    for tool in catalog.all_tools:
        if tool.contract:
            console.say(one_line(f"tool {tool.name} has a contract"))
    return [item for item in catalog.diagnostics if item not in earlier.diagnostics]


def _catalog(path: str, package: str, *, run_code: bool) -> Catalog:
    if not package:
        return Sources(plugins=(path,)).open(run_code=run_code).catalog
    settings = satchel.Settings(mcp_servers=False)
    app = satchel.Satchel(entry_points=[package], run_code=run_code, settings=settings)
    click.get_current_context().call_on_close(app.close)
    return app.catalog


def _may_have_contracts(plugin: PluginFinding) -> bool:
    declared = plugin.manifest.contracts if plugin.manifest else ()
    return bool(declared) or any(b"satchel_contracts" in code for code in plugin.sources.values())


def _write(findings: list[Diagnostic], output_format: str, console: Console) -> None:
    if output_format == "json":
        console.json([item.as_dict() for item in findings])
    elif output_format == "github":
        for item in worst_first(findings):  # GitHub shows only the first ten of a run
            console.out(github_line(item))
    else:
        for item in findings:
            console.wrapped(diagnostic_line(item), fg=COLOURS[item.severity])


_GITHUB_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}


def github_line(item: Diagnostic) -> str:
    """Return a diagnostic as a command of GitHub Actions, which marks the line in a change."""
    place = {
        "file": item.where.path,
        "line": item.where.line,
        "col": item.where.column,
        "title": item.code,
    }
    message = item.message + (f" -> {item.fix}" if item.fix else "")
    return workflow_command(_GITHUB_LEVELS[item.severity], place, message)
