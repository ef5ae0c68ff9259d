"""The sources that every pass asks: the host, folders, packages, providers and MCP servers."""

# ruff: noqa: ARG002 - every provider is asked in the same way

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import HOST, Status
from satchel.diagnostics import Where, make_diagnostic
from satchel.files.file_reader import may_be_folder
from satchel.files.watch_targets import WatchTargets
from satchel.importing.distributions import installed_folders, normalized, scan_distributions
from satchel.lazy_dataclass import dataclass
from satchel.loader.loader_config import ALL, unit_of
from satchel.loader.name_choices import enabled_tools, server_names, with_owned_names
from satchel.loader.pass_provider import (
    Candidate,
    PassProvider,
    ProviderAnswer,
    problems_of,
    targets_of,
)
from satchel.names import near_misses
from satchel.plugins.plugin_reading import read_folder, read_package
from satchel.sources.package_scan import scan_packages
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot, skills_of_plugin

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, PluginEntry
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath
    from satchel.importing.distributions import DistributionFinding, DistributionScan
    from satchel.loader.loader_config import Unit
    from satchel.loader.scan_cache import PassInputs, ScanCache
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.skill_findings import SkillFinding, SkillScan

_SERVER_RANK = 1_000_000_000
"""The rank of MCP servers: after all folders and packages."""


