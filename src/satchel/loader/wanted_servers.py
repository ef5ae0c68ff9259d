"""The remote servers that enabled plugins declare and users write down."""

from collections.abc import Iterable
from dataclasses import replace

from satchel.catalog import PluginContribution, PluginEntry
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.loader.loader_config import LoaderConfig
from satchel.mcp_servers import DeclaredServer
from satchel.mcp_servers.server_declarations import plugin_server, user_server
from satchel.sources import Selection
from satchel.sources.state_files import data_folder, environment, without_links
from satchel.text import one_line, shorten

_NOT_STARTED = "mcp-not-started"


def with_servers(supply: PluginContribution, wanted: LoaderConfig) -> PluginContribution:
    """Return a plugin that does not say that its servers are not started, if they are."""
    if not supply.servers or not wanted.reaches_servers:
        return supply
    told = tuple(item for item in supply.diagnostics if item.code != _NOT_STARTED)
    return supply if told == supply.diagnostics else replace(supply, diagnostics=told)


def declared_servers(
    choices: Selection, plugins: Iterable[PluginEntry]
) -> tuple[tuple[DeclaredServer, ...], tuple[Diagnostic, ...]]:
    """Return the servers that are wanted, and what is wrong with others; none is reached."""
    around = environment()
    found: list[DeclaredServer] = []
    problems: list[Diagnostic] = []
    for name, (path, table) in choices.servers.items():
        try:
            found.append(user_server(name, table, path, around))
        except DefinitionError as problem:
            problems.append(_invalid(name, path, problem))
    for plugin in plugins:
        for server in plugin.supply.servers if plugin.is_served else ():
            root, data = without_links(plugin.path), data_folder(plugin.name)
            try:
                found.append(plugin_server(plugin, server, root, data, around))
            except DefinitionError as problem:
                problems.append(_invalid(server.name, plugin.path, problem))
    is_off = (choices.disabled("plugin", f"mcp:{item.name}") is not None for item in found)
    kept = tuple(item for item, off in zip(found, is_off, strict=True) if not off)
    return kept, tuple(problems)


def _invalid(name: str, path: str, problem: DefinitionError) -> Diagnostic:
    return make_diagnostic(
        "mcp-server-invalid",
        Where(path),
        f"server {shorten(one_line(name), 100)!r} is left out: {problem.message}",
        problem.fix or "mend or remove it",
    )
