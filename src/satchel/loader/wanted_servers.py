"""The MCP servers that enabled plugins and users declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Severity, Where, left_out_server, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import is_inside
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
_LEFT_OUT = {"mcp-invalid", "mcp-server-invalid", "code-held"}


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
    """Return the names of the enabled servers that cannot be used as they are declared.

    The record of names knows those of a file or plugin that is broken or held. A server of a file
    has its name before those of plugins. What a project declares counts only if its code is
    trusted.
    """
    files = {file.path for file in inputs.selection.files}
    used = {item.place for item in declared}
    used_names = {item.name for item in declared}
    problems = [item for item in diagnostics if _may_keep_out(item, inputs.gate)]
    names = {
        name
        for item in problems
        if (name := left_out_server(item))
        if item.where.path in files or name not in used_names
    }
    recorded = inputs.config.owners.by_unit("server") if inputs.config.owners and problems else {}
    for place, served in recorded.items():
        path = place.partition("//")[0]
        if (
            path
            and place not in used
            and any(is_inside(item.where.path, path) for item in problems)
        ):
            names.update(served)
    names -= {item.name for item in declared if not item.owner}
    disabled = inputs.selection.disabled
    return frozenset(name for name in names if disabled("plugin", f"mcp:{name}") is None)


def _may_keep_out(item: Diagnostic, gate: TrustGate) -> bool:
    """Return whether a diagnostic may be the reason that a server of its file is not used."""
    grant = gate.at(item.where.path)
    is_trusted = grant is None or grant.level is TrustLevel.CODE
    return is_trusted and (item.severity is Severity.ERROR or item.code in _LEFT_OUT)


def _invalid_server(name: str, path: str, problem: DefinitionError) -> Diagnostic:
    return make_diagnostic(
        "mcp-server-invalid",
        Where(path),
        f"server {shorten(one_line(name), 100)!r} is left out: {problem.message}",
        problem.fix or "fix or remove it",
    )
