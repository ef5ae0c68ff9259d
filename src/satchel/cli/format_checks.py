"""Read the skills, plugins and marketplaces at a path, and report all problems."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic, strictly
from satchel.files.file_reader import is_inside
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.command_scan import scan_commands
from satchel.sources.marketplaces import is_marketplace
from satchel.sources.plugin_formats import NAMESPACE, format_of
from satchel.sources.plugin_scan import missing_manifest, scan_plugins
from satchel.sources.search_roots import RootKind, search_root, skills_of_plugin
from satchel.sources.skill_findings import SKILL_FILE
from satchel.sources.skill_scan import scan_skills

if TYPE_CHECKING:
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.plugin_scan import PluginScan
    from satchel.sources.skill_findings import SkillFinding, SkillScan

_FILES = frozenset(
    {"SKILL.md", "toolkit.yaml", "plugin.json", "marketplace.json", "mcp.json", ".mcp.json"}
)
_MANIFEST_FOLDERS = (".claude-plugin", NAMESPACE)
"""A manifest in one of these belongs to the plugin around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCheck:
    """What is at a path, and its diagnostics before `strictly`."""

    skills: tuple[SkillFinding, ...] = ()
    """With the commands of plugins."""
    unlisted: tuple[str, ...] = ()
    """Plugins and skills that the marketplace around them does not list; they are not checked."""
    marketplaces: frozenset[str] = frozenset()
    plugins: tuple[PluginFinding, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def check_path(path: str) -> PathCheck:
    """Read all skills, plugins and marketplaces at a path."""
    if not os.path.isdir(path):
        folder, name = os.path.split(os.path.abspath(path))
        if name not in _FILES or not os.path.lexists(path):
            return PathCheck(problems=(_nothing_found(path),))
        path = folder
    if os.path.basename(os.path.abspath(path)) in _MANIFEST_FOLDERS:
        path = os.path.dirname(os.path.abspath(path))
    scan = scan_skills(search_root(path, RootKind.SKILLS), _limits())
    unlisted: list[str] = []
    scans = _scan_plugins(scan, unlisted)
    plugins = [plugin for plugin_scan in scans for plugin in plugin_scan.findings.values()]
    marketplaces = frozenset(
        plugin_scan.root.path for plugin_scan in scans if is_marketplace(plugin_scan.root.path)
    )
    checked = check_plugins(plugins)
    loaded = {skill.path for skill in checked.skills}
    strict = [plugin.path for plugin in plugins if plugin.policy.has_strict_skills]
    loose_skills = [
        skill
        for skill in scan.findings.values()
        if skill.path not in loaded and not any(is_inside(skill.path, it) for it in strict)
    ]
    # What a marketplace does not list is not loaded either.
    unlisted += [
        skill.path
        for skill in loose_skills
        if any(is_inside(skill.path, it) for it in marketplaces)
    ]
    loose_skills = [skill for skill in loose_skills if skill.path not in unlisted]
    skills = (*loose_skills, *checked.skills)
    listing = (item for plugin_scan in scans for item in plugin_scan.diagnostics)
    problems = (
        *scan.diagnostics,
        *listing,
        *checked.problems,
        *(item for skill in loose_skills for item in skill.problems),
        *_without_manifest(scan, plugins, is_empty=not (skills or plugins)),
    )
    is_empty = not (skills or unlisted or plugins or marketplaces)
    if is_empty and not has_error(strictly(problems)):
        problems += (_nothing_found(path),)
    return PathCheck(
        skills=skills,
        unlisted=tuple(unlisted),
        marketplaces=marketplaces,
        plugins=tuple(plugins),
        problems=problems,
    )


def check_plugins(plugins: Iterable[PluginFinding]) -> PathCheck:
    """Read the skills and commands of plugins by the rules with which they are loaded."""
    plugins = tuple(plugins)
    problems: list[Diagnostic] = []
    skills: dict[str, SkillFinding] = {}
    for plugin in plugins:
        problems += (*plugin.diagnostics, *plugin.folder.diagnostics)
        for scan in _scan_skills_of(plugin):
            skills |= {skill.path: skill for skill in scan.findings.values()}
            problems += (*scan.diagnostics, *_never_loaded(scan))
        for scan in _scan_commands_of(plugin):
            skills |= {command.path: command for command in scan.findings.values()}
            problems += scan.diagnostics
    for skill in skills.values():
        problems += skill.problems
    return PathCheck(skills=tuple(skills.values()), plugins=plugins, problems=tuple(problems))


def _without_manifest(
    scan: SkillScan, plugins: Iterable[PluginFinding], *, is_empty: bool
) -> Iterable[Diagnostic]:
    """Report folders without a manifest: beside plugins, or at the top if there are none."""
    root = scan.root.path
    parents = {os.path.dirname(plugin.path) for plugin in plugins if plugin.policy.has_code}
    parents |= {root, os.path.dirname(root)} if is_empty else set()
    for key in sorted(scan.walked):
        folder = os.path.normpath(os.path.join(root, *key.split("/")))
        if os.path.dirname(folder) in parents and format_of(folder) is None:
            yield from missing_manifest(folder)


def _limits() -> Limits:
    """Return larger limits than for loading: all of a named folder must be checked."""
    return Limits(find_depth=64, find_folders=100_000)


def _scan_plugins(scan: SkillScan, unlisted: list[str]) -> list[PluginScan]:
    """Scan the plugins and marketplaces in the folders of a scan; a folder may be both.

    Plugins that the marketplace around them does not list are added to `unlisted`.
    """
    scans: list[PluginScan] = []
    listed: set[str] = set()
    markets: list[str] = []
    for key in sorted(scan.walked.union(scan.findings)):
        # Other clients have their own plugin.json in a hidden folder.
        if os.path.basename(key).startswith(".") or os.path.basename(key) in _MANIFEST_FOLDERS:
            continue
        folder = os.path.normpath(os.path.join(scan.root.path, *key.split("/")))
        # A plugin that a marketplace lists was read with its entry.
        is_market = is_marketplace(folder)
        is_plugin = format_of(folder) is not None or is_market
        # A marketplace loads only what it lists.
        is_left_out = any(folder != it and is_inside(folder, it) for it in markets)
        if is_plugin and folder not in listed and not is_left_out:
            plugin_scan = scan_plugins(search_root(folder, RootKind.PLUGINS), _limits())
            listed.update(plugin.path for plugin in plugin_scan.findings.values())
            markets += [folder] if is_market else []
            scans.append(plugin_scan)
        elif is_plugin and folder not in listed:
            unlisted.append(folder)
    return scans


def _scan_skills_of(plugin: PluginFinding) -> Iterable[SkillScan]:
    """Find the skills of a plugin by the rules with which it is loaded."""
    for folder in plugin.skills:
        yield scan_skills(skills_of_plugin(folder, plugin.path, plugin.policy), _limits())


def _scan_commands_of(plugin: PluginFinding) -> Iterable[SkillScan]:
    """Find the commands of a plugin by the rules with which it is loaded."""
    for path in plugin.command_paths:
        root = skills_of_plugin(path, plugin.path, plugin.policy, holds=RootKind.COMMANDS)
        yield scan_commands(root, _limits())


def _never_loaded(scan: SkillScan) -> Iterable[Diagnostic]:
    """Report the skills of an open plugin that are outside the folders of the format."""
    lenient = replace(scan.root.policy, has_strict_skills=False)
    for key in sorted(scan.walked) if scan.root.policy.has_strict_skills else ():
        folder = os.path.join(scan.root.path, key) if key else scan.root.path
        root = replace(scan.root, path=folder, policy=lenient)
        for skill in scan_skills(root, _limits()).findings:
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
        "contains nothing to validate: no SKILL.md, toolkit.yaml, plugin.json or marketplace.json",
        "give a SKILL.md, a folder with one, or the folder of a plugin",
    )
