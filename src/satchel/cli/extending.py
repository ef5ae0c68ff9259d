"""Commands that enabled plugins add to the command line."""

from collections.abc import Mapping

import click

from satchel.catalog import Supply
from satchel.cli.command import Sources
from satchel.plugins.problems import without_secrets
from satchel.sources.config import read_configuration
from satchel.sources.guard import described


def fault_of(plugin: Supply, fault: Exception) -> str:
    """Return what a command of a plugin raised, without the values of its configuration."""
    values = read_configuration(plugin.name, {}, fields=plugin.config).values
    return without_secrets(described(fault), values)


def plugin_commands() -> Mapping[str, tuple[tuple[Supply, click.Command], ...]]:
    """Return the commands of the plugins that the user enabled, by name, each with its plugin.

    Their code is imported, as for any other use.
    """
    everything = Sources((), (), (), project=False, claude=False)
    found: dict[str, tuple[tuple[Supply, click.Command], ...]] = {}
    for plugin in everything.open(run_code=True).catalog.plugins.values():
        for command in plugin.supply.commands:
            found[command.name] = (*found.get(command.name, ()), (plugin.supply, command))
    return found
