"""The MCP servers that enabled plugins and users declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Where, left_out_server, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.state_files import data_folder, without_links
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, PluginEntry
    from satchel.configuration.selection import Selection
    from satchel.diagnostics import Diagnostic
    from satchel.loader.loader_config import LoaderConfig
    from satchel.loader.scan_cache import PassInputs
    from satchel.loader.trust_gate import TrustGate
    from satchel.mcp_servers.server_options import ServerConfig

_NOT_STARTED = "mcp-not-started"


def with_servers(contribution: PluginContribution, config: LoaderConfig) -> PluginContribution:
    """Drop the diagnostic that a plugin's servers are not started, if they are."""
    if not contribution.servers or not config.connects_servers:
        return contribution
    rest = tuple(item for item in contribution.diagnostics if item.code != _NOT_STARTED)
    return (
        contribution
        if rest == contribution.diagnostics
        else replace(contribution, diagnostics=rest)
    )


def declared_servers(
    selection: Selection, plugins: Iterable[PluginEntry], gate: TrustGate
) -> tuple[tuple[ServerConfig, ...], tuple[Diagnostic, ...]]:
    """Return the enabled servers and why others are not used; nothing is connected."""
    unknown = (selection.withheld(f"MCP server {name!r}") for name in selection.servers)
    if withheld := tuple(filter(None, unknown)):
        return (), withheld
    plugins = [plugin for plugin in plugins if plugin.is_served and plugin.contribution.servers]
    if not (selection.servers or plugins):
        return (), ()
    # Lazy: needed only with MCP servers.
    from satchel.mcp_servers.server_declarations import plugin_server, user_server
    from satchel.trust.code_units import requested_variables, server_variables

    servers: list[ServerConfig] = []
    diagnostics: list[Diagnostic] = []
    for name, (file, table) in selection.servers.items():
        try:
            variables = gate.variables(file.path, file.scope, requested_variables([table]))
            config = user_server(name, table, file.path, variables)
            servers.append(config.checked(gate.check_of_file(name, file)))
        except DefinitionError as problem:
            off = selection.disabled("plugin", f"mcp:{name}")
            diagnostics.append(off or _invalid_server(name, file.path, problem))
    for plugin in plugins:
        for server in plugin.contribution.servers:
            root, data = without_links(plugin.path), data_folder(plugin.name)
            try:
                requested = server_variables(server)
                variables = gate.variables(plugin.path, plugin.scope, requested)
                config = plugin_server(plugin, server, root, data, variables)
                servers.append(config.checked(gate.check_of_plugin(server.name, plugin)))
            except DefinitionError as problem:
                off = selection.disabled("plugin", f"mcp:{server.name}")
                diagnostics.append(off or _invalid_server(server.name, plugin.path, problem))
    reasons = [selection.disabled("plugin", f"mcp:{item.name}") for item in servers]
    enabled = (item for item, off in zip(servers, reasons, strict=True) if off is None)
    return tuple(enabled), (*diagnostics, *filter(None, reasons))


def left_out_servers(
    diagnostics: Iterable[Diagnostic], declared: Iterable[ServerConfig], inputs: PassInputs
) -> frozenset[str]:
    """Return the enabled servers that cannot be used as they are declared.

    A server of a file has its name before those of plugins. What a project declares counts only if
    its code is trusted.
    """
    files = {file.path for file in inputs.selection.files}
    by_name = {item.name: item for item in declared}
    names = set()
    for item in diagnostics:
        name, grant = left_out_server(item), inputs.gate.at(item.where.path)
        other = by_name.get(name)
        is_used = other and (not other.owner or item.where.path not in files)
        if name and not is_used and (grant is None or grant.level is TrustLevel.CODE):
            names.add(name)
    disabled = inputs.selection.disabled
    return frozenset(name for name in names if disabled("plugin", f"mcp:{name}") is None)


def _invalid_server(name: str, path: str, problem: DefinitionError) -> Diagnostic:
    return make_diagnostic(
        "mcp-server-invalid",
        Where(path),
        f"server {shorten(one_line(name), 100)!r} is left out: {problem.message}",
        problem.fix or "fix or remove it",
    )
