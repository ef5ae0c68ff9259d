"""Decide what of a project is used in a pass: nothing, its data, or also its code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import Status
from satchel.configuration.projects import SERVERS_FILE, Project, TrustLevel
from satchel.configuration.selection import SELECTION_FILE, Selection, SelectionFile
from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import is_inside, may_be_folder
from satchel.files.state_files import environment, exists
from satchel.lazy_dataclass import dataclass
from satchel.loader.project_grants import Grant, StartCheck, read_grant
from satchel.settings import Settings
from satchel.sources.folder_diagnostics import missing
from satchel.sources.search_roots import Precedence, ScriptRule, distinct_roots, roots_in_project

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, PluginEntry
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.search_roots import SearchRoot
    from satchel.sources.skill_findings import SkillFinding, SkillScan
    from satchel.trust.code_units import CodeUnit
    from satchel.trust.runnable_files import CodeReader


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustGate:
    """The grants of one pass, by the folder of the project."""

    grants: Mapping[str, Grant] = field(default_factory=dict)
    reader: CodeReader | None = None
    """Reads their code, each file once in a pass."""

    @property
    def stamps(self) -> tuple[StampedPath, ...]:
        """Return the stamps of the records that decide."""
        return tuple(grant.stamp for grant in self.grants.values() if grant.stamp)

    @property
    def diagnostics(self) -> Iterable[Diagnostic]:
        """Yield the problems of records, and one line for each project that is not trusted."""
        for folder, grant in self.grants.items():
            yield from grant.diagnostics
            if not may_be_folder(folder):
                yield missing(folder)
            if grant.level is TrustLevel.NONE and (parts := project_parts(grant.project)):
                message = f"is not trusted, so nothing of it is used; it has {', '.join(parts)}"
                fix = f"satchel trust {quote(folder)}"
                yield make_diagnostic("project-untrusted", Where(folder), message, fix)

    def at(self, path: str) -> Grant | None:
        """Return the grant of the project that a path is in, `None` if it is in none."""
        return next((item for base, item in self.grants.items() if is_inside(path, base)), None)

    def of_root(self, root: SearchRoot) -> Grant | None:
        """Return the grant that decides about a search root, `None` if it is the user's own."""
        return self.grants.get(root.within) if root.scope is Precedence.PROJECT else None

    def roots(
        self, search_roots: Iterable[SearchRoot], selection: Selection
    ) -> tuple[SearchRoot, ...]:
        """Return the search roots to read: those given, then the others of trusted projects."""
        of_files = (root for file in selection.files for root in file.roots)
        of_projects = (root for it in self.grants.values() for root in project_roots(it.project))
        # Not those of a folder that a link has just replaced: its target is not trusted.
        theirs = (root for root in (*of_files, *of_projects) if self.of_root(root))
        ruled = []
        for root in (*search_roots, *theirs):
            grant = self.of_root(root)
            if grant is None or grant.level is not TrustLevel.NONE:
                ruled.append(replace(root, scripts=grant.script_rule) if grant else root)
        return distinct_roots(ruled)

    def limited(self, read: Selection, before: Selection) -> Selection:
        """Return the settings that count. While new ones are held, the last trusted ones do.

        `before` are the settings that counted in the last pass.
        """
        last = {file.path: file for file in before.files}
        return Selection(
            tuple(
                self._limited_file(file, last.get(file.path))
                if file.scope is Precedence.PROJECT
                else file
                for file in read.files
            )
        )

    def _limited_file(self, file: SelectionFile, last: SelectionFile | None) -> SelectionFile:
        from satchel.trust.code_units import settings_unit  # lazy: needed only with projects

        folder = os.path.dirname(file.path)
        grant = self.grants.get(folder) or Grant(project=Project(folder))
        if grant.level is TrustLevel.NONE:
            return SelectionFile(
                path=file.path, scope=file.scope, stamp=file.stamp, digest=file.digest
            )
        name, is_code = os.path.basename(file.path), grant.level is TrustLevel.CODE
        if not is_code:
            file = replace(file, unread=frozenset())  # it decides about skills only
        unit = settings_unit(file)
        if grant.allows(unit):
            return file
        code = last if last and is_code else SelectionFile(path=file.path, scope=file.scope)
        subject = f"what {name} enables, configures and starts is"
        has_code = any(
            (code.config, code.servers, code.enable.beyond_skills, code.disable.beyond_skills)
        )
        instead = _instead(
            "what the last trusted version says" if has_code else "", data="its choices of skills"
        )
        refusal = grant.refusal(file.path, subject, unit, instead=instead)
        return replace(
            file.as_data,
            enable=file.as_data.enable | code.enable.without_skills,
            disable=file.as_data.disable | code.disable.without_skills,
            config=code.config,
            servers=code.servers,
            diagnostics=(*file.diagnostics, refusal),
        )

    def unit(self, finding: PluginFinding) -> CodeUnit | None:
        """Return the code of a plugin, if it belongs to a project."""
        if (grant := self.of_root(finding.root)) is None:
            return None
        from satchel.trust.code_units import plugin_unit  # lazy: needed only with projects

        return plugin_unit(finding, grant.project.folder, self.reader)

    def guarded(
        self,
        finding: PluginFinding,
        unit: CodeUnit | None,
        contribution: PluginContribution,
        last_good: PluginContribution | None,
    ) -> PluginContribution:
        """Return a plugin, without its code and servers if these are not trusted."""
        grant = self.of_root(finding.root)
        if grant is None or not (unit or (last_good and last_good.tools)):
            return contribution
        # lazy: needed only with projects
        from satchel.trust.code_units import plugin_key, programs_unchanged

        # Without code now, the last good version of it would be served with its own.
        key = plugin_key(finding, grant.project.folder)
        if grant.allows(unit) if unit else grant.trusts(key):
            return contribution
        # What was trusted without its code does not keep the code that it had before.
        falls_back = grant.level is TrustLevel.CODE and unit is not None
        trusted = grant.trusted(key)
        imported = [file.name for file in finding.folder.files]
        # A server starts its program from disk, so the last good one needs the trusted program.
        keeps_servers = bool(unit and trusted and programs_unchanged(unit, trusted, imported))
        servers = last_good.servers if last_good and keeps_servers else ()
        instead = _instead(
            "the last trusted version of its code" if last_good and falls_back else "",
            loses_servers=bool(last_good and last_good.servers) and not keeps_servers,
            data="the plugin's skills, notes and descriptions",
        )
        subject = f"the code of plugin {contribution.name!r} is"
        reason = grant.refusal(finding.path, subject, unit, instead=instead)
        state = _held_state(contribution.state, falls_back=falls_back)
        return replace(without_code(contribution, reason), state=state, servers=servers)

    def checked_scripts(
        self, scan: SkillScan, before: SkillScan | None, last: TrustGate
    ) -> SkillScan:
        """Return the skills of a search root; changed scripts of a project are not runnable.

        `before` and `last` are those of the last pass, which need not be checked again.
        """
        grant = self.of_root(scan.root) or self.grants.get(scan.root.project)
        if grant is None or scan.root.scripts is not ScriptRule.COMPARE:
            return scan
        is_same_grant = last.grants.get(grant.project.folder) is grant
        earlier = before.findings if before and is_same_grant else {}
        changed: dict[str, SkillFinding] = {}
        for key, finding in scan.findings.items():
            is_held = finding.root.scripts is ScriptRule.NEVER
            if earlier.get(key) is finding and not is_held:
                continue
            checked = _checked_skill(finding, grant, self.reader)
            if checked != finding or checked.programs != finding.programs:
                changed[key] = checked
        if is_same_grant and not changed:
            return scan
        return replace(scan, findings={**scan.findings, **changed}, edited=None)

    def ruled(self, root: SearchRoot, plugin: PluginEntry) -> SearchRoot:
        """Return a search root of a plugin; links of a project's plugin stay in the project."""
        grant = self.at(plugin.path) if plugin.scope is Precedence.PROJECT else None
        if grant is None:
            return root
        is_current = not plugin.contribution.is_untrusted and plugin.state is not Status.STALE
        rule = grant.script_rule if is_current else ScriptRule.NEVER
        base = grant.project.folder
        return replace(root, within=root.within or base, scripts=rule, project=base)

    def check_of_file(self, name: str, file: SelectionFile) -> StartCheck | None:
        """Return the check for a server of settings, `None` if it needs none."""
        grant = self.at(file.path) if file.scope is Precedence.PROJECT else None
        if grant is None or grant.units is None:
            return None
        # lazy: needed only with projects
        from satchel.trust.code_units import change_of_settings, project_key

        key = os.path.basename(file.path)
        trusted = grant.trusted(project_key(key))
        return StartCheck(
            trusted=(trusted,),
            change=partial(change_of_settings, name, file, grant.project.folder, trusted),
            refusal=partial(grant.refusal_to_start, name, file.path),
        )

    def check_of_plugin(self, name: str, plugin: PluginEntry) -> StartCheck | None:
        """Return the check for a server of a plugin, `None` if it needs none."""
        grant = self.at(plugin.path) if plugin.scope is Precedence.PROJECT else None
        if grant is None or grant.units is None:
            return None
        # lazy: needed only with projects
        from satchel.trust.code_units import CodeUnit, change_of_plugin, project_key

        base, listed = grant.project.folder, plugin.unit.removeprefix(plugin.path)
        key = os.path.relpath(plugin.path, base) + listed
        trusted, project = grant.trusted(key) or CodeUnit(key, {}), grant.trusted(project_key(key))
        return StartCheck(
            trusted=(trusted, project),
            change=partial(
                change_of_plugin,
                name,
                plugin.path,
                plugin.contribution.servers,
                base=base,
                trusted=trusted,
                project=project,
            ),
            refusal=partial(grant.refusal_to_start, name, plugin.path),
        )

    def variables(
        self, path: str, scope: Precedence, requested: Iterable[str]
    ) -> Mapping[str, str]:
        """Return the environment for the placeholders of a declaration in a file or plugin.

        In a project, these are only the variables that the user allowed for it. Raises
        `DefinitionError` if another one is requested and set.
        """
        values = environment()
        if scope is not Precedence.PROJECT:
            return values
        grant = self.at(path)
        allowed = grant.variables if grant else frozenset()
        for name in requested:
            if name in values and name not in allowed:
                folder = quote(grant.project.folder if grant else path)
                fix = f"satchel trust {folder} --variable {name}"
                if grant and grant.project.trust:  # the record does not count
                    fix = f"add --variable {name}, or in a program Project(..., variables=[...])"
                message = f"it uses the environment variable {name}, which you did not allow"
                raise DefinitionError(message, fix=fix)
        return {name: value for name, value in values.items() if name in allowed}


