"""What to load, and the options of one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from satchel.configuration.configuration import read_configuration
from satchel.configuration.projects import Project
from satchel.configuration.selection import project_selection_path, selection_path
from satchel.configuration.selection_reader import read_selection
from satchel.importing.distributions import normalized
from satchel.lazy_dataclass import dataclass
from satchel.sources.search_roots import Precedence

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, PluginEntry
    from satchel.configuration.configuration import Configuration
    from satchel.configuration.selection import Selection
    from satchel.diagnostics import Diagnostic
    from satchel.formats.config_fields import ConfigField
    from satchel.importing.distributions import DistributionFinding
    from satchel.loader.lock_guard import LockGuard
    from satchel.mcp_servers.server_contributions import ServerOffer
    from satchel.plugins.bound_plugin import HostContract
    from satchel.providers.provided import Provided
    from satchel.settings import Settings
    from satchel.sources.search_roots import SearchRoot
    from satchel.sources.skill_findings import SkillFinding
    from satchel.trust.name_owners import NameOwners
    from satchel.workers.worker_processes import WorkerPool

ALL = "all"
"""The entry point name that enables every installed plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """What the application wants loaded."""

    roots: tuple[SearchRoot, ...]
    entry_points: frozenset[str]
    """Names of entry points or distributions, or `all`."""
    host: PluginContribution
    run_code: bool
    settings: Settings
    plugin_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Configured values by plugin; they may be secrets."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """Pydantic models of additional arguments, by the tool's address."""
    contracts: Mapping[str, HostContract] = field(default_factory=dict)
    """Contracts that the host registered, by the tool's name."""
    servers: tuple[ServerOffer, ...] = ()
    """The connected MCP servers with their current snapshots."""
    host_skills: tuple[SkillFinding, ...] = ()
    """The skills that the host gave in code."""
    provided: tuple[Provided, ...] = ()
    """What each provider contributes now."""
    workers: WorkerPool | None = None
    """The processes of isolated plugins."""
    lock: LockGuard | None = None
    """Compares everything with a lock file, if the application has one."""
    owners: NameOwners | None = None
    """Who served which name first."""
    project: Project | None = None
    """The project whose settings are read as well; how far they count is up to the user."""

    @property
    def projects(self) -> tuple[Project, ...]:
        """The project, and those that only some search roots belong to."""
        named = (self.project,) if self.project else ()
        folders = {
            root.within: None
            for root in self.roots
            if root.scope is Precedence.PROJECT and root.within
        }
        others = (folder for folder in folders if not named or folder != named[0].folder)
        return (*named, *map(Project, others))

    @property
    def all_roots(self) -> tuple[SearchRoot, ...]:
        """The folders to search: those of the host, then those that providers name."""
        return (*self.roots, *(root for item in self.provided for root in item.roots))

    @property
    def connects_servers(self) -> bool:
        """Whether MCP servers named by plugins and configuration files are connected."""
        return self.run_code and self.settings.mcp_servers

    def selection(self, before: Selection, *, debounce: bool) -> Selection:
        """Return what the user and the project enable and disable, as it is written."""
        settle = self.settings.pace.settle if debounce else 0.0
        user = selection_path(self.settings.config_folder)
        project = project_selection_path(self.project.folder) if self.project else ""
        return read_selection(user, project, before, settle)

    def configuration(
        self, plugin: str, fields: tuple[ConfigField, ...], selection: Selection
    ) -> Configuration:
        """Return the configuration of a plugin that declares these fields."""
        values, folder = self.plugin_values.get(plugin, {}), self.settings.config_folder
        return read_configuration(plugin, values, folder, fields, selection.layer(plugin))

    def enables(self, installed: DistributionFinding) -> bool:
        """Return whether `entry_points` names an installed plugin."""
        names = {ALL, installed.name, installed.distribution, normalized(installed.distribution)}
        return not names.isdisjoint(self.entry_points)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOptions:
    """The options of one pass."""

    dirty: frozenset[str] | None = None
    """Paths that may have changed; `None` for everything."""
    debounce: bool = False
    """Whether a young broken unit keeps its last state, because it may be half written."""
    in_background: bool = False
    """Whether slow imports continue in the background; a later pass takes their result."""
    retry: bool = False
    """Whether to try failed code again although it did not change."""
    retry_late: bool = False
    """Whether to try imports again that took too long."""
    wait_until: float | None = None
    """Until when slow imports are waited for, on the monotonic clock, if in the background."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the watch itself."""

    @property
    def waits_for_all(self) -> bool:
        """Whether the pass ends only when every import has ended."""
        return not self.in_background and self.wait_until is None

    @property
    def follows_files(self) -> bool:
        """Whether the pass follows files: a refresh of all or the watch, not news of a server."""
        return self.dirty is None or self.debounce


Unit = tuple[Precedence, str, str]
"""The identity of a plugin across passes: scope, source, unit."""


def unit_of(plugin: PluginContribution | PluginEntry) -> Unit:
    """Return the identity of a plugin."""
    return plugin.scope, plugin.source, plugin.unit
