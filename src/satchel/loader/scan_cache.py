"""What one pass over the sources found; the next one reuses it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from satchel.catalog import PluginContribution, Status
from satchel.loader.loader_config import LoaderConfig, ReconcileOptions, Unit
from satchel.mcp_servers import DeclaredServer, ServerContribution
from satchel.plugins import BoundPlugin
from satchel.sources import (
    Configuration,
    DistributionScan,
    GuardedWork,
    PackageFinding,
    PluginFinding,
    PluginScan,
    Precedence,
    SearchRoot,
    Selection,
    SkillScan,
    StampedPath,
    WatchTargets,
)


@dataclass(frozen=True, slots=True)
class PendingImport:
    """A plugin whose code is imported in the background."""

    digest: str
    work: GuardedWork[PluginContribution]

    def ended_with(self, digest: str) -> bool:
        """Wait for the end, and tell whether it was of this content."""
        return self.work.is_done_within(None) and self.digest == digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is on disk: plugin folders, installed packages, and the user's choices."""

    folders: Mapping[SearchRoot, PluginScan] = field(default_factory=dict)
    distributions: DistributionScan = field(default_factory=lambda: DistributionScan({}))
    packages: Mapping[tuple[str, str], PackageFinding] = field(default_factory=dict)
    choices: Selection = field(default_factory=Selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What the plugins contribute, with the imports that have not ended."""

    supplies: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    loading: Mapping[Unit, PendingImport] = field(default_factory=dict)
    read: Mapping[int, tuple[PluginFinding, PluginContribution]] = field(default_factory=dict)
    """What each plugin folder declares, by the identity of its finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The contributions with their configuration."""

    fitted: Mapping[Unit, BoundPlugin] = field(default_factory=dict)
    last_good: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    """The newest good version of each plugin, without its configuration."""
    served_instead: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    """Those of them that are served in place of a broken version, with their configuration."""

    def joined(self, other: "Bound") -> "Bound":
        """Return these contributions and those of another."""
        return Bound(
            fitted={**self.fitted, **other.fitted},
            last_good={**self.last_good, **other.last_good},
            served_instead={**self.served_instead, **other.served_instead},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCache:
    """The results of one pass, reused by the next."""

    scan: Scan = field(default_factory=Scan)
    imported: Imported = field(default_factory=Imported)
    bound: Bound = field(default_factory=Bound)
    skills: Mapping[SearchRoot, SkillScan] = field(default_factory=dict)
    servers: Mapping[str, ServerContribution] = field(default_factory=dict)
    """What each remote server contributes, before it was bound."""
    declared: tuple[DeclaredServer, ...] = ()
    """The remote servers that users and plugins configured."""
    rejected: frozenset[SearchRoot] = frozenset()
    """Places whose skills are those of an earlier pass, because their plugin was rejected."""
    settling: frozenset[str] = frozenset()
    """The paths of what may be half written or is still being imported."""

    def watched(self) -> WatchTargets:
        """Return what a watch has to observe until the next pass."""
        scans: list[PluginScan | SkillScan] = [*self.scan.folders.values(), *self.skills.values()]
        edited = [package for package in self.scan.packages.values() if self._uses(package)]
        roots = {scan.place.path for scan in scans}.union(*(item.roots for item in edited))
        unreadable = {
            item.where.path
            for scan in scans
            for item in scan.diagnostics
            if item.code == "source-unreadable"
        }
        return WatchTargets(
            roots=tuple(sorted(roots)),
            links=frozenset().union(*(item.links for item in (*scans, *edited))),
            installed=(
                *self.scan.distributions.stamps,
                *(stamp for item in self.bound.fitted.values() for stamp in item.config_stamps),
                *self.scan.choices.stamps,
                *self._pins(),
                *(stamp for item in edited for stamp in item.stamps),
            ),
            awaited=self.scan.distributions.awaited,
            unsettled=self.settling,
            unreadable=tuple(sorted(unreadable)),
        )

    def _pins(self) -> Iterable[StampedPath]:
        stamps = (made.offered.verdict.stamp for made in self.servers.values())
        return (stamp for stamp in stamps if stamp is not None)

    def _uses(self, package: PackageFinding) -> bool:
        installed = package.installed
        name = f"{installed.distribution}:{installed.name}"
        supply = self.imported.supplies.get((Precedence.PLUGIN, installed.distribution, name))
        return supply is not None and supply.state is not Status.DISABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The input of one pass: what is wanted, how, and the results of the last one."""

    wanted: LoaderConfig
    asked: ReconcileOptions
    before: ScanCache
    choices: Selection = field(default_factory=Selection)

    def configuration(self, supply: PluginContribution) -> Configuration:
        """Return the configuration of a plugin."""
        return self.wanted.configuration(supply.name, supply.config, self.choices)

    def last_good(self, supply: PluginContribution) -> PluginContribution | None:
        """Return the last good version of a plugin from the pass before."""
        units = self.before.bound.last_good
        return units.get((supply.scope, supply.source, supply.unit))

    def may_be_half_written(self, folder: Any) -> bool:
        """Tell whether a broken folder is so young that its files may still be written."""
        pace = self.wanted.settings.pace
        return self.asked.patient and bool(folder.is_younger_than(pace.settle))