def without_code(contribution: PluginContribution, reason: Diagnostic) -> PluginContribution:
    """Return a plugin with its data alone, and why its code and servers are not used."""
    return replace(
        contribution,
        state=_held_state(contribution.state, falls_back=False),
        is_untrusted=True,
        tools=(),
        unusable=tuple(
            replace(tool, state=Status.HELD, diagnostics=(*tool.diagnostics, reason))
            for tool in contribution.tools
        ),
        servers=(),
        diagnostics=(*contribution.diagnostics, reason),
    )


def open_gate(
    projects: Iterable[Project], settings: Settings, before: TrustGate | None = None
) -> TrustGate:
    """Read what the user allows for projects; records unchanged since `before` are reused."""
    earlier = before.grants if before else {}
    grants = {
        project.folder: read_grant(project, settings.state_folder, earlier.get(project.folder))
        for project in projects
    }
    if not grants:
        return TrustGate()
    from satchel.trust.runnable_files import CodeReader  # lazy: needed only with projects

    return TrustGate(grants=grants, reader=CodeReader())


def project_roots(project: Project) -> tuple[SearchRoot, ...]:
    """Return the conventional search roots of a project, whether they exist or not."""
    return roots_in_project(project.folder, claude=project.claude)


def project_parts(project: Project) -> list[str]:
    """Return which of the conventional folders and files a project has."""
    names = [f"./{root.source}" for root in project_roots(project) if exists(root.path)]
    files = (SELECTION_FILE, SERVERS_FILE)
    return names + [name for name in files if exists(os.path.join(project.folder, name))]


