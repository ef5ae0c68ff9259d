"""Commands that enabled plugins add to the command line."""

from collections.abc import Mapping

import click

from satchel.catalog.catalog_entries import PluginContribution
from satchel.cli.base_command import Sources
from satchel.cli.console import complain
from satchel.cli.rendering import diagnostic_line
from satchel.configuration.configuration import read_configuration
from satchel.importing.code_guard import describe_error
from satchel.plugins.plugin_diagnostics import without_secrets


def error_text(plugin: PluginContribution, problem: Exception) -> str:
    """Describe an exception of a plugin's command, without the values of its configuration."""
    values = read_configuration(plugin.name, {}, fields=plugin.config).values
    return without_secrets(describe_error(problem), values)


def plugin_commands() -> Mapping[str, tuple[tuple[PluginContribution, click.Command], ...]]:
    """Import the enabled plugins, and return their commands by name, each with its plugin."""
    commands: dict[str, tuple[tuple[PluginContribution, click.Command], ...]] = {}
    catalog = Sources().open(run_code=True, is_quiet=True).catalog
    for item in catalog.diagnostics:
        if item.code == "choices-unreadable":  # why commands may be missing
            complain(diagnostic_line(item))
    for plugin in catalog.plugins.values():
        for command in plugin.contribution.commands:
            commands[command.name] = (
                *commands.get(command.name, ()),
                (plugin.contribution, command),
            )
    return commands
