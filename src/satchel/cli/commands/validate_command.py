"""`satchel validate`: check skills and plugins strictly against their formats."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from satchel.cli.base_command import Command, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADED
from satchel.cli.rendering import COLOURS, count, diagnostic_line, relative, worst_first
from satchel.diagnostics import Diagnostic, Severity, Where, has_error, make_diagnostic, strictly
from satchel.settings import Limits
from satchel.text import one_line, visible

if TYPE_CHECKING:
    from satchel.sources import PluginFinding, SkillScan

_FILES = frozenset({"SKILL.md", "toolkit.yaml", "plugin.json", "mcp.json", ".mcp.json"})


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

    PATH is a SKILL.md, the manifest or folder of a plugin, or a folder to search for them.
    No plugin code is run without --run. With it, plugins are loaded as in an application, and
    contracts are checked too.
    """
    checks = [check(path) for path in paths]
    # A dict as an ordered set.
    diagnostics = {item: None for checked in checks for item in checked.problems}
    plugins = {plugin.path: plugin for checked in checks for plugin in checked.plugins}
    if run:
        for path in plugins:
            diagnostics.update(dict.fromkeys(_run_diagnostics(path, console)))
    elif any(map(_may_have_contracts, plugins.values())):
        console.say(f"contracts are {NOT_LOADED}")
    findings = [
        replace(item, where=replace(item.where, path=relative(item.where.path)))
        for item in strictly(diagnostics)
    ]
    _write(findings, output_format, console)
    errors = sum(item.severity is Severity.ERROR for item in findings)
    warnings = sum(item.severity is Severity.WARNING for item in findings)
    skills = count(sum(checked.skills for checked in checks), "skill")
    units = f"{skills}, {count(len(plugins), 'plugin')}"
    console.say(f"{units} checked: {count(errors, 'error')}, {count(warnings, 'warning')}")
    return 1 if has_error(findings) else 0


def _run_diagnostics(path: str, console: Console) -> Iterable[Diagnostic]:
    """Load a plugin with its code, and return the diagnostics that only this finds."""
    sources = Sources(plugins=(path,))
    earlier = sources.open(run_code=False).catalog.diagnostics
    catalog = sources.open(run_code=True).catalog
    for tool in catalog.all_tools:
        if tool.contract:
            console.say(one_line(f"tool {tool.name} has a contract"))
    return (item for item in catalog.diagnostics if item not in earlier)


def _may_have_contracts(plugin: "PluginFinding") -> bool:
    declared = plugin.manifest.contracts if plugin.manifest else ()
    return bool(declared) or any(b"satchel_contracts" in code for code in plugin.sources.values())


class Checked(NamedTuple):
    """The skills and plugins at a path, and their diagnostics before `strictly`."""

    skills: int
    problems: list[Diagnostic]
    plugins: "list[PluginFinding]"


def check(path: str) -> Checked:
    """Read all skills and plugins at a path."""
    # Lazy: not needed for `--help`.
    from satchel.sources import NAMESPACE, RootKind, scan_skills, search_root
    from satchel.sources.file_reader import is_inside

    # A manifest in one of these folders belongs to the plugin around it.
    manifest_folders = (".claude-plugin", NAMESPACE)

    if not os.path.isdir(path):
        folder, name = os.path.split(os.path.abspath(path))
        if name not in _FILES or not os.path.lexists(path):
            return Checked(0, [_nothing_found(path)], [])
        path = folder
    if os.path.basename(os.path.abspath(path)) in manifest_folders:
        path = os.path.dirname(os.path.abspath(path))
    # Larger limits: all of the named folder must be checked.
    limits = Limits(find_depth=64, find_folders=100_000)
    scan = scan_skills(search_root(path, RootKind.SKILLS), limits)
    plugins = _scan_plugins(scan, manifest_folders, limits)
    problems = list(scan.diagnostics)
    for plugin in plugins:
        problems += (*plugin.diagnostics, *plugin.folder.diagnostics)
    strict = [plugin.path for plugin in plugins if plugin.policy.has_strict_skills]
    skills = {
        skill.path: skill
        for skill in scan.findings.values()
        if not any(is_inside(skill.path, folder) for folder in strict)
    }
    for plugin_scan in (item for plugin in plugins for item in _scan_skills_of(plugin, limits)):
        skills |= {skill.path: skill for skill in plugin_scan.findings.values()}
        problems += (*plugin_scan.diagnostics, *_never_loaded(plugin_scan, limits))
    for skill in skills.values():
        problems += skill.problems
    if not (skills or plugins) and not has_error(strictly(problems)):
        problems.append(_nothing_found(path))
    return Checked(len(skills), problems, plugins)


