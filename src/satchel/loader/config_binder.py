"""Fitting every plugin to the host, also those of a last good version."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from satchel.catalog import Catalog, PluginContribution
from satchel.formats import ConfigField
from satchel.loader.loader_config import LoaderConfig, Unit, unit_of
from satchel.loader.scan_cache import ScanCache
from satchel.plugins import (
    BoundPlugin,
    bind_config,
)
from satchel.sources import (
    Configuration,
    Selection,
    Stamp,
    StampedPath,
    configuration_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigBinder:
    """Fits every plugin's tools to the host, also those of a last good version."""

    wanted: LoaderConfig
    before: ScanCache
    supplies: tuple[PluginContribution, ...]
    choices: Selection
    sound: dict[Unit, PluginContribution] = field(default_factory=dict)
    files: list[StampedPath] = field(default_factory=list)
    """The files that were looked for, with their stamps."""

    def all(self) -> tuple[dict[Unit, BoundPlugin], dict[Unit, PluginContribution]]:
        """Return each plugin fitted; and the last good versions of those that are broken now."""
        fitted: dict[Unit, BoundPlugin] = {}
        last_good: dict[Unit, PluginContribution] = {}
        for supply in self.supplies:
            unit = unit_of(supply)
            last = self._last_good(supply)
            fitted[unit] = self._fitted(last or supply)
            if last is not None:
                self.sound[unit] = last
            if last is not None and last is not supply:
                # What is served is configured anew, though it is not what stands on disk.
                last_good[unit] = fitted[unit].supply
                told = (*supply.diagnostics, *fitted[unit].problems)
                fitted[unit] = replace(fitted[unit], supply=replace(supply, diagnostics=told))
        return fitted, last_good

    def _last_good(self, supply: PluginContribution) -> PluginContribution | None:
        if supply.disabled or supply.withdrawn:
            return None
        is_good = supply.is_sound and not supply.unsettled
        return supply if is_good else self.before.sound.get(unit_of(supply))

    def _fitted(self, supply: PluginContribution) -> BoundPlugin:
        known = self.before.fitted.get(unit_of(supply))
        wanted = self.wanted
        return bind_config(
            self._without_off(supply), self._configured, wanted.models, known, wanted.contracts
        )

    def _without_off(self, supply: PluginContribution) -> PluginContribution:
        """Take the code from tools that the user switched off: they need no values."""
        if not self.choices.chooses:
            return supply
        off = {tool.name for tool in supply.tools if self._is_off(supply, tool.name)}
        if not off:
            return supply
        tools = (replace(t, tool=None) if t.name in off else t for t in supply.tools)
        return replace(supply, tools=tuple(tools))

    def _is_off(self, supply: PluginContribution, tool: str) -> bool:
        texts = (f"{supply.name}:{tool}", supply.name)
        return self.choices.disabled("tool", tool, texts) is not None

    def _configured(self, plugin: str, fields: tuple[ConfigField, ...]) -> Configuration:
        # Stamped first: what changes while it is read is read again.
        path = configuration_path(plugin, self.wanted.settings.config_folder)
        self.files.append((path, Stamp.at(path)))
        return self.wanted.configuration(plugin, fields, self.choices)


def rebind_config(previous: Catalog, last_good: Mapping[Unit, PluginContribution]) -> Catalog:
    """Return the last generation with its good versions as they are configured now."""
    if not last_good:
        return previous
    entries = (
        replace(entry, supply=last_good.get((entry.scope, entry.source, entry.unit), entry.supply))
        if entry.supply.is_sound
        else entry
        for entry in previous.all_plugins
    )
    return replace(previous, all_plugins=tuple(entries))
