"""The skills and plugins in the content of a source."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from satchel.diagnostics import Diagnostic, Severity
from satchel.files.file_reader import is_inside, real_path
from satchel.formats.marketplace_manifest import ListedPlugin
from satchel.lazy_dataclass import dataclass
from satchel.names import plugin_name_fault, skill_name_fault
from satchel.settings import Limits
from satchel.sources.marketplaces import is_marketplace, scan_marketplace
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root, skills_of_plugin
from satchel.sources.skill_findings import SkillFinding
from satchel.sources.skill_scan import scan_skills

_ENTRY_FAULTS = frozenset(
    {"marketplace-invalid", "marketplace-entry-invalid", "source-link-outside", "source-missing"}
)
"""Codes of the diagnostics for entries of a marketplace that cannot be added."""
UnitKind = Literal["skill", "plugin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUnit:
    """A skill or plugin of a source."""

    kind: UnitKind
    name: str
    folder: str
    description: str
    problems: tuple[Diagnostic, ...] = ()
    plugin: PluginFinding | None = None
    skills: tuple[SkillFinding, ...] = ()
    """The skill itself, or the skills of the plugin."""
    place: str = ""
    """Where in the source it is, if this is a copy."""
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What a copy does not have, by the reason."""
    from_elsewhere: tuple[str, ...] = ()
    """What a copy has from elsewhere in the source."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Return the paths that it consists of, inside its folder; `()` for the whole folder."""
        return self.plugin.chosen if self.plugin else ()

    @property
    def fault(self) -> str:
        """Return why it cannot be added, or `""`."""
        for item in self.problems:
            if item.severity is Severity.ERROR:
                where = os.path.relpath(item.where.path, self.folder)
                line = f":{item.where.line}" if item.where.line else ""
                return f"{where}{line}: {item.message}"
        fault = skill_name_fault if self.kind == "skill" else plugin_name_fault
        return f"its name {reason}" if (reason := fault(self.name)) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUnits:
    """All skills and plugins of a source."""

    units: tuple[SourceUnit, ...] = ()
    elsewhere: tuple[ListedPlugin, ...] = ()
    """The plugins that a marketplace lists at other addresses."""
    left_out: tuple[str, ...] = ()
    """What cannot be added, with the reason."""


def find_units(folder: str, within: str = "") -> SourceUnits:
    """Return the skills and plugins in a folder; a skill of a plugin comes with the plugin.

    Links must stay inside the folder `within`, or else inside the folder.
    """
    root = search_root(folder, RootKind.SKILLS)
    # The links are not the user's own, so none of them may lead anywhere.
    scan = scan_skills(
        replace(root, within=within, follows_links_out=False, visits_once=True), Limits()
    )
    market = scan_marketplace(folder, Limits()) if is_marketplace(folder) else None
    # A marketplace says which plugins it has.
    plugins = [*map(_plugin, _plugins(folder, {"", "plugins"} if market else scan.walked))]
    inside = [real_path(plugin.folder) for plugin in plugins]
    skills_outside_plugins = [
        finding
        for finding in scan.findings.values()
        if not any(is_inside(real_path(finding.path), path) for path in inside)
    ]
    owners = {
        skill.name: plugin.name for plugin in plugins for skill in plugin.skills if not plugin.fault
    }
    skills = _by_name(skills_outside_plugins)
    left_out = (
        [item.message for item in market.diagnostics if item.code in _ENTRY_FAULTS]
        if market
        else []
    )
    for name, (first, *others) in skills.items():
        owner = f"plugin {owners[name]!r}" if name in owners else first.key
        left_out += [
            f"the skill in {other.key}, because {owner} has its name, {name!r}"
            for other in ((first, *others) if name in owners else others)
            if not other.is_hidden  # hidden folders often mirror visible ones
        ]
    return SourceUnits(
        units=(*plugins, *(_skill(it[0]) for name, it in skills.items() if name not in owners)),
        elsewhere=market.remote if market else (),
        left_out=tuple(left_out),
    )


def _plugins(folder: str, keys: Iterable[str]) -> Iterable[PluginFinding]:
    """Return the plugins directly in the folders of these keys, without those inside others."""
    findings: dict[str, PluginFinding] = {}
    folders: set[str] = set()
    for key in sorted(keys, key=lambda key: (key.count("/"), key)):
        path = os.path.join(folder, *key.split("/"))
        is_hidden = key.startswith(".") or "/." in key
        is_part = any(is_inside(path, it.path) for it in findings.values())
        if os.path.isdir(path) and not (is_hidden or is_part or real_path(path) in folders):
            folders.add(real_path(path))  # many links may lead to it
            scan = scan_plugins(search_root(path, RootKind.PLUGINS), Limits())
            earlier = {real_path(it.path) for it in findings.values()}
            # Plugins of a marketplace may share a folder; only one scan finds them all.
            new = (it for it in scan.findings.values() if real_path(it.path) not in earlier)
            findings.update((it.unit, it) for it in new)
    return findings.values()


def _by_name(findings: Iterable[SkillFinding]) -> dict[str, list[SkillFinding]]:
    """Return the skills of each name; the first one is added."""
    skills: dict[str, list[SkillFinding]] = {}
    for skill in sorted(findings, key=lambda it: (it.is_hidden, it.key)):
        skills.setdefault(skill.name, []).append(skill)
    return skills


def _skill(finding: SkillFinding) -> SourceUnit:
    return SourceUnit(
        kind="skill",
        name=finding.name,
        folder=finding.path,
        description=finding.manifest.description if finding.manifest else "",
        problems=finding.problems,
        skills=(finding,),
    )


def _plugin(finding: PluginFinding) -> SourceUnit:
    manifest = finding.manifest
    is_own = manifest is not None and finding.listed is None
    roots = [skills_of_plugin(path, finding.path, finding.policy, "") for path in finding.skills]
    scans = (scan_skills(replace(root, visits_once=True), Limits()) for root in roots)
    skills = (it for scan in scans for it in scan.findings.values())
    return SourceUnit(
        kind="plugin",
        name=manifest.name if manifest is not None and is_own else finding.folder_name,
        folder=finding.path,
        description=manifest.description if manifest else "",
        problems=(*finding.diagnostics, *finding.folder.diagnostics),
        plugin=finding,
        skills=tuple(skills),
    )