def _checked_skill(finding: SkillFinding, grant: Grant, reader: CodeReader | None) -> SkillFinding:
    """Return a skill whose scripts may run, if they are trusted, while nothing of it changes."""
    from satchel.trust.code_units import skill_unit  # lazy: needed only with projects

    unit = skill_unit(finding, grant.project.folder, reader)
    if unit is None and finding.root.scripts is ScriptRule.COMPARE:
        return finding
    rule = ScriptRule.COMPARE if grant.allows(unit) else ScriptRule.NEVER
    problems = tuple(item for item in finding.diagnostics if item.code != "code-held")
    if unit and rule is ScriptRule.NEVER:
        subject = f"the scripts of skill {finding.name!r} are"
        refusal = grant.refusal(finding.path, subject, unit, instead="only its texts are used")
        problems = (*problems, refusal)
    return replace(
        finding,
        root=replace(finding.root, scripts=rule),
        programs={name: it.digest for name, it in unit.files.items()} if unit else {},
        diagnostics=problems,
    )


def _instead(last: str, *, data: str, loses_servers: bool = False) -> str:
    """Return what is used in place of held code: its last trusted version, or only the data."""
    if not last:
        return f"only {data} are used"
    return f"{last} is still used{', but not its MCP servers' if loses_servers else ''}"


def _held_state(state: Status, *, falls_back: bool) -> Status:
    """Return the state of a plugin whose code is not used.

    With `falls_back`, the last good version is served if there is one.
    """
    if falls_back:
        return Status.DEGRADED if state is Status.OK else state
    if state in {Status.OK, Status.DEGRADED}:
        return Status.HELD
    return Status.REVOKED if state.falls_back else state
