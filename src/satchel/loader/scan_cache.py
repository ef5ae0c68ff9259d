"""The inputs of a pass, and the results that the next pass reuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from satchel.catalog import Status
from satchel.lazy_dataclass import dataclass
from satchel.loader.loader_config import unit_of
from satchel.loader.trust_gate import TrustGate
from satchel.settings import Limits
from satchel.sources import (
    DistributionScan,
    Precedence,
    Selection,
)
from satchel.sources.file_reader import may_be_folder

if TYPE_CHECKING:
    from satchel.catalog import PluginContribution, PluginEntry
    from satchel.loader.loader_config import LoaderConfig, ReconcileOptions, Unit
    from satchel.mcp_servers import ServerConfig, ServerContribution
    from satchel.plugins import BoundPlugin
    from satchel.providers import Provided
    from satchel.sources import (
        Configuration,
        GuardedWork,
        PackageFinding,
        PluginFinding,
        PluginScan,
        SearchRoot,
        SkillFinding,
        SkillScan,
        StampedPath,
        WatchTargets,
    )
    from satchel.sources.code_units import CodeUnit


@dataclass(frozen=True, slots=True)
class PendingImport:
    """An import that runs in the background."""

    digest: str
    work: GuardedWork[PluginContribution]

    def ended_with(self, digest: str) -> bool:
        """Wait until the import ends; return whether it imported the content with this digest."""
        return self.work.is_done_within(None) and self.digest == digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Plugin folders and installed packages on disk, and the user's selection."""

    folders: Mapping[SearchRoot, PluginScan] = field(default_factory=dict)
    distributions: DistributionScan = field(default_factory=lambda: DistributionScan({}))
    packages: Mapping[tuple[str, str], PackageFinding] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    written: Selection = field(default_factory=Selection)
    """The selection as it is written, also what is not trusted."""
    gate: TrustGate = field(default_factory=TrustGate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The contributions of all plugins, and the imports that have not ended."""

    contributions: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    pending: Mapping[Unit, PendingImport] = field(default_factory=dict)
    manifests: Mapping[int, tuple[PluginFinding, PluginContribution]] = field(default_factory=dict)
    """The contribution that each folder's manifest declares, by the `id` of its finding."""
    units: Mapping[int, CodeUnit | None] = field(default_factory=dict)
    """The code of each plugin in a project, by the `id` of its finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The contributions with their configuration."""

    plugins: Mapping[Unit, BoundPlugin] = field(default_factory=dict)
    last_good: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    """The newest good version of each plugin, not bound."""
    served_instead: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    """Last good versions that are served in place of a broken one, bound."""

    def __or__(self, other: Bound) -> Bound:
        return Bound(
            plugins={**self.plugins, **other.plugins},
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
    """The contribution of each MCP server, not bound."""
    declared: tuple[ServerConfig, ...] = ()
    """The MCP servers that users and plugins declare."""
    rejected: frozenset[SearchRoot] = frozenset()
    """Roots that keep the skills of an earlier pass, because their plugin was rejected."""
    settling: frozenset[str] = frozenset()
    """Paths of units that may be half written or are still being imported."""
    plugins: tuple[PluginEntry, ...] = ()
    """The entries of all plugins, with that of the host."""
    host_skills: tuple[SkillFinding, ...] = ()
    provided: tuple[Provided, ...] = ()
    provider_files: tuple[StampedPath, ...] = ()
    """The paths that providers watch, with their stamps."""

    def watch_targets(self) -> WatchTargets:
        """Return the folders and files to watch until the next pass."""
        from satchel.sources import WatchTargets  # lazy: needed only by a watch

        scans: list[PluginScan | SkillScan] = [*self.scan.folders.values(), *self.skills.values()]
        packages = [package for package in self.scan.packages.values() if self.uses(package)]
        roots = {scan.place.path for scan in scans}.union(*(item.roots for item in packages))
        unreadable = {
            item.where.path
            for scan in scans
            for item in scan.diagnostics
            if item.code == "source-unreadable"
        }
        folders = {path for path, _ in self.provider_files if may_be_folder(path)}
        return WatchTargets(
            roots=tuple(sorted(roots | folders)),
            files=tuple(item for item in self.provider_files if item[0] not in folders),
            links=frozenset().union(*(item.links for item in (*scans, *packages))),
            installed=(
                *self.scan.distributions.stamps,
                *(stamp for item in self.bound.plugins.values() for stamp in item.config_stamps),
                *self.scan.selection.stamps,
                *self.scan.gate.stamps,
                *self._pin_file_stamps(),
                *(stamp for item in packages for stamp in item.stamps),
            ),
            awaited=self.scan.distributions.awaited,
            settling=self.settling,
            unreadable=tuple(sorted(unreadable)),
        )

    def _pin_file_stamps(self) -> Iterable[StampedPath]:
        stamps = (server.offered.verdict.stamp for server in self.servers.values())
        return (stamp for stamp in stamps if stamp is not None)

    def uses(self, package: PackageFinding) -> bool:
        """Return whether an installed plugin is enabled."""
        installed = package.installed
        name = f"{installed.distribution}:{installed.name}"
        contribution = self.imported.contributions.get(
            (Precedence.PLUGIN, installed.distribution, name)
        )
        return contribution is not None and contribution.state is not Status.DISABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class PassInputs:
    """The inputs of one pass; `cache` holds the results of the last one."""

    config: LoaderConfig
    options: ReconcileOptions
    cache: ScanCache
    selection: Selection = field(default_factory=Selection)
    written: Selection = field(default_factory=Selection)
    """The selection as it is written, also what is not trusted."""
    gate: TrustGate = field(default_factory=TrustGate)
    roots: tuple[SearchRoot, ...] = ()
    """The search roots to read: of projects, only trusted ones."""

    @property
    def limits(self) -> Limits:
        """The limits; those in `satchel.toml` count unless the host set its own."""
        limits, defaults = self.config.settings.limits, Limits()
        chosen = {
            name: value
            for name, value in self.selection.limits.items()
            if getattr(limits, name) == getattr(defaults, name)
        }
        return replace(limits, **chosen) if chosen else limits

    def configuration(self, contribution: PluginContribution) -> Configuration:
        """Return the configuration of a plugin."""
        return self.config.configuration(contribution.name, contribution.config, self.selection)

    def last_good(self, contribution: PluginContribution) -> PluginContribution | None:
        """Return the last good version of a plugin from the last pass."""
        return self.cache.bound.last_good.get(unit_of(contribution))

    def may_be_half_written(self, folder: Any) -> bool:
        """Return whether a folder changed so recently that its files may be incomplete."""
        pace = self.config.settings.pace
        return self.options.debounce and bool(folder.is_younger_than(pace.settle))
