"""Bind the configuration to every plugin, including last good versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import Status
from satchel.loader.group_bounds import with_bounded_texts
from satchel.loader.loader_config import unit_of
from satchel.loader.scan_cache import Bound
from satchel.plugins.bound_plugin import BoundPlugin, needs_no_binding

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.configuration.selection import Selection
    from satchel.loader.loader_config import Unit
    from satchel.loader.scan_cache import PassInputs


def bind(inputs: PassInputs, contributions: Iterable[PluginContribution]) -> Bound:
    """Bind the configuration, and record the last good version of each plugin."""
    plugins: dict[Unit, BoundPlugin] = {}
    last_good: dict[Unit, PluginContribution] = {}
    served_instead: dict[Unit, PluginContribution] = {}
    for unbound in contributions:
        contribution = with_bounded_texts(unbound, inputs.limits)
        unit, last = unit_of(contribution), _last_good(inputs, contribution)
        plugins[unit] = _bind(inputs, last or contribution)
        if last is not None:
            last_good[unit] = last
        if last is not None and last is not contribution:
            # The last good version gets the current configuration, too.
            served_instead[unit] = plugins[unit].contribution
            diagnostics = (*contribution.diagnostics, *plugins[unit].diagnostics)
            broken = replace(contribution, diagnostics=diagnostics)
            plugins[unit] = replace(plugins[unit], contribution=broken)
    return Bound(plugins=plugins, last_good=last_good, served_instead=served_instead)


def _last_good(inputs: PassInputs, contribution: PluginContribution) -> PluginContribution | None:
    if contribution.state is Status.OK:
        return contribution
    return inputs.last_good(contribution) if contribution.state.falls_back else None


def _bind(inputs: PassInputs, contribution: PluginContribution) -> BoundPlugin:
    if needs_no_binding(contribution):
        return BoundPlugin(contribution=contribution)
    from satchel.plugins.config_binding import (
        bind_config,  # lazy: needed only with tools or configuration
    )

    return bind_config(
        _without_disabled_tools(contribution, inputs.selection),
        lambda plugin, fields: inputs.config.configuration(plugin, fields, inputs.selection),
        inputs.config.models,
        inputs.cache.bound.plugins.get(unit_of(contribution)),
        inputs.config.contracts,
    )


def _without_disabled_tools(
    contribution: PluginContribution, selection: Selection
) -> PluginContribution:
    """Remove the code of tools that the user disabled: they need no values."""
    if not selection.chooses:
        return contribution
    disabled = {
        tool.name
        for tool in contribution.tools
        if not selection.allows_tool(contribution.name, tool.name)
    }
    if not disabled:
        return contribution
    tools = (
        replace(tool, tool=None, needs=()) if tool.name in disabled else tool
        for tool in contribution.tools
    )
    return replace(contribution, tools=tuple(tools))
