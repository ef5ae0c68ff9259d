"""`satchel validate`: skills and plugins held to the letter of their format, nothing run."""

import os
from collections.abc import Callable, Iterable
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

if TYPE_CHECKING:  # The command line stays light: whoever has a finding has loaded its room.
    from satchel.sources import PluginFinding, SkillScan

_NAMES = frozenset({"SKILL.md", "toolkit.yaml", "plugin.json", "mcp.json", ".mcp.json"})


@click.command("validate", cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="How findings are written; github annotates the lines of a pull request.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@run_code
def command(console: Console, *, paths: tuple[str, ...], form: str, run: bool) -> int:
    """Check skills and plugins strictly, and tell all problems at once.

    PATH is a SKILL.md, the manifest or folder of a plugin, or a folder to search for them.
    No plugin code is run unless you say --run: then what an application would be told is
    checked, too, and so are contracts.
    """
    checks = [check(path) for path in paths]
    found = {item: None for it in checks for item in it.problems}  # a set that keeps the order
    plugins = {plugin.path: plugin for it in checks for plugin in it.plugins}
    if run:
        for path in plugins:
            found.update(dict.fromkeys(_loaded(path, console)))
    elif any(map(_may_have_contracts, plugins.values())):
        console.say(f"a contract is {NOT_LOADED}")
    findings = [_nearer(item) for item in strictly(found)]
    _FORMS[form](findings, console)
    errors = sum(item.severity is Severity.ERROR for item in findings)
    warnings = sum(item.severity is Severity.WARNING for item in findings)
    checked = sum(it.units for it in checks)
    console.say(f"{checked} checked: {count(errors, 'error')}, {count(warnings, 'warning')}")
    return 1 if has_error(findings) else 0


def _loaded(path: str, console: Console) -> Iterable[Diagnostic]:
    """Load a plugin as an application does, and return what only that tells."""
    sources = Sources(plugins=(path,))
    known = sources.open(run_code=False).catalog.diagnostics
    catalog = sources.open(run_code=True).catalog
    for tool in catalog.all_tools:
        if tool.contract:
            console.say(one_line(f"tool {tool.name} has a contract"))
    return (item for item in catalog.diagnostics if item not in known)


def _may_have_contracts(plugin: "PluginFinding") -> bool:
    named = plugin.manifest.contracts if plugin.manifest else ()
    return bool(named) or any(b"satchel_contracts" in code for code in plugin.sources.values())


class Checked(NamedTuple):
    """What a path holds: how many skills and plugins, and what is wrong, not yet strict."""

    units: int
    problems: list[Diagnostic]
    plugins: "list[PluginFinding]"


def check(path: str) -> Checked:
    """Read what a path holds."""
    # Lazy: the rooms that read manifests are not needed for `--help`.
    from satchel.sources import NAMESPACE, RootKind, scan_skills, search_root
    from satchel.sources.file_reader import is_inside

    # A manifest in one of these is a part of the plugin around it.
    parts = (".claude-plugin", NAMESPACE)

    if not os.path.isdir(path):
        folder, name = os.path.split(os.path.abspath(path))
        if name not in _NAMES or not os.path.lexists(path):
            return Checked(0, [_nothing(path)], [])
        path = folder
    if os.path.basename(os.path.abspath(path)) in parts:
        path = os.path.dirname(os.path.abspath(path))
    # Who names a folder to check means all of it.
    limits = Limits(find_depth=64, find_folders=100_000)
    scan = scan_skills(search_root(path, RootKind.SKILLS), limits)
    plugins = _plugins(scan, parts, limits)
    problems = list(scan.diagnostics)
    for plugin in plugins:
        problems += (*plugin.diagnostics, *plugin.folder.diagnostics)
    closed = [plugin.path for plugin in plugins if plugin.policy.has_strict_skills]
    skills = {
        skill.path: skill
        for skill in scan.findings.values()
        if not any(is_inside(skill.path, folder) for folder in closed)
    }
    for part in (part for plugin in plugins for part in _skills_of(plugin, limits)):
        skills |= {skill.path: skill for skill in part.findings.values()}
        problems += (*part.diagnostics, *_never_loaded(part, limits))
    for skill in skills.values():
        problems += (*skill.diagnostics, *skill.folder.diagnostics)
    units = len(skills) + len(plugins)
    if not units and not has_error(strictly(problems)):
        problems.append(_nothing(path))
    return Checked(units, problems, plugins)


def _plugins(scan: "SkillScan", parts: tuple[str, ...], limits: Limits) -> "list[PluginFinding]":
    """Return the plugins among the folders that were looked into, whatever else they are."""
    from satchel.sources import RootKind, format_of, scan_plugins, search_root

    found: list[PluginFinding] = []
    for key in sorted(scan.walked.union(scan.findings)):
        # Other clients keep a plugin.json of their own in a hidden folder.
        if os.path.basename(key).startswith(".") or os.path.basename(key) in parts:
            continue
        folder = os.path.join(scan.place.path, *key.split("/"))
        if format_of(folder) is not None:
            found += scan_plugins(search_root(folder, RootKind.PLUGINS), limits).findings.values()
    return found


def _skills_of(plugin: "PluginFinding", limits: Limits) -> "Iterable[SkillScan]":
    """Look for the skills of a plugin where loading it looks, and by the same rules."""
    from satchel.sources import scan_skills, skills_of_plugin

    for folder in plugin.skills:
        yield scan_skills(skills_of_plugin(folder, plugin.path, plugin.policy), limits)


def _never_loaded(scan: "SkillScan", limits: Limits) -> Iterable[Diagnostic]:
    """Report the skills of an open plugin that do not lie where the format looks for them."""
    from satchel.sources import SKILL_FILE, scan_skills

    lenient = replace(scan.place.policy, has_strict_skills=False)
    for key in sorted(scan.walked) if scan.place.policy.has_strict_skills else ():
        folder = os.path.join(scan.place.path, key) if key else scan.place.path
        there = replace(scan.place, path=folder, policy=lenient)
        for skill in scan_skills(there, limits).findings:
            if key or not skill:
                yield make_diagnostic(
                    "source-too-deep",
                    Where(os.path.join(folder, *skill.split("/"), SKILL_FILE)),
                    "is never loaded: a skill of an open plugin is a folder directly in skills/",
                    "move its folder there",
                )


def _nothing(path: str) -> Diagnostic:
    whole = os.path.abspath(path)
    if not os.path.lexists(path):
        return make_diagnostic(
            "source-missing", Where(whole), "does not exist", "check the spelling"
        )
    return make_diagnostic(
        "source-empty",
        Where(whole),
        "holds nothing to validate: no SKILL.md, toolkit.yaml or plugin.json",
        "name a SKILL.md, a folder with one, or the folder of a plugin",
    )


def _nearer(item: Diagnostic) -> Diagnostic:
    return replace(item, where=replace(item.where, path=relative(item.where.path)))


def _as_text(findings: list[Diagnostic], console: Console) -> None:
    for item in findings:
        console.out(console.paint(diagnostic_line(item), fg=COLOURS[item.severity]))


def _as_json(findings: list[Diagnostic], console: Console) -> None:
    console.json([item.as_dict() for item in findings])


def _as_github(findings: list[Diagnostic], console: Console) -> None:
    for item in worst_first(findings):  # GitHub shows only the first ten of each run
        console.out(workflow_command(item))


_FORMS: dict[str, Callable[[list[Diagnostic], Console], None]] = {
    "text": _as_text,
    "json": _as_json,
    "github": _as_github,
}

_GITHUB_WORDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
_IN_MESSAGES = "%\r\n"
_IN_PROPERTIES = _IN_MESSAGES + ":,"


def workflow_command(item: Diagnostic) -> str:
    """Write a diagnostic as a command that GitHub's runner understands.

    Format: docs.github.com, workflow commands; escapes as in `@actions/core`.
    """
    facts = {
        "file": item.where.path,
        "line": item.where.line,
        "col": item.where.column,
        "title": item.code,
    }
    properties = ",".join(
        f"{key}={_escaped(str(value), _IN_PROPERTIES)}" for key, value in facts.items() if value
    )
    message = _escaped(item.message + (f" -> {item.fix}" if item.fix else ""), _IN_MESSAGES)
    return f"::{_GITHUB_WORDS[item.severity]} {properties}::{message}"


def _escaped(text: str, letters: Iterable[str]) -> str:
    """Escape some letters as the runner unescapes them; '%' must come first."""
    for letter in letters:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return visible(text)
