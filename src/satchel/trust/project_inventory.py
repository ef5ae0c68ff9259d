"""What a project asks for: its skills, code, commands, servers and variables, without running it.

What a user is shown and what is trusted are the same reading: the record is made of the inventory.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from satchel.configuration.projects import Project, TrustLevel
from satchel.configuration.selection import Selection, project_selection_path, selection_path
from satchel.configuration.selection_reader import read_selection
from satchel.formats.frozen_values import to_plain
from satchel.importing.distributions import installed_folders, normalized, scan_distributions
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import (
    Precedence,
    RootKind,
    SearchRoot,
    distinct_roots,
    roots_in_project,
    skills_of_plugin,
)
from satchel.sources.skill_scan import scan_skills
from satchel.trust.code_units import (
    CodeUnit,
    incomparable,
    plugin_key,
    plugin_unit,
    project_of_plugin,
    project_of_settings,
    requested_variables,
    server_variables,
    settings_unit,
    skill_unit,
)
from satchel.trust.runnable_files import CodeReader
from satchel.trust.trust_record import TrustRecord, new_record

if TYPE_CHECKING:
    from satchel.configuration.selection import SelectionFile
    from satchel.diagnostics import Diagnostic
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.skill_findings import SkillFinding, SkillScan


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedServer:
    """An MCP server as it is declared; placeholders are not filled in."""

    name: str
    owner: str
    """The plugin or file that declares it."""
    declared: Mapping[str, Any]
    """Its command or address, with its environment and headers."""
    variables: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the declaration as one line, in full: the command or address comes first."""
        fields = {key: value for key, value in to_plain(self.declared).items() if value}
        if isinstance(fields.get("args", []), list) and "command" in fields:
            words = fields.pop("command"), *fields.pop("args", ())
            first = shlex.join(map(str, words))
        else:
            first = str(fields.pop("url", ""))
        rest = (f"{key}={value}" for key, value in fields.items())
        return ", ".join(filter(None, (first, *rest)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInventory:
    """What a project asks for."""

    project: Project
    skills: tuple[SkillFinding, ...] = ()
    plugins: tuple[PluginFinding, ...] = ()
    units: Mapping[str, CodeUnit] = field(default_factory=dict)
    """All code by unit, with its text."""
    servers: tuple[RequestedServer, ...] = ()
    enabled: tuple[str, ...] = ()
    """The patterns of its settings that enable other units than skills."""
    enabled_packages: tuple[str, ...] = ()
    """The installed plugins that these patterns enable now."""
    disabled: tuple[str, ...] = ()
    configured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The values that its settings give to plugins."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def variables(self) -> Mapping[str, tuple[RequestedServer, ...]]:
        """Return the environment variables that its servers use, sorted, each with these."""
        names = sorted({name for server in self.servers for name in server.variables})
        return {name: tuple(it for it in self.servers if name in it.variables) for name in names}

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to trust."""
        return not (self.skills or self.plugins or self.units)

    def record(self, level: TrustLevel, variables: Iterable[str] = ()) -> TrustRecord:
        """Return the record of a user's decision about exactly this content."""
        return new_record(self.project.folder, level, self.units, tuple(variables))


def read_inventory(project: Project) -> ProjectInventory:
    """Read a project without running anything of it."""
    limits, base = Limits(), project.folder
    path = project_selection_path(base)
    read = read_selection(selection_path(), path)
    files = [file for file in read.files if file.scope is Precedence.PROJECT]
    roots = _roots(project, files)
    plugin_scans = [scan_plugins(it, limits) for it in roots if it.holds is RootKind.PLUGINS]
    plugins = tuple(finding for scan in plugin_scans for finding in scan.findings.values())
    skill_scans = [scan_skills(it, limits) for it in roots if it.holds is RootKind.SKILLS]
    skill_scans += [scan for plugin in plugins for scan in scan_skills_of(plugin, base)]
    skills = tuple(finding for scan in skill_scans for finding in scan.findings.values())
    reader = CodeReader(with_text=True)
    units = [
        *(plugin_unit(plugin, base, reader) for plugin in plugins),
        *(_project_of(plugin, base, reader) for plugin in plugins),
        *(settings_unit(file, reader) for file in files),
        *(project_of_settings(file, base, reader=reader) for file in files),
        *(skill_unit(finding, base, reader) for finding in skills),
    ]
    servers = [server for file in files for server in _servers_of_file(file)]
    servers += [server for plugin in plugins for server in servers_of_plugin(plugin)]
    return ProjectInventory(
        project=project,
        skills=skills,
        plugins=plugins,
        units={unit.key: unit for unit in units if unit},
        servers=tuple(servers),
        enabled=tuple(text for file in files for text in file.enable.beyond_skills),
        enabled_packages=tuple(sorted(_enabled_packages(files))),
        disabled=tuple(text for file in files for text in file.disable.beyond_skills),
        configured={name: values for file in files for name, values in file.config.items()},
        diagnostics=(
            *(item for scan in plugin_scans for item in scan.diagnostics),
            *(item for scan in skill_scans for item in scan.diagnostics),
            *(item for plugin in plugins for item in plugin.diagnostics),
            *(item for file in files for item in file.diagnostics),
            *(incomparable(unit, base) for unit in units if unit and unit.problem),
        ),
    )


def _enabled_packages(files: Iterable[SelectionFile]) -> Iterable[str]:
    """Yield the installed plugins that a project's settings enable."""
    selection = Selection(tuple(files))
    if not selection.chooses:
        return
    for item in scan_distributions(installed_folders()).findings:
        names = (item.name, f"{item.distribution}:{item.name}", item.distribution)
        verdict = selection.verdict("plugin", (*names, normalized(item.distribution)))
        if verdict is not None and verdict.is_on:
            yield f"{item.name} ({item.distribution})"


def _roots(project: Project, files: Iterable[SelectionFile]) -> tuple[SearchRoot, ...]:
    """Return the search roots of a project, each folder once."""
    conventional = roots_in_project(project.folder, claude=project.claude)
    of_files = (root for file in files for root in file.roots)
    return distinct_roots(
        root for root in (*of_files, *conventional) if root.scope is Precedence.PROJECT
    )


def scan_skills_of(plugin: PluginFinding, base: str) -> Iterable[SkillScan]:
    """Yield the skills of a plugin in the project `base`."""
    for folder in plugin.skills:
        root = skills_of_plugin(folder, plugin.path, plugin.policy, plugin.folder_name)
        yield scan_skills(replace(root, within=root.within or base, project=base), Limits())


def _project_of(plugin: PluginFinding, base: str, reader: CodeReader) -> CodeUnit | None:
    key = plugin_key(plugin, base)
    return project_of_plugin(plugin.path, key, plugin.servers, base, reader=reader)


def _servers_of_file(file: SelectionFile) -> Iterable[RequestedServer]:
    for name, table in file.servers.items():
        yield RequestedServer(
            name=name,
            owner=os.path.basename(file.path),
            declared=table,
            variables=requested_variables([table]),
        )


def servers_of_plugin(plugin: PluginFinding) -> Iterable[RequestedServer]:
    """Yield the MCP servers that a plugin declares."""
    for server in plugin.servers:
        yield RequestedServer(
            name=server.name,
            owner=f"plugin {plugin.folder_name}",
            declared=server.table,
            variables=server_variables(server),
        )
