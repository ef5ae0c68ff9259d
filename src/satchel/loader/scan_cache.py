"""The inputs of a pass, and the results that the next pass reuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import Status
from satchel.configuration.selection import Selection
from satchel.files.watch_targets import WatchTargets, all_targets
from satchel.lazy_dataclass import dataclass
from satchel.loader.loader_config import unit_of
from satchel.loader.pass_provider import ProviderAnswer, targets_of
from satchel.loader.trust_gate import TrustGate
from satchel.settings import Limits

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, PluginEntry
    from satchel.configuration.configuration import Configuration
    from satchel.importing.guarded_work import GuardedWork
    from satchel.loader.loader_config import LoaderConfig, ReconcileOptions, Unit
    from satchel.loader.pass_provider import PassProvider
    from satchel.mcp_servers.server_options import ServerConfig
    from satchel.plugins.bound_plugin import BoundPlugin
    from satchel.sources.folder_reader import FolderContent
    from satchel.sources.search_roots import SearchRoot
    from satchel.sources.skill_findings import SkillScan


@dataclass(frozen=True, slots=True)
class PendingImport:
    """An import that runs in the background."""

    digest: str
    work: GuardedWork[PluginContribution]

    def ended_with(self, digest: str) -> bool:
        """Wait until the import ends; return whether it imported the content with this digest."""
        return self.work.is_done_within(None) and self.digest == digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The contributions of all plugins, and the imports that have not ended."""

    contributions: Mapping[Unit, PluginContribution] = field(default_factory=dict)
    pending: Mapping[Unit, PendingImport] = field(default_factory=dict)

    @property
    def unfinished(self) -> tuple[PluginContribution, ...]:
        """The plugins that may have tools which they do not serve yet."""
        plugins = self.contributions.values()
        return tuple(it for it in plugins if it.state is Status.SETTLING and not it.is_untrusted)

    def __or__(self, other: Imported) -> Imported:
        return Imported(
            contributions={**self.contributions, **other.contributions},
            pending={**self.pending, **other.pending},
        )


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

    selection: Selection = field(default_factory=Selection)
    whole: Selection = field(default_factory=Selection)
    """The selection with what is not trusted."""
    gate: TrustGate = field(default_factory=TrustGate)
    answers: Mapping[PassProvider, ProviderAnswer] = field(default_factory=dict)
    """What each provider answered, before anything was decided about it."""
    imported: Imported = field(default_factory=Imported)
    bound: Bound = field(default_factory=Bound)
    plugins: tuple[PluginEntry, ...] = ()
    """The entries of all plugins, with that of the host."""
    skills: Mapping[SearchRoot, SkillScan] = field(default_factory=dict)
    declared: tuple[ServerConfig, ...] = ()
    """The MCP servers that users and plugins declare."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Where servers are declared that cannot be used so, by their names."""
    settling: frozenset[str] = frozenset()
    """Paths of units that may be half written or are still being imported."""

    def watch_targets(self) -> WatchTargets:
        """Return the folders and files to watch until the next pass."""
        stamps = (stamp for item in self.bound.plugins.values() for stamp in item.config_stamps)
        own = WatchTargets(
            installed=(*stamps, *self.selection.stamps, *self.gate.stamps), settling=self.settling
        )
        answers = (answer.watch for answer in self.answers.values())
        return all_targets((*answers, *map(targets_of, self.skills.values()), own))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassInputs:
    """The inputs of one pass; `cache` holds the results of the last one."""

    config: LoaderConfig
    options: ReconcileOptions
    cache: ScanCache
    selection: Selection = field(default_factory=Selection)
    gate: TrustGate = field(default_factory=TrustGate)
    roots: tuple[SearchRoot, ...] = ()
    """The search roots to read: of projects, only trusted ones."""
    previous: Catalog = field(default_factory=Catalog)

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

    def last_answer(self, provider: PassProvider) -> ProviderAnswer:
        """Return what a provider answered in the last pass."""
        return self.cache.answers.get(provider, ProviderAnswer())

    def last_good(self, contribution: PluginContribution) -> PluginContribution | None:
        """Return the last good version of a plugin from the last pass."""
        return self.cache.bound.last_good.get(unit_of(contribution))

    @property
    def settle(self) -> float:
        """For how many seconds a unit that broke or is gone keeps its last state."""
        return self.config.settings.pace.settle if self.options.debounce else 0.0

    def may_be_half_written(self, folder: FolderContent) -> bool:
        """Return whether a folder changed so recently that its files may be incomplete."""
        return folder.is_younger_than(self.settle)
