"""What one look found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from satchel.catalog import PluginContribution
from satchel.loader.loader_config import Unit
from satchel.mcp_servers import DeclaredServer, ServerContribution
from satchel.plugins import (
    BoundPlugin,
)
from satchel.sources import (
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
    """A plugin whose code is being imported while everything else goes on."""

    digest: str
    work: GuardedWork[PluginContribution]

    def ended_with(self, digest: str) -> bool:
        """Wait for the end, and tell whether it was of this content."""
        return self.work.is_done_within(None) and self.digest == digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCache:
    """What one look found, so that the next has less to do."""

    plugins: Mapping[SearchRoot, PluginScan] = field(default_factory=dict)
    skills: Mapping[SearchRoot, SkillScan] = field(default_factory=dict)
    distributions: DistributionScan = field(default_factory=lambda: DistributionScan({}))
    packages: Mapping[tuple[str, str], PackageFinding] = field(default_factory=dict)
    supplies: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    loading: Mapping[Unit, PendingImport] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    fitted: Mapping[Unit, BoundPlugin] = field(default_factory=dict)
    sound: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    """The newest good version of each plugin, before it was fitted."""
    config_files: tuple[StampedPath, ...] = ()
    """Configuration files that were looked for, with the stamps they had."""
    choices: Selection = field(default_factory=Selection)
    servers: Mapping[str, ServerContribution] = field(default_factory=dict)
    """The part of the catalog that each remote server brings, before it was fitted."""
    declared: tuple[DeclaredServer, ...] = ()
    """The remote servers that somebody wrote down."""
    read: Mapping[int, tuple[PluginFinding, PluginContribution]] = field(default_factory=dict)
    """What each plugin folder declares, by the identity of its finding."""
    frozen: frozenset[SearchRoot] = frozenset()
    """Places whose skills are those of the last look, because their plugin was rejected."""

    def watched(self) -> WatchTargets:
        """Return what a watch has to keep an eye on from now on."""
        scans: list[PluginScan | SkillScan] = [*self.plugins.values(), *self.skills.values()]
        edited = [package for package in self.packages.values() if self._uses(package)]
        roots = {scan.place.path for scan in scans}.union(*(item.roots for item in edited))
        return WatchTargets(
            roots=tuple(sorted(roots)),
            links=frozenset().union(*(item.links for item in (*scans, *edited))),
            installed=(
                *self.distributions.stamps,
                *self.config_files,
                *self.choices.stamps,
                *self._pins(),
                *(stamp for item in edited for stamp in item.stamps),
            ),
            awaited=self.distributions.awaited,
            unsettled=self.unsettled,
            unreadable=tuple(
                sorted(
                    {
                        item.where.path
                        for scan in scans
                        for item in scan.diagnostics
                        if item.code == "source-unreadable"
                    }
                )
            ),
        )

    def _pins(self) -> Iterable[StampedPath]:
        stamps = (made.offered.verdict.stamp for made in self.servers.values())
        return (stamp for stamp in stamps if stamp is not None)

    def _uses(self, package: PackageFinding) -> bool:
        installed = package.installed
        name = f"{installed.distribution}:{installed.name}"
        supply = self.supplies.get((Precedence.PLUGIN, installed.distribution, name))
        return supply is not None and not supply.disabled
