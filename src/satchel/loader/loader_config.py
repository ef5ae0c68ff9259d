"""What is to be loaded, and how a look is to be taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from satchel.catalog import PluginContribution
from satchel.diagnostics import Diagnostic
from satchel.formats import ConfigField
from satchel.mcp_servers import ServerOffer
from satchel.plugins import HostContract
from satchel.settings import Settings
from satchel.sources import (
    Configuration,
    DistributionFinding,
    Precedence,
    SearchRoot,
    Selection,
    normalized,
    read_configuration,
    read_selection,
    selection_path,
)
from satchel.workers import WorkerPool

ALL = "all"
"""Asks for every installed plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """What is to be loaded."""

    places: tuple[SearchRoot, ...]
    entry_points: frozenset[str]
    """Names of entry points or distributions, or `all`."""
    host: PluginContribution
    run_code: bool
    settings: Settings
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Values for the state fields of plugins' tools, by plugin; they may be secrets."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """Pydantic models of further arguments, by the address of the tool."""
    contracts: Mapping[str, HostContract] = field(default_factory=dict)
    """What the host holds tools to, by the tools' names."""
    servers: tuple[ServerOffer, ...] = ()
    """The remote servers that are carried, with what they offer."""
    workers: WorkerPool | None = None
    """The processes of plugins that ask for one of their own."""
    project_choices: str = ""
    """The `satchel.toml` of a project that is trusted, `""` if there is none."""

    @property
    def reaches_servers(self) -> bool:
        """Tell whether remote servers that are written down are reached."""
        return self.run_code and self.settings.mcp_servers

    def choices(self, before: Selection, *, patient: bool) -> Selection:
        """Return what the user, and a trusted project, switched on and off."""
        patience = self.settings.pace.settle if patient else 0.0
        user = selection_path(self.settings.config_folder)
        return read_selection(user, self.project_choices, before, patience)

    def configuration(
        self, plugin: str, fields: tuple[ConfigField, ...], choices: Selection
    ) -> Configuration:
        """Return what a plugin that declares these fields is configured with."""
        given, folder = self.config.get(plugin, {}), self.settings.config_folder
        return read_configuration(plugin, given, folder, fields, choices.layer(plugin))

    def enables(self, found: DistributionFinding) -> bool:
        """Tell whether somebody asked for an installed plugin."""
        names = {ALL, found.name, found.distribution, normalized(found.distribution)}
        return not names.isdisjoint(self.entry_points)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOptions:
    """How a look is to be taken."""

    dirty: frozenset[str] | None = None
    """Paths that may have changed, `None` for everything."""
    patient: bool = False
    """Whether a unit that may be half written is left as it was for a moment."""
    aside: bool = False
    """Whether code that takes long to import is left to a watch, which takes it over later."""
    retry: bool = False
    """Whether code that failed is tried again although it did not change."""
    trouble: tuple[Diagnostic, ...] = ()
    """What is wrong with the watching itself."""


Unit = tuple[Precedence, str, str]
"""What makes a plugin the same one in every look: scope, source, unit."""


def unit_of(supply: PluginContribution) -> Unit:
    """Return what stays the same of a plugin from look to look."""
    return supply.scope, supply.source, supply.unit
