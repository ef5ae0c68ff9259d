"""Binding the configuration to every plugin, also to those of a last good version."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.catalog import Catalog, PluginContribution, Status
from satchel.loader.loader_config import Unit, unit_of
from satchel.loader.scan_cache import Bound, Pass
from satchel.plugins import BoundPlugin, bind_config
from satchel.sources import Selection


def bind(given: Pass, supplies: Iterable[PluginContribution]) -> Bound:
    """Return each plugin with its configuration, and the last good version of each."""
    fitted: dict[Unit, BoundPlugin] = {}
    last_good: dict[Unit, PluginContribution] = {}
    served_instead: dict[Unit, PluginContribution] = {}
    for supply in supplies:
        unit, last = unit_of(supply), _last_good(given, supply)
        fitted[unit] = _bind(given, last or supply)
        if last is not None:
            last_good[unit] = last
        if last is not None and last is not supply:
            # What is served gets the configuration of now, though it is not what is on disk.
            served_instead[unit] = fitted[unit].supply
            diagnostics = (*supply.diagnostics, *fitted[unit].problems)
            broken = replace(supply, diagnostics=diagnostics)
            fitted[unit] = replace(fitted[unit], supply=broken)
    return Bound(fitted=fitted, last_good=last_good, served_instead=served_instead)


def with_last_good(previous: Catalog, served_instead: Mapping[Unit, PluginContribution]) -> Catalog:
    """Return the last generation with its good versions as they are configured now."""
    if not served_instead:
        return previous
    plugins = []
    for entry in previous.all_plugins:
        supply = served_instead.get((entry.scope, entry.source, entry.unit))
        is_good = supply is not None and entry.supply.state is Status.OK
        plugins.append(replace(entry, supply=supply) if is_good and supply else entry)
    return replace(previous, all_plugins=tuple(plugins))


def _last_good(given: Pass, supply: PluginContribution) -> PluginContribution | None:
    if supply.state is Status.OK:
        return supply
    return given.last_good(supply) if supply.state.falls_back else None


def _bind(given: Pass, supply: PluginContribution) -> BoundPlugin:
    return bind_config(
        _without_disabled_tools(supply, given.choices),
        lambda plugin, fields: given.wanted.configuration(plugin, fields, given.choices),
        given.wanted.models,
        given.before.bound.fitted.get(unit_of(supply)),
        given.wanted.contracts,
    )


def _without_disabled_tools(supply: PluginContribution, choices: Selection) -> PluginContribution:
    """Take the code from the tools that the user disabled: they need no values."""
    if not choices.chooses:
        return supply
    disabled = {
        tool.name
        for tool in supply.tools
        if choices.disabled("tool", tool.name, (f"{supply.name}:{tool.name}", supply.name))
    }
    if not disabled:
        return supply
    tools = (replace(tool, tool=None) if tool.name in disabled else tool for tool in supply.tools)
    return replace(supply, tools=tuple(tools))
