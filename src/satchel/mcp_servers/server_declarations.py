"""Read the servers that plugins and users declare."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from typing import Any, cast

from satchel.catalog.catalog_entries import PluginEntry
from satchel.configuration.env_file import env_variables
from satchel.errors import DefinitionError, SatchelError
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.server_placeholders import fill_placeholders, variables_in
from satchel.formats.server_table import OAuthTable, OptionsTable, ServerTable
from satchel.formats.table_model import read_table
from satchel.lazy_dataclass import dataclass
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

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


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
    filled = fill_placeholders(server, root, data, environment if server.of_claude else {})
    groups = plugin.contribution.groups[:1]
    return ServerConfig(
        owner=plugin.name,
        name=as_name(server.name),
        path=plugin.path,
        server=_address(
            filled, server, _placeholder_values((*server.args, server.url), environment)
        ),
        groups=tuple(group.name for group in groups),
        enable=server.enable,
        disable=server.disable,
        timeout=server.timeout,
        options=ServerOptions(startup_timeout=server.startup_timeout, protocol=server.protocol),
        data=data,
        origin=ServerOrigin(
            f"plugin {plugin.unit}",
            as_name(server.name),
            _how_reached(lambda key: getattr(server, key)),
        ),
        passed=_how_passed(server.env, server.headers),
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


def _how_reached(declared: Callable[[str], Any]) -> str:
    """Return the command or address as declared, before placeholders are filled in."""
    return json.dumps([declared(key) for key in ("command", "args", "cwd", "url")], default=str)


def _how_passed(env: Mapping[str, str], headers: Mapping[str, str]) -> str:
    return json.dumps([dict(env), dict(headers)], sort_keys=True) if env or headers else ""


def _placeholder_values(texts: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    names = variables_in(" ".join(map(str, texts)))
    return tuple(environment[name] for name in names if name in environment)


def _address(
    filled: McpServerManifest, declared: McpServerManifest, hidden: tuple[str, ...]
) -> RemoteServer:
    if filled.transport == "stdio":
        # On top of a safe environment: the declared variables, and the plugin's folders.
        env = {
            name: value
            for name, value in filled.env.items()
            if name in declared.env or name.removeprefix("CLAUDE_").startswith("PLUGIN_")
        }
        return StdioServer(
            command=filled.command,
            args=filled.args,
            env={**_variables_in(filled.env_file), **env},
            cwd=filled.cwd or None,
            hidden=hidden,
            # A command in the plugin's folder is shown by its whole path.
            shown=declared.command if "${" in declared.command else "",
        )
    network: dict[str, Any] = {"shown": declared.url, "hidden": hidden}
    if filled.client_id or filled.redirect or filled.scopes:
        network["oauth"] = OAuthClient(
            client_id=filled.client_id, redirect=filled.redirect, scopes=filled.scopes
        )
    if filled.transport == "sse":
        return SseServer(filled.url, dict(filled.headers), **network)
    return HttpServer(filled.url, dict(filled.headers), or_sse=filled.or_sse, **network)


def user_server(
    name: str, table: Mapping[str, Any], path: str, environment: Mapping[str, str]
) -> ServerConfig:
    """Return a server from a user's file, with `${NAME}` filled in from the environment.

    A command starts in the folder of the file, and not in the current one, which may be a clone
    with programs of the same names. Raises `DefinitionError`.
    """
    if fault := plugin_name_fault(name):
        raise DefinitionError(f"its name {fault}")
    declared = read_table(ServerTable, table)
    if ("command" in table) == ("url" in table):
        raise DefinitionError("it needs either a command or a url")
    variables = _Variables(environment)
    is_local = "command" in table
    return ServerConfig(
        name=name,
        path=path,
        server=_local(declared, variables, path) if is_local else _remote(declared, variables),
        groups=variables.in_all(declared.group),
        enable=None if declared.enable is None else variables.in_all(declared.enable),
        disable=variables.in_all(declared.disable),
        timeout=declared.timeout,
        pin=declared.pin,
        options=_options(declared, variables, os.path.dirname(path)),
        origin=ServerOrigin(path, name, _how_reached(table.get)),
        passed=_how_passed(declared.env, declared.headers),
    )


@dataclass(frozen=True, slots=True)
class _Variables:
    """Fills in `${NAME}` from the environment."""

    environment: Mapping[str, str]

    def filled(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._value, text)

    def in_all(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.filled, texts))

    def in_values(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {name: self.filled(text) for name, text in texts.items()}

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        if name in self.environment:
            return self.environment[name]
        if default is None:
            raise DefinitionError(f"it uses the environment variable {name}, which is not set")
        return str(default)


def _variables_in(env_file: str) -> Mapping[str, str]:
    try:
        return env_variables(env_file) if env_file else {}
    except SatchelError as error:
        raise DefinitionError(f"its env-file cannot be read: {error}") from None


def _local(declared: ServerTable, variables: _Variables, path: str) -> StdioServer:
    folder, env_file = (
        os.path.dirname(path),
        os.path.expanduser(variables.filled(declared.env_file)),
    )
    file_variables = _variables_in(os.path.join(folder, env_file) if env_file else "")
    return StdioServer(
        command=variables.filled(declared.command),
        args=variables.in_all(declared.args),
        env={**file_variables, **variables.in_values(declared.env)},
        cwd=os.path.join(folder, variables.filled(declared.cwd)) or None,
        hidden=_placeholder_values(declared.args, variables.environment),
        shown=declared.command,
    )


def _remote(declared: ServerTable, variables: _Variables) -> RemoteServer:
    url, headers = variables.filled(declared.url), variables.in_values(declared.headers)
    oauth = None
    if declared.oauth is not None:
        table = read_table(OAuthTable, declared.oauth)
        texts = variables.in_values(table.model_dump(exclude={"scopes", "grant"}))
        oauth = OAuthClient(**texts, scopes=variables.in_all(table.scopes), grant=table.grant)
    hidden = _placeholder_values([declared.url], variables.environment)
    if declared.transport == "sse":
        return SseServer(url, headers, oauth, shown=declared.url, hidden=hidden)
    or_sse = not declared.transport
    return HttpServer(url, headers, oauth, shown=declared.url, hidden=hidden, or_sse=or_sse)


def _options(declared: ServerTable, variables: _Variables, base: str) -> ServerOptions:
    """Return the options of a table; its roots are relative to the folder `base`."""
    values = declared.model_dump(include={*OptionsTable.model_fields})
    roots = map(os.path.expanduser, variables.in_all(declared.roots))
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
