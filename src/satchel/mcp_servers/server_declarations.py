"""Read the servers that plugins and users declare."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from itertools import chain, count
from typing import Any

from satchel.catalog.catalog_entries import PluginEntry
from satchel.errors import DefinitionError, SatchelError
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.server_placeholders import PlaceholderFiller, plugin_filler
from satchel.formats.server_table import OAuthTable, ServerTable
from satchel.formats.table_model import read_table
from satchel.mcp_servers.oauth_client import OAuthClient
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StartVariables,
    StdioServer,
    as_name,
)
from satchel.mcp_servers.server_options import ServerConfig, ServerOptions
from satchel.names import plugin_name_fault
from satchel.trust.name_owners import NameOwners
from satchel.trust.server_outline import command_outline


def plugin_server(
    plugin: PluginEntry,
    server: McpServerManifest,
    root: str,
    data: str,
    environment: Mapping[str, str],
) -> ServerConfig:
    """Return a server that a plugin declares, with its placeholders filled in.

    `root` is the resolved folder of the plugin, and `data` the folder for its data. From the
    environment it gets only the variables that its placeholders name. Raises `DefinitionError`.
    """
    filler = plugin_filler(server, root, data, environment)
    config = _config(as_name(server.name), server.plain_table, filler, root)
    return replace(
        config,
        owner=plugin.name,
        path=plugin.path,
        groups=tuple(group.name for group in plugin.contribution.groups[:1]),
        data=data,
        origin=replace(config.origin, source=f"plugin {plugin.unit}", name=server.name),
    )


def user_server(
    name: str, table: Mapping[str, Any], path: str, environment: Mapping[str, str]
) -> ServerConfig:
    """Return a server from a user's file, with `${NAME}` filled in from the environment.

    A relative path in it is relative to the folder of the file. Raises `DefinitionError`.
    """
    if fault := plugin_name_fault(name):
        raise DefinitionError(f"its name {fault}")
    filler = PlaceholderFiller(variables=environment)
    config = _config(name, table, filler, os.path.dirname(path))
    return replace(config, path=path, origin=replace(config.origin, source=path))


def _config(
    name: str, table: Mapping[str, Any], filler: PlaceholderFiller, base: str
) -> ServerConfig:
    """Return a declared server. It starts in the folder `base`, and paths are relative to it.

    In the current folder, a command such as `npx` would take programs of a clone.
    """
    declared = read_table(ServerTable, table)
    if ("command" in table) == ("url" in table):
        raise DefinitionError("it needs either a command or a url")
    reached = [table.get(key) for key in ("command", "args", "cwd", "url")]
    return ServerConfig(
        name=name,
        server=_local(declared, filler, base) if "command" in table else _remote(declared, filler),
        groups=filler.all_filled(declared.group),
        enable=None if declared.enable is None else filler.all_filled(declared.enable),
        disable=filler.all_filled(declared.disable),
        timeout=declared.timeout,
        pin=declared.pin,
        options=_options(declared, filler, base),
        origin=ServerOrigin(name=name, reached=json.dumps(reached)),
        declared=json.dumps(table, sort_keys=True, default=str),
    )


def _read(variables: StartVariables) -> Mapping[str, str]:
    try:
        return variables.read()
    except SatchelError as error:
        raise DefinitionError(f"its env-file cannot be read: {error}") from None


def _local(declared: ServerTable, filler: PlaceholderFiller, base: str) -> StdioServer:
    env_file = os.path.expanduser(filler.filled(declared.env_file))
    env = {**filler.values_filled(declared.env), **filler.folders}
    variables = StartVariables(os.path.join(base, env_file), env) if env_file else None
    cwd = filler.inside(filler.filled(declared.cwd))
    return StdioServer(
        command=filler.inside(filler.address(declared.command)),
        args=filler.all_filled(declared.args),
        env=_read(variables) if variables else env,
        start_variables=variables,
        cwd=(os.path.join(base, cwd) if cwd else base) or None,
        hidden=filler.secrets_in(declared.args),
        shown=" ".join(command_outline(declared.command, declared.args)),
    )


def _remote(declared: ServerTable, filler: PlaceholderFiller) -> RemoteServer:
    headers = {name: filler.address(value) for name, value in declared.headers.items()}
    oauth = None
    if declared.oauth is not None:
        table = read_table(OAuthTable, declared.oauth)
        texts = filler.values_filled(table.model_dump(exclude={"scopes", "grant"}))
        oauth = OAuthClient(**texts, scopes=filler.all_filled(table.scopes), grant=table.grant)
    shown: dict[str, Any] = {"shown": declared.url, "hidden": filler.secrets_in([declared.url])}
    url = filler.address(declared.url)
    if declared.transport == "sse":
        return SseServer(url, headers, oauth, **shown)
    return HttpServer(url, headers, oauth, **shown, or_sse=not declared.transport)


def _options(declared: ServerTable, filler: PlaceholderFiller, base: str) -> ServerOptions:
    """Return the options of a table; its roots are relative to the folder `base`."""
    values = declared.model_dump(include={item.name for item in fields(ServerOptions)})
    roots = map(os.path.expanduser, filler.all_filled(declared.roots))
    return ServerOptions(**values | {"roots": tuple(os.path.join(base, root) for root in roots)})


def unique_server_names(
    servers: Iterable[ServerConfig], taken: Iterable[str], owners: NameOwners | None = None
) -> dict[str, ServerConfig]:
    """Return servers by unique names.

    A server of a plugin has the name that it had before those of other plugins, by the record. A
    name that is taken gets the plugin's name as a prefix, and then a number.
    """
    servers, taken = tuple(servers), {*taken}
    by_name: dict[str, ServerConfig] = {}
    places = {item.place for item in servers}

    def is_free(name: str, item: ServerConfig) -> bool:
        units = owners.of("server", name) if owners and item.owner else ()
        first = next((unit for unit in units if unit in places), item.place)
        return name not in taken and first == item.place and not plugin_name_fault(name)

    for item in servers:
        prefixed = as_name(f"{item.owner}-{item.name}")
        numbered = (f"{prefixed[:56]}-{number}" for number in count(2))
        names = chain((item.name, prefixed), numbered)
        name = next(name for name in names if is_free(name, item))
        taken.add(name)
        by_name[name] = item
    return by_name
