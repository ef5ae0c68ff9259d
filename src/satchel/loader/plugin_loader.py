"""Loading the plugins that a look found, or what the last look made of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from satchel.catalog import Catalog, PluginContribution, PluginEntry, RankedSkill
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.loader.loader_config import LoaderConfig, ReconcileOptions, Unit, unit_of
from satchel.loader.scan_cache import PendingImport, ScanCache
from satchel.mcp_servers import (
    ServerContribution,
    ServerSkills,
    collect_server_skills,
    server_contributions,
)
from satchel.plugins import (
    BoundPlugin,
    fingerprint,
    is_isolated,
    load_folder,
    load_package,
    read_folder,
    read_package,
    started,
)
from satchel.settings import Limits
from satchel.sources import (
    Configuration,
    DistributionFinding,
    GuardedWork,
    PackageFinding,
    PluginFinding,
    PluginScan,
    Precedence,
    SearchRoot,
    Selection,
    SkillScan,
    normalized,
)
from satchel.workers import load_worker, with_health

_LAST = 1_000_000_000
"""The rank of servers: after all folders and packages, however many come later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLoader:
    """What the steps of one look share."""

    wanted: LoaderConfig
    before: ScanCache
    asked: ReconcileOptions
    something_installed: bool
    choices: Selection
    loading: dict[Unit, PendingImport] = field(default_factory=dict)
    taken: dict[str, Precedence] = field(default_factory=dict)
    """The names of the folders that are served, with their scopes."""
    read: dict[int, tuple[PluginFinding, PluginContribution]] = field(default_factory=dict)
    """What each folder declares, by the identity of its finding."""

    def folders(self, scans: Iterable[PluginScan]) -> Iterable[PluginContribution]:
        """Load the plugin folders; of two of one name only the first sound one is imported."""
        read = [
            (self._read(found, (order, found.key)), found)
            for order, scan in enumerate(scans)
            for found in scan.findings.values()
        ]
        limits = self.wanted.settings.limits
        for supply, found in sorted(read, key=lambda pair: (pair[0].scope, pair[0].rank)):
            texts = (f"{supply.source}:{supply.name}", supply.source)
            if (off := self.choices.disabled("plugin", supply.name, texts)) is not None:
                yield _switched_off(supply, off)
            elif self._may_be_half_read(supply, found):
                yield replace(supply, unsettled=True)
            elif not self.wanted.run_code or supply.failed or supply.name in self.taken:
                yield supply
            else:
                load = partial(self._folder, supply, found, limits)
                last_good = self.before.sound.get(unit_of(supply))
                loaded = with_health(self._loaded(supply, load), last_good)
                if not loaded.failed:
                    self.taken.setdefault(loaded.name, loaded.scope)
                yield loaded

    def _read(self, found: PluginFinding, rank: tuple[object, ...]) -> PluginContribution:
        """Return what a folder declares; one that did not change is the same finding."""
        known = self.before.read.get(id(found))
        supply = known[1] if known else read_folder(found, rank)
        self.read[id(found)] = (found, supply)
        return _ranked(supply, rank)

    def _folder(
        self, supply: PluginContribution, found: PluginFinding, limits: Limits
    ) -> PluginContribution:
        """Import a plugin folder, or start the process that it asks for."""
        workers = self.wanted.workers
        if is_isolated(found) and workers is not None and found.sources and not supply.flawed:
            return load_worker(supply, found, self._configuration, workers)
        return load_folder(found, supply.rank, limits, alone=not self.asked.aside)

    def _package(
        self, supply: PluginContribution, found: PackageFinding, limits: Limits
    ) -> PluginContribution:
        """Import what an installed plugin needs, or start the process that it asks for."""
        workers = self.wanted.workers
        if is_isolated(found.part) and workers is not None and not supply.failed:
            return load_worker(supply, found, self._configuration, workers)
        return load_package(found, supply.rank, limits, alone=not self.asked.aside)

    def packages(self, packages: Iterable[PackageFinding]) -> Iterable[PluginContribution]:
        """Load the installed plugins that somebody asked for; list the others."""
        packages = tuple(packages)
        findings = [package.installed for package in packages]
        for package in packages:
            found = package.installed
            rank = (len(self.wanted.places), found.name, found.distribution)
            supply = read_package(package, rank)
            # Only what somebody asked for competes: a stranger's package cannot switch one off.
            rivals = [o for o in findings if o.name == found.name and self.enables(o)]
            off = self.choices.disabled("plugin", found.name, _names_of(found))
            if off is not None:
                yield _switched_off(supply, off)
            elif not self.enables(found):
                is_unique = [other.name for other in findings].count(found.name) == 1
                told = _not_enabled(found, found.name if is_unique else found.distribution)
                yield _switched_off(supply, told)
            elif len(rivals) > 1:
                told = _contested(found, rivals)
                yield replace(supply, failed=True, withdrawn=True, diagnostics=(told,))
            elif package.part and self._may_be_half_read(supply, package.part):
                yield replace(supply, unsettled=True)
            elif not self.wanted.run_code or self._is_shadowed(supply):
                yield supply
            else:
                load = partial(self._package, supply, package, self.wanted.settings.limits)
                last_good = self.before.sound.get(unit_of(supply))
                yield with_health(self._loaded(supply, load), last_good)

    def servers(self, fitted: Iterable[BoundPlugin]) -> dict[str, ServerContribution]:
        """Return what the remote servers bring; a tool of anybody else keeps its name."""
        taken = {tool.name for item in fitted for tool in item.supply.tools}
        return server_contributions(self.wanted.servers, taken, self.before.servers, _LAST)

    def carried(self, servers: Mapping[str, ServerContribution]) -> tuple[PluginContribution, ...]:
        """Return what of that the user did not switch off."""
        off = (self.choices.disabled("plugin", made.supply.name) for made in servers.values())
        return tuple(
            _switched_off(made.supply, reason) if reason else made.supply
            for made, reason in zip(servers.values(), off, strict=True)
        )

    def remote_skills(
        self,
        ranked: Iterable[RankedSkill],
        plugins: Iterable[PluginEntry],
        previous: Catalog,
    ) -> ServerSkills:
        """Return the skills of the remote servers that are served; all others keep their names."""
        found = [item.finding for item in ranked]
        taken = {item.manifest.name if item.manifest else item.folder_name for item in found}
        # What is broken now may be served as it was, under another name than its folder's.
        broken = {item.path for item in found if item.manifest is None}
        taken |= {entry.name for entry in previous.all_skills if entry.path in broken}
        served = {entry.name for entry in plugins if entry.is_served}
        carried = (item for item in self.wanted.servers if item.source in served)
        return collect_server_skills(carried, taken)

    def _is_shadowed(self, supply: PluginContribution) -> bool:
        return supply.name in self.taken and self.taken[supply.name] < supply.scope

    def enables(self, found: DistributionFinding) -> bool:
        """Tell whether an installed plugin is to be used: the user's choice counts first."""
        verdict = self.choices.verdict("plugin", (found.name, *_names_of(found)))
        return verdict.is_on if verdict else self.wanted.enables(found)

    def ranked(self, scans: Mapping[SearchRoot, SkillScan]) -> Iterable[RankedSkill]:
        """Give each skill its rank, and spare those that may be half written."""
        for order, scan in enumerate(scans.values()):
            for found in scan.findings.values():
                unsettled = (
                    self.asked.patient
                    and found.manifest is None
                    and self._may_be_half_written(found.folder)
                )
                yield RankedSkill(found, (order, found.key), unsettled)

    def _may_be_half_read(self, supply: PluginContribution, found: PluginFinding) -> bool:
        is_broken = supply.failed or supply.flawed
        return self.asked.patient and is_broken and self._may_be_half_written(found.folder)

    def _may_be_half_written(self, folder: Any) -> bool:
        return bool(folder.is_younger_than(self.wanted.settings.pace.settle))

    def _loaded(
        self, supply: PluginContribution, load: Callable[[], PluginContribution]
    ) -> PluginContribution:
        """Import a plugin; one that takes long is left aside, if it may be."""
        if (known := self._known(supply)) is not None:
            return known
        loading, wait = self.before.loading.get(unit_of(supply)), 0.0
        if not self.asked.aside:
            # Whoever began it may have stopped watching; twice it must not start.
            if loading is not None and loading.ended_with(supply.digest):
                return loading.work.result()
            return self._started(load)
        # A folder that was edited meanwhile begins anew at once; the modules of a package have
        # public names, so there one import has to end before the next begins.
        is_folder = supply.scope is not Precedence.PLUGIN
        if loading is None or (is_folder and loading.digest != supply.digest):
            loading = PendingImport(supply.digest, GuardedWork(partial(self._started, load)))
            wait = self.wanted.settings.pace.settle
        if not loading.work.is_done_within(wait):
            self.loading[unit_of(supply)] = loading
        elif loading.digest == supply.digest:
            return loading.work.result()
        return replace(supply, unsettled=True)

    def _started(self, load: Callable[[], PluginContribution]) -> PluginContribution:
        """Import a plugin and run its startup with the values that it is configured with."""
        supply = load()
        if supply.life is None:
            return supply
        return started(supply, self._configuration(supply), alone=not self.asked.aside)

    def _configuration(self, supply: PluginContribution) -> Configuration:
        return self.wanted.configuration(supply.name, supply.config, self.choices)

    def _known(self, supply: PluginContribution) -> PluginContribution | None:
        """Return what the last look made of the same content: broken code is not tried twice."""
        known = self.before.supplies.get(unit_of(supply))
        if known is None or known.digest != supply.digest or known.disabled or known.unsettled:
            return None
        may_heal = self.something_installed and _lacks_a_module(known)
        if not known.is_sound and (self.asked.retry or may_heal):
            return None
        if known.started_with and known.started_with != fingerprint(
            self._configuration(known).values
        ):
            return None  # What it opened, or could not open, was opened with other values.
        if known.withdrawn and not known.started_with:
            return None  # It was contested, and not imported for that.
        if not known.failed and known.code is None and known.tools:
            return None  # It was shadowed, so it was only read.
        return _ranked(known, supply.rank)


