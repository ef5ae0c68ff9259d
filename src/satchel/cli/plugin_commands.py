"""Commands that enabled plugins add to the command line."""

from collections.abc import Mapping

import click

from satchel.catalog import PluginContribution
from satchel.cli.base_command import Sources
from satchel.plugins.plugin_diagnostics import without_secrets
from satchel.sources.code_guard import describe_error
from satchel.sources.configuration import read_configuration


def fault_of(plugin: PluginContribution, fault: Exception) -> str:
    """Return what a command of a plugin raised, without the values of its configuration."""
    values = read_configuration(plugin.name, {}, fields=plugin.config).values
    return without_secrets(describe_error(fault), values)


def plugin_commands() -> Mapping[str, tuple[tuple[PluginContribution, click.Command], ...]]:
    """Return the commands of the plugins that the user enabled, by name, each with its plugin.

    Their code is imported, as for any other use.
    """
    found: dict[str, tuple[tuple[PluginContribution, click.Command], ...]] = {}
    for plugin in Sources().open(run_code=True).catalog.plugins.values():
        for command in plugin.supply.commands:
            found[command.name] = (*found.get(command.name, ()), (plugin.supply, command))
    return found
