"""What one look found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from satchel.catalog import Supply
from satchel.loader.wanted import Unit
from satchel.plugins import (
    Fitted,
)
from satchel.remote import Declared, Made
from satchel.sources import (
    Background,
    Choices,
    DistributionScan,
    PackageFinding,
    Place,
    PluginFinding,
    PluginScan,
    Scope,
    SkillScan,
    Watched,
)


@dataclass(frozen=True, slots=True)
class Loading:
    """A plugin whose code is being imported while everything else goes on."""

    digest: str
    work: Background[Supply]

    def ended_with(self, digest: str) -> bool:
        """Wait for the end, and tell whether it was of this content."""
        return self.work.is_done_within(None) and self.digest == digest


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found, so that the next has less to do."""

    plugins: Mapping[Place, PluginScan] = field(default_factory=dict)
    skills: Mapping[Place, SkillScan] = field(default_factory=dict)
    distributions: DistributionScan = field(default_factory=lambda: DistributionScan({}))
    packages: Mapping[tuple[str, str], PackageFinding] = field(default_factory=dict)
    supplies: Mapping[Unit, Supply] = field(default_factory=dict)
    loading: Mapping[Unit, Loading] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    fitted: Mapping[Unit, Fitted] = field(default_factory=dict)
    sound: Mapping[Unit, Supply] = field(default_factory=dict)
    """The newest good version of each plugin, before it was fitted."""
    config_files: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    """Configuration files that were looked for, with the stamps they had."""
    choices: Choices = field(default_factory=Choices)
    servers: Mapping[str, Made] = field(default_factory=dict)
    """The part of the catalog that each remote server brings, before it was fitted."""
    declared: tuple[Declared, ...] = ()
    """The remote servers that somebody wrote down."""
    read: Mapping[int, tuple[PluginFinding, Supply]] = field(default_factory=dict)
    """What each plugin folder declares, by the identity of its finding."""
    frozen: frozenset[Place] = frozenset()
    """Places whose skills are those of the last look, because their plugin was rejected."""

    def watched(self) -> Watched:
        """Return what a watch has to keep an eye on from now on."""
        scans: list[PluginScan | SkillScan] = [*self.plugins.values(), *self.skills.values()]
        edited = [package for package in self.packages.values() if self._uses(package)]
        roots = {scan.place.path for scan in scans}.union(*(item.roots for item in edited))
        return Watched(
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

    def _pins(self) -> Iterable[tuple[str, tuple[int, int, int]]]:
        stamps = (made.offered.verdict.stamp for made in self.servers.values())
        return (stamp for stamp in stamps if stamp is not None)

    def _uses(self, package: PackageFinding) -> bool:
        installed = package.installed
        name = f"{installed.distribution}:{installed.name}"
        supply = self.supplies.get((Scope.PLUGIN, installed.distribution, name))
        return supply is not None and not supply.disabled
