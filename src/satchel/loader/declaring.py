"""The remote servers that enabled plugins declare and users write down."""

from collections.abc import Iterable
from dataclasses import replace

from satchel.catalog import PluginEntry, Supply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import DefinitionError
from satchel.loader.wanted import Wanted
from satchel.remote import Declared
from satchel.remote.declared import of_plugin, of_user
from satchel.sources import Choices
from satchel.sources.state import data_folder, environment, without_links
from satchel.text import one_line, shorten

_NOT_STARTED = "mcp-not-started"


def with_servers(supply: Supply, wanted: Wanted) -> Supply:
    """Return a plugin that does not say that its servers are not started, if they are."""
    if not supply.servers or not wanted.reaches_servers:
        return supply
    told = tuple(item for item in supply.diagnostics if item.code != _NOT_STARTED)
    return supply if told == supply.diagnostics else replace(supply, diagnostics=told)


def declared_servers(
    choices: Choices, plugins: Iterable[PluginEntry]
) -> tuple[tuple[Declared, ...], tuple[Diagnostic, ...]]:
    """Return the servers that are wanted, and what is wrong with others; none is reached."""
    around = environment()
    found: list[Declared] = []
    problems: list[Diagnostic] = []
    for name, (path, table) in choices.servers.items():
        try:
            found.append(of_user(name, table, path, around))
        except DefinitionError as problem:
            problems.append(_invalid(name, path, problem))
    for plugin in plugins:
        for server in plugin.supply.servers if plugin.is_served else ():
            root, data = without_links(plugin.path), data_folder(plugin.name)
            try:
                found.append(of_plugin(plugin, server, root, data, around))
            except DefinitionError as problem:
                problems.append(_invalid(server.name, plugin.path, problem))
    is_off = (choices.disabled("plugin", f"mcp:{item.name}") is not None for item in found)
    kept = tuple(item for item, off in zip(found, is_off, strict=True) if not off)
    return kept, tuple(problems)


def _invalid(name: str, path: str, problem: DefinitionError) -> Diagnostic:
    return report(
        "mcp-server-invalid",
        Where(path),
        f"server {shorten(one_line(name), 100)!r} is left out: {problem.message}",
        problem.fix or "mend or remove it",
    )
