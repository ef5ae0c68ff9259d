"""Read the servers that plugins and users declare."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any, cast

from satchel.catalog.catalog_entries import PluginEntry
from satchel.configuration.env_file import env_variables
from satchel.errors import DefinitionError, SatchelError
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.server_placeholders import PlaceholderFiller, plugin_filler
from satchel.formats.server_table import OAuthTable, OptionsTable, ServerTable
from satchel.formats.table_model import read_table
from satchel.mcp_servers.oauth_client import OAuthClient
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    as_name,
)
from satchel.mcp_servers.server_options import Pin, ServerConfig, ServerOptions
from satchel.names import plugin_name_fault
from satchel.sources.search_roots import Precedence


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
    # Of a project, only the plugin's own files are compared: it does not start where we are.
    starts_here = server.of_claude and plugin.scope is not Precedence.PROJECT
    name, within = as_name(server.name), "" if starts_here else root
    config = _config(name, server.plain_table, filler, root, within)
    return replace(
        config,
        owner=plugin.name,
        path=plugin.path,
        groups=tuple(group.name for group in plugin.contribution.groups[:1]),
        data=data,
        origin=replace(config.origin, source=f"plugin {plugin.unit}"),
    )


def user_server(
    name: str, table: Mapping[str, Any], path: str, environment: Mapping[str, str], within: str = ""
) -> ServerConfig:
    """Return a server from a user's file, with `${NAME}` filled in from the environment.

    `within` is the folder that a command starts in, if not the current one.

    Raises `DefinitionError`.
    """
    if fault := plugin_name_fault(name):
        raise DefinitionError(f"its name {fault}")
    filler = PlaceholderFiller(variables=environment)
    config = _config(name, table, filler, os.path.dirname(path), within)
    return replace(config, path=path, origin=replace(config.origin, source=path))


def _config(
    name: str, table: Mapping[str, Any], filler: PlaceholderFiller, base: str, within: str
) -> ServerConfig:
    """Return a declared server; its files are relative to `base`, and it starts in `within`."""
    declared = read_table(ServerTable, table)
    if ("command" in table) == ("url" in table):
        raise DefinitionError("it needs either a command or a url")
    reached = [table.get(key) for key in ("command", "args", "cwd", "url")]
    passed = [declared.env, declared.headers]
    return ServerConfig(
        name=name,
        server=_local(declared, filler, base, within)
        if "command" in table
        else _remote(declared, filler),
        groups=filler.all_filled(declared.group),
        enable=None if declared.enable is None else filler.all_filled(declared.enable),
        disable=filler.all_filled(declared.disable),
        timeout=declared.timeout,
        pin=declared.pin,
        options=_options(declared, filler, base),
        origin=ServerOrigin(name=name, reached=json.dumps(reached)),
        passed=json.dumps(passed, sort_keys=True) if any(passed) else "",
    )


def required_pin(value: Any) -> Pin:
    """Validate a `pin` setting. Raises `DefinitionError`."""
    if isinstance(value, str) and value in {"hold", "warn", "off"}:
        return cast("Pin", value)
    raise DefinitionError(f"its pin must be hold, warn or off, not {value!r}")


def required_timeout(value: Any) -> float | None:
    """Validate a `timeout` setting. Raises `DefinitionError`."""
    if value is None or (type(value) in {int, float} and 0 < value < math.inf):
        return cast("float | None", value)
    raise DefinitionError(f"its timeout must be a number of seconds above 0, not {value!r}")


def _variables_in(env_file: str) -> Mapping[str, str]:
    try:
        return env_variables(env_file) if env_file else {}
    except SatchelError as error:
        raise DefinitionError(f"its env-file cannot be read: {error}") from None


def _local(declared: ServerTable, filler: PlaceholderFiller, base: str, within: str) -> StdioServer:
    env_file = os.path.expanduser(filler.filled(declared.env_file))
    variables = _variables_in(os.path.join(base, env_file) if env_file else "")
    cwd = filler.inside(filler.filled(declared.cwd))
    return StdioServer(
        command=filler.inside(filler.address(declared.command)),
        args=filler.all_filled(declared.args),
        env={**variables, **filler.values_filled(declared.env), **filler.folders},
        cwd=os.path.join(within, cwd) or None,
        hidden=filler.secrets_in(declared.args),
        # A command in a plugin's folder is shown by its whole path.
        shown=declared.command if "${" in declared.command else "",
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
    values = declared.model_dump(include={*OptionsTable.model_fields})
    roots = map(os.path.expanduser, filler.all_filled(declared.roots))
    return ServerOptions(**values | {"roots": tuple(os.path.join(base, root) for root in roots)})


def unique_server_names(
    servers: Iterable[ServerConfig], taken: Iterable[str]
) -> dict[str, ServerConfig]:
    """Return servers by unique names.

    A name that is taken gets the plugin's name as a prefix, and then a number.
    """
    by_name: dict[str, ServerConfig] = {}
    taken = {*taken}
    for item in servers:
        prefixed = as_name(f"{item.owner}-{item.name}")
        numbered = (f"{prefixed[:56]}-{number}" for number in count(2))
        name = next(
            name
            for name in chain((item.name, prefixed), numbered)
            if name not in taken and not plugin_name_fault(name)
        )
        taken.add(name)
        by_name[name] = item
    return by_name
