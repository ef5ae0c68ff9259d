"""Commands that enabled plugins add to the command line."""

from collections.abc import Mapping

import click

from satchel.cli.command import Sources


def plugin_commands() -> Mapping[str, tuple[tuple[str, click.Command], ...]]:
    """Return the commands of the plugins that the user enabled, by name, each with its plugin.

    Their code is imported, as for any other use.
    """
    everything = Sources((), (), (), project=False, claude=False)
    found: dict[str, tuple[tuple[str, click.Command], ...]] = {}
    for plugin in everything.open(run_code=True).catalog.plugins.values():
        for command in plugin.supply.commands:
            found[command.name] = (*found.get(command.name, ()), (plugin.name, command))
    return found