def _scan_plugins(
    scan: "SkillScan", manifest_folders: tuple[str, ...], limits: Limits
) -> "list[PluginFinding]":
    """Return the plugins in the folders of a scan; a folder may be a skill and a plugin."""
    from satchel.sources import RootKind, format_of, scan_plugins, search_root

    plugins: list[PluginFinding] = []
    for key in sorted(scan.walked.union(scan.findings)):
        # Other clients have their own plugin.json in a hidden folder.
        if os.path.basename(key).startswith(".") or os.path.basename(key) in manifest_folders:
            continue
        folder = os.path.join(scan.place.path, *key.split("/"))
        if format_of(folder) is not None:
            plugins += scan_plugins(search_root(folder, RootKind.PLUGINS), limits).findings.values()
    return plugins


def _scan_skills_of(plugin: "PluginFinding", limits: Limits) -> "Iterable[SkillScan]":
    """Find the skills of a plugin by the rules with which it is loaded."""
    from satchel.sources import scan_skills, skills_of_plugin

    for folder in plugin.skills:
        yield scan_skills(skills_of_plugin(folder, plugin.path, plugin.policy), limits)


def _never_loaded(scan: "SkillScan", limits: Limits) -> Iterable[Diagnostic]:
    """Report the skills of an open plugin that are outside the folders of the format."""
    from satchel.sources import SKILL_FILE, scan_skills

    lenient = replace(scan.place.policy, has_strict_skills=False)
    for key in sorted(scan.walked) if scan.place.policy.has_strict_skills else ():
        folder = os.path.join(scan.place.path, key) if key else scan.place.path
        root = replace(scan.place, path=folder, policy=lenient)
        for skill in scan_skills(root, limits).findings:
            if key or not skill:
                yield make_diagnostic(
                    "source-too-deep",
                    Where(os.path.join(folder, *skill.split("/"), SKILL_FILE)),
                    "is never loaded: a skill of an open plugin must be a folder in skills/",
                    "move its folder to skills/",
                )


def _nothing_found(path: str) -> Diagnostic:
    where = Where(os.path.abspath(path))
    if not os.path.lexists(path):
        return make_diagnostic("source-missing", where, "does not exist", "check the spelling")
    return make_diagnostic(
        "source-empty",
        where,
        "contains nothing to validate: no SKILL.md, toolkit.yaml or plugin.json",
        "give a SKILL.md, a folder with one, or the folder of a plugin",
    )


def _write(findings: list[Diagnostic], output_format: str, console: Console) -> None:
    if output_format == "json":
        console.json([item.as_dict() for item in findings])
    elif output_format == "github":
        for item in worst_first(findings):  # GitHub shows only the first ten of a run
            console.out(workflow_command(item))
    else:
        for item in findings:
            console.out(console.paint(diagnostic_line(item), fg=COLOURS[item.severity]))


_GITHUB_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
_MESSAGE_ESCAPES = "%\r\n"
_PROPERTY_ESCAPES = _MESSAGE_ESCAPES + ":,"


def workflow_command(item: Diagnostic) -> str:
    """Return a diagnostic as a GitHub workflow command.

    Format: docs.github.com, workflow commands; escapes as in `@actions/core`.
    """
    values = {
        "file": item.where.path,
        "line": item.where.line,
        "col": item.where.column,
        "title": item.code,
    }
    properties = ",".join(
        f"{key}={_escape(str(value), _PROPERTY_ESCAPES)}" for key, value in values.items() if value
    )
    message = _escape(item.message + (f" -> {item.fix}" if item.fix else ""), _MESSAGE_ESCAPES)
    return f"::{_GITHUB_LEVELS[item.severity]} {properties}::{message}"


def _escape(text: str, characters: str) -> str:
    """Percent-encode some characters; '%' must be the first of them."""
    for character in characters:
        text = text.replace(character, f"%{ord(character):02X}")
    return visible(text)