def pass_providers(inputs: PassInputs) -> tuple[PassProvider, ...]:
    """Return the providers of a pass; of two skills of equal precedence, the first one wins."""
    config = inputs.config
    kinds = {RootKind.PLUGINS: _PluginFolder, RootKind.SKILLS: _SkillFolder}
    return (
        _GivenCode(plugin=config.host, findings=config.host_skills, is_optional=False),
        *(kinds[root.holds](root) for root in inputs.roots if root.holds in kinds),
        *(_InstalledPackages(), _SkillsOfPlugins()),
        *(
            _GivenCode(plugin=item.plugin, findings=item.skills, watched=item.watched)
            for item in config.provided
        ),
        _McpServers(),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _GivenCode(PassProvider):
    """The application itself, or a provider that was asked before the pass.

    Its folders are search roots of the pass.
    """

    plugin: PluginContribution
    findings: tuple[SkillFinding, ...]
    watched: tuple[StampedPath, ...] = ()
    is_optional: bool = True

    def plugins(self, inputs: PassInputs, now: ScanCache) -> ProviderAnswer:
        folders = tuple(path for path, _ in self.watched if may_be_folder(path))
        return ProviderAnswer(
            candidates=(Candidate(contribution=self.plugin, is_optional=self.is_optional),),
            watch=WatchTargets(roots=folders, files=self.watched),
        )

    def skills(self, inputs: PassInputs, now: ScanCache) -> Iterable[SkillScan]:
        return (_without_folder(self.plugin.unit, self.findings),) if self.findings else ()


@dataclass(frozen=True, slots=True)
class _McpServers(PassProvider):
    """The connected MCP servers; each is a plugin."""

    renamed_on_conflict = True

    def plugins(self, inputs: PassInputs, now: ScanCache) -> ProviderAnswer:
        if not inputs.config.servers:
            return ProviderAnswer()
        # Lazy: needed only with MCP servers.
        from satchel.mcp_servers.server_contributions import server_contributions

        offered, owners = inputs.config.servers, inputs.config.owners
        names: Mapping[str, str] = {}
        plugins = [plugin.contribution for plugin in now.bound.plugins.values()]
        if owners is not None:
            left_out = inputs.cache.left_out
            offered = with_owned_names(offered, left_out, plugins, owners, inputs.selection)
            names = server_names(offered, left_out, owners, inputs.selection)
        taken = {
            name: "the application" if item.source == HOST else f"plugin {item.name!r}"
            for item in plugins
            for name in enabled_tools(item, inputs.selection)
        }
        last = inputs.last_answer(self).kept or {}
        servers = server_contributions(offered, taken, last, _SERVER_RANK, names)
        stamps = (server.offered.verdict.stamp for server in servers.values())
        return ProviderAnswer(
            candidates=tuple(
                Candidate(contribution=it.contribution, origin=it.offered.config.origin)
                for it in servers.values()
            ),
            watch=WatchTargets(installed=tuple(filter(None, stamps))),
            kept=servers,
        )

    def skills(self, inputs: PassInputs, now: ScanCache) -> Iterable[SkillScan]:
        if not inputs.config.servers:
            return
        from satchel.mcp_servers.server_skills import (
            collect_server_skills,  # lazy: needed only with MCP servers
        )

        findings = [finding for scan in now.skills.values() for finding in scan.findings.values()]
        taken = {item.manifest.name if item.manifest else item.folder_name for item in findings}
        # The last good version of a broken skill may have another name than its folder.
        broken = {item.path for item in findings if item.manifest is None}
        taken |= {entry.name for entry in inputs.previous.all_skills if entry.path in broken}
        served = {entry.name for entry in now.plugins if entry.is_served}
        servers = (item for item in inputs.config.servers if item.source in served)
        skills = collect_server_skills(servers, taken, inputs.config.settings.limits)
        yield _without_folder("mcp", *skills)


def _without_folder(
    source: str, findings: Iterable[SkillFinding], diagnostics: tuple[Diagnostic, ...] = ()
) -> SkillScan:
    """Return skills that are in no folder as the result of a scan."""
    from satchel.sources.skill_findings import SkillScan  # lazy: needed only with skills

    root = SearchRoot(
        path=f"{source}://",
        holds=RootKind.SKILLS,
        scope=Precedence.EXPLICIT,
        source=source,
        optional=True,
    )
    by_path = {finding.path: finding for finding in findings}
    return SkillScan(
        root=root,
        findings=by_path,
        diagnostics_by_key={"": diagnostics} if diagnostics else {},
        suspect=frozenset(path for path, finding in by_path.items() if finding.manifest is None),
    )


# ---- folders ---------------------------------------------------------------------------------


def _load_folder(*arguments: Any, **options: Any) -> PluginContribution:
    from satchel.plugins.code_loading import load_folder  # lazy: needed only with plugin code

    return load_folder(*arguments, **options)


@dataclass(frozen=True, slots=True)
class _PluginFolder(PassProvider):
    """A folder of plugins."""

    root: SearchRoot

    def plugins(self, inputs: PassInputs, now: ScanCache) -> ProviderAnswer:
        # Lazy: needed only with plugin folders.
        from satchel.sources.lost_files import has_lost_manifest
        from satchel.sources.plugin_scan import missing_manifest, scan_plugins

        last = inputs.last_answer(self)
        dirty = inputs.options.dirty
        scan = scan_plugins(self.root, inputs.limits, last.kept, dirty, inputs.settle)
        by_finding = {id(item.finding): item for item in last.candidates}
        candidates, diagnostics = list[Candidate](), [*problems_of(scan)]
        for finding in scan.findings.values():
            item = self._candidate(inputs, finding, by_finding.get(id(finding)))
            if has_lost_manifest(finding) and not inputs.last_good(item.contribution):
                diagnostics += missing_manifest(finding.path)  # it never was a plugin
            else:
                candidates.append(item)
        return ProviderAnswer(
            candidates=tuple(candidates),
            diagnostics=tuple(diagnostics),
            watch=targets_of(scan),
            kept=scan,
        )

    def _candidate(
        self, inputs: PassInputs, finding: PluginFinding, candidate: Candidate | None
    ) -> Candidate:
        rank = inputs.roots.index(self.root), finding.key, getattr(finding.listed, "name", "")
        if candidate is not None and candidate.contribution.rank == rank:
            return candidate
        contribution = read_folder(finding, rank)
        return Candidate(
            contribution=contribution,
            names=(f"{contribution.source}:{contribution.name}", contribution.source),
            finding=finding,
            load=_load_folder,
            unit=inputs.gate.unit(finding),
        )


@dataclass(frozen=True, slots=True)
class _SkillFolder(PassProvider):
    """A folder of skills."""

    root: SearchRoot

    def skills(self, inputs: PassInputs, now: ScanCache) -> Iterable[SkillScan]:
        return (_scan_skills(inputs, self.root, inputs.options.dirty),)


@dataclass(frozen=True, slots=True)
class _SkillsOfPlugins(PassProvider):
    """The skills and commands of served plugins; a rejected plugin keeps those it had."""

    def skills(self, inputs: PassInputs, now: ScanCache) -> Iterable[SkillScan]:
        served = [plugin for plugin in now.plugins if plugin.is_served]
        rejected, were_rejected = _rejected(now), _rejected(inputs.cache)
        for plugin in served:
            is_rejected, was_rejected = (unit_of(plugin) in it for it in (rejected, were_rejected))
            for root in _roots(now, plugin, plugin.contribution.skills):
                last = inputs.cache.skills.get(root)
                if is_rejected and last is not None:
                    yield last
                else:
                    # Changes made while it was rejected are not in `dirty`: read everything.
                    yield _scan_skills(inputs, root, None if was_rejected else inputs.options.dirty)
        # Last: a command must not take the name of a skill that the model uses.
        for plugin in served:
            for root in _roots(now, plugin, plugin.contribution.command_paths, RootKind.COMMANDS):
                from satchel.sources.command_scan import scan_commands  # lazy: few have commands

                last = inputs.cache.skills.get(root)
                if last is not None and not may_be_folder(plugin.path):
                    yield last  # the plugin is gone for a moment only, or will be in the next pass
                else:
                    yield scan_commands(root, inputs.limits, last, inputs.options.dirty)


def _scan_skills(inputs: PassInputs, root: SearchRoot, dirty: frozenset[str] | None) -> SkillScan:
    # lazy: needed only with skill folders
    from satchel.sources.cached_scan import scan_through_cache
    from satchel.sources.skill_scan import scan_skills

    last = inputs.cache.skills.get(root)
    if dirty is None and inputs.config.settings.cache:
        return scan_through_cache(root, inputs.limits, last, inputs.settle)
    return scan_skills(root, inputs.limits, last, dirty, inputs.settle)


def _roots(
    now: ScanCache, plugin: PluginEntry, paths: Iterable[str], holds: RootKind = RootKind.SKILLS
) -> Iterable[SearchRoot]:
    for path in paths:
        policy = plugin.contribution.policy
        root = skills_of_plugin(path, plugin.path, policy, plugin.name, holds)
        yield now.selection.ruled(now.gate.ruled(root, plugin))


def _rejected(now: ScanCache) -> set[Unit]:
    """Return the open plugins whose newest version is broken, so an older one is served.

    Their new skills must not be discovered: Agent Plugins 1.0.0, section 5.2.
    """
    return {
        unit
        for unit, newest in now.imported.contributions.items()
        if newest.policy.has_extension and newest.state in {Status.FAILED, Status.SETTLING}
    }


# ---- installed packages ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _InstalledPackages(PassProvider):
    """The installed plugins; only those that are enabled are loaded."""

    def plugins(self, inputs: PassInputs, now: ScanCache) -> ProviderAnswer:
        listed, earlier = inputs.last_answer(self).kept or (None, {})
        installed = scan_distributions(installed_folders(), listed)
        packages = scan_packages(
            installed.findings,
            inputs.limits,
            partial(_is_enabled, inputs),
            earlier,
            inputs.options.dirty,
        )
        candidates = tuple(self._candidates(inputs, packages.values()))
        is_used = (item.contribution.state is not Status.DISABLED for item in candidates)
        used = tuple(compress(packages.values(), is_used))
        return ProviderAnswer(
            candidates=candidates,
            diagnostics=(*installed.diagnostics, *_missing(inputs, installed)),
            watch=WatchTargets(
                roots=tuple(path for package in used for path in package.roots),
                links=frozenset().union(*(package.links for package in used)),
                installed=(
                    *installed.stamps,
                    *(stamp for package in used for stamp in package.stamps),
                ),
                awaited=installed.awaited,
            ),
            kept=(installed, packages),
        )

    def _candidates(
        self, inputs: PassInputs, packages: Collection[PackageFinding]
    ) -> Iterable[Candidate]:
        for package in packages:
            finding = package.installed
            contribution = read_package(
                package, (len(inputs.roots), finding.name, finding.distribution)
            )
            same_name = [it.installed for it in packages if it.installed.name == finding.name]
            # Only enabled ones compete: installing an unrelated one must not disable a plugin.
            rivals = [other for other in same_name if _is_enabled(inputs, other)]
            if not _is_enabled(inputs, finding):
                name = finding.name if len(same_name) == 1 else finding.distribution
                problem = _not_enabled(finding, name)
                contribution = replace(contribution, state=Status.DISABLED, diagnostics=(problem,))
            elif len(rivals) > 1:
                problem = _contested(finding, rivals)
                contribution = replace(contribution, state=Status.REVOKED, diagnostics=(problem,))
            yield Candidate(
                contribution=contribution,
                names=_names_of(finding),
                finding=package,
                load=partial(_load_package, from_source=inputs.config.lock is not None),
            )


def _load_package(*arguments: Any, **options: Any) -> PluginContribution:
    from satchel.plugins.code_loading import load_package  # lazy: needed only with plugin code

    return load_package(*arguments, **options)


def _is_enabled(inputs: PassInputs, installed: DistributionFinding) -> bool:
    """Return whether an installed plugin is enabled; the user's selection comes first."""
    verdict = inputs.selection.verdict("plugin", (installed.name, *_names_of(installed)))
    return verdict.is_on if verdict else inputs.config.enables(installed)


def _names_of(finding: DistributionFinding) -> tuple[str, ...]:
    owner = finding.distribution
    return (f"{owner}:{finding.name}", owner, normalized(owner))


def _not_enabled(finding: DistributionFinding, enabled_by: str) -> Diagnostic:
    package = f"{finding.distribution} {finding.version}"
    if finding.value:
        message = f"plugin {finding.name!r} of {package} is available, not enabled"
    else:
        message = f"{package} ships skills, which are available, not enabled"
    return make_diagnostic(
        "plugin-not-enabled",
        Where(finding.path),
        message,
        f"satchel enable {enabled_by}",
    )


def _contested(finding: DistributionFinding, rivals: Iterable[DistributionFinding]) -> Diagnostic:
    owners = " and ".join(sorted(other.distribution for other in rivals))
    return make_diagnostic(
        "plugin-contested",
        Where(finding.path),
        f"plugin {finding.name!r} is offered by {owners}; neither is used",
        "uninstall one of them",
    )


def _missing(inputs: PassInputs, installed: DistributionScan) -> Iterable[Diagnostic]:
    """Report the enabled entry points that are not installed."""
    plugin_names = {item.name for item in installed.findings}
    names = plugin_names | {item.distribution for item in installed.findings}
    names |= {normalized(item.distribution) for item in installed.findings}
    for name in sorted(inputs.config.entry_points - names - {ALL}):
        near = near_misses(name, plugin_names)
        yield make_diagnostic(
            "plugin-not-installed",
            Where(f"entry point {name}"),
            f"no installed distribution has a plugin {name!r}",
            f"did you mean {', '.join(near)}?" if near else "pip install the package that has it",
        )