def _ranked(supply: PluginContribution, rank: tuple[object, ...]) -> PluginContribution:
    return supply if supply.rank == rank else replace(supply, rank=rank)


def _lacks_a_module(supply: PluginContribution) -> bool:
    """Tell whether an installation may be what a broken plugin waits for."""
    return any(
        item.code == "plugin-import-failed"
        and item.message.startswith(("ModuleNotFoundError", "ImportError"))
        for item in supply.diagnostics
    )


def _names_of(found: DistributionFinding) -> tuple[str, ...]:
    """Return what an installed plugin answers to beside its name."""
    owner = found.distribution
    return (f"{owner}:{found.name}", owner, normalized(owner))


def _switched_off(supply: PluginContribution, off: Diagnostic) -> PluginContribution:
    """Disable a plugin that nobody wants; what is wrong with it troubles nobody then."""
    return replace(supply, disabled=True, failed=False, diagnostics=(off,))


def _not_enabled(found: DistributionFinding, enabled_by: str) -> Diagnostic:
    return make_diagnostic(
        "plugin-not-enabled",
        Where(found.path),
        f"plugin {found.name!r} of {found.distribution} {found.version} is available, not enabled",
        f"--entry-points {enabled_by}",
    )


def _contested(found: DistributionFinding, rivals: Iterable[DistributionFinding]) -> Diagnostic:
    owners = " and ".join(sorted(other.distribution for other in rivals))
    return make_diagnostic(
        "plugin-contested",
        Where(found.path),
        f"plugin {found.name!r} is offered by {owners}; neither is used",
        "uninstall one of them",
    )
