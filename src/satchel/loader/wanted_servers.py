"""The MCP servers that enabled plugins and users declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.catalog.name_holds import may_return
from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Where, left_out_server, make_diagnostic
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
    from satchel.trust.name_owners import NameOwners

_NOT_STARTED = "mcp-not-started"
_WHOLE_FILE = {"choices-unreadable", "mcp-invalid", "code-held"}
"""Diagnostics of a file or plugin of which no server is known."""


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
    selection: Selection,
    plugins: Iterable[PluginEntry],
    gate: TrustGate,
    owners: NameOwners | None,
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
    reasons = [_disabled(selection, item, owners) for item in servers]
    enabled = (item for item, off in zip(servers, reasons, strict=True) if off is None)
    return tuple(enabled), (*diagnostics, *filter(None, reasons))


def _disabled(
    selection: Selection, server: ServerConfig, owners: NameOwners | None
) -> Diagnostic | None:
    """Return why a server is disabled: by its own name, or by one that it has or had here."""
    from satchel.mcp_servers.server_addresses import as_name  # lazy: as above

    names = [server.name]
    if server.owner:
        names.append(as_name(f"{server.owner}-{server.name}"))
        names += owners.names_of("server", server.place) if owners else ()
    own, *others = (f"mcp:{name}" for name in names)
    reason = selection.disabled("plugin", own, others)
    if reason is None:
        return None
    # The reason shows the name that is disabled.
    reasons = (selection.disabled("plugin", name) for name in (own, *others))
    return next(filter(None, reasons), reason)


def left_out_servers(
    diagnostics: Iterable[Diagnostic],
    declared: Iterable[ServerConfig],
    plugins: Iterable[PluginEntry],
    inputs: PassInputs,
) -> dict[str, str]:
    """Return where the enabled servers are declared that cannot be used so, by their names.

    The record of names knows what a server of a plugin was called, and which servers a file or
    plugin had that cannot be read or is held. A server of a file has its name before those of
    plugins. What a project declares counts only if its code is trusted.
    """
    files = {file.path for file in inputs.selection.files}
    used_names = {item.name for item in declared}
    problems = [it for it in diagnostics if it.code in _WHOLE_FILE or left_out_server(it)]
    broken = [plugin.path for plugin in plugins if may_return(plugin)]
    # The record is read only if something is wrong.
    owners = inputs.config.owners if problems or broken else None
    recorded = owners.by_unit("server") if owners else {}
    places: dict[str, str] = {}
    for item in problems:
        path, grant = item.where.path, inputs.gate.at(item.where.path)
        if grant is not None and grant.level is not TrustLevel.CODE:
            continue
        if item.code in _WHOLE_FILE:
            broken.append(path)
        else:
            from satchel.mcp_servers.server_addresses import as_name  # lazy: as above

            raw_name = left_out_server(item)
            name = as_name(raw_name)
            if path in files or name not in used_names:
                places.setdefault(name, f"{path}//{raw_name}")
            places |= _recorded_at(recorded, path, raw_name)
    used = {item.place for item in declared}
    unused = {place: names for place, names in recorded.items() if place not in used}
    for path in broken:
        places |= _recorded_at(unused, path)
    of_files = {item.name for item in declared if not item.owner}
    disabled = inputs.selection.disabled
    return {
        name: place
        for name, place in places.items()
        if name not in of_files and disabled("plugin", f"mcp:{name}") is None
    }


def _recorded_at(
    recorded: Mapping[str, tuple[str, ...]], path: str, server: str | None = None
) -> dict[str, str]:
    """Return where the servers of a file or plugin were declared, or one of them, by their names.

    Of the names of a server, that is the last.
    """
    return {
        names[-1]: place
        for place, names in recorded.items()
        if (parts := place.partition("//"))[0] and is_inside(path, parts[0])
        if server is None or parts[2] == server
    }


def _invalid_server(name: str, path: str, problem: DefinitionError) -> Diagnostic:
    return make_diagnostic(
        "mcp-server-invalid",
        Where(path),
        f"server {shorten(one_line(name), 100)!r} is left out: {problem.message}",
        problem.fix or "fix or remove it",
    )
