"""Read the servers that plugins and users declare."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import chain, count
from typing import Any, cast

from satchel.catalog import PluginEntry
from satchel.errors import DefinitionError
from satchel.formats import McpServerManifest
from satchel.formats.server_placeholders import fill_placeholders, variables_in
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.oauth_client import Grant, OAuthClient
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    as_name,
)
from satchel.mcp_servers.server_contributions import Pin
from satchel.mcp_servers.server_options import OPTION_KEYS, ServerOptions, options_of
from satchel.names import near_misses, plugin_name_fault

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "transport"),
    *("group", "enable", "disable", "timeout", "pin", "oauth", *OPTION_KEYS),
)
_OAUTH_KEYS = ("client-id", "client-secret", "issuer", "scopes", "redirect", "grant")
_TRANSPORTS = ("http", "streamable-http", "sse")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredServer:
    """A server that a plugin or a user's file declares."""

    owner: str
    """The plugin that declares it, or `""` for the user."""
    name: str
    path: str
    """The declaring file or folder."""
    server: RemoteServer
    groups: tuple[str, ...] = ()
    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()
    timeout: float | None = None
    pin: Pin = "hold"
    options: ServerOptions = field(default_factory=ServerOptions)
    data: str = ""
    """The folder for its data, or `""`."""
    origin: ServerOrigin = field(default_factory=ServerOrigin)
    passed: str = field(default="", repr=False)
    """Its environment and headers as declared: variables are not filled in."""


def plugin_server(
    plugin: PluginEntry,
    server: McpServerManifest,
    root: str,
    data: str,
    environment: Mapping[str, str],
) -> DeclaredServer:
    """Return a server that a plugin declares, with its placeholders filled in.

    `root` is the resolved folder of the plugin, and `data` the folder for its data. From the
    environment it gets only the variables that its placeholders name. Raises `DefinitionError`.
    """
    filled = fill_placeholders(server, root, data, environment if server.of_claude else {})
    groups = plugin.contribution.groups[:1]
    return DeclaredServer(
        owner=plugin.name,
        name=as_name(server.name),
        path=plugin.path,
        server=_address(
            filled, server, _placeholder_values((*server.args, server.url), environment)
        ),
        groups=tuple(group.name for group in groups),
        data=data,
        origin=ServerOrigin(
            f"plugin {plugin.unit}",
            as_name(server.name),
            _how_reached(lambda key: getattr(server, key)),
        ),
        passed=_how_passed(server.env, server.headers),
    )


def required_pin(given: Any) -> Pin:
    """Validate a `pin` setting. Raises `DefinitionError`."""
    if isinstance(given, str) and given in {"hold", "warn", "off"}:
        return cast("Pin", given)
    raise DefinitionError(f"its pin must be hold, warn or off, not {given!r}")


def required_timeout(given: Any) -> float | None:
    """Validate a `timeout` setting. Raises `DefinitionError`."""
    if given is None or (type(given) in {int, float} and 0 < given < math.inf):
        return cast("float | None", given)
    raise DefinitionError(f"its timeout must be a number of seconds above 0, not {given!r}")


def _how_reached(declared: Callable[[str], Any]) -> str:
    """Return the command or address as declared, before placeholders are filled in."""
    return json.dumps([declared(key) for key in ("command", "args", "cwd", "url")], default=str)


def _how_passed(env: Mapping[str, str], headers: Mapping[str, str]) -> str:
    return json.dumps([dict(env), dict(headers)], sort_keys=True)


def _placeholder_values(texts: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables that placeholders in the texts name."""
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
            env=env,
            cwd=filled.cwd or None,
            hidden=hidden,
            # A command in the plugin's folder is shown by its whole path.
            shown=declared.command if "${" in declared.command else "",
        )
    network: dict[str, Any] = {"shown": declared.url, "hidden": hidden}
    if filled.transport == "sse":
        return SseServer(filled.url, dict(filled.headers), **network)
    return HttpServer(filled.url, dict(filled.headers), or_sse=filled.or_sse, **network)


def user_server(
    name: str, table: Mapping[str, Any], path: str, environment: Mapping[str, str], within: str = ""
) -> DeclaredServer:
    """Return a server from a user's file, with `${NAME}` filled in from the environment.

    `within` is the folder that a command starts in, if not the current one.

    Raises `DefinitionError`.
    """
    if fault := plugin_name_fault(name):
        raise DefinitionError(f"its name {fault}")
    _require_known(table, _KEYS)
    if ("command" in table) == ("url" in table):
        raise DefinitionError("it needs either a command or a url")
    given = _Table(table, environment)
    server: RemoteServer
    if "command" in table:
        server = StdioServer(
            command=given.text("command"),
            args=given.texts("args") or (),
            env=given.mapping("env"),
            cwd=os.path.join(within, given.text("cwd") or "") or None,
            hidden=_placeholder_values(table.get("args", ()), environment),
            shown=str(table["command"]),
        )
    else:
        hidden = _placeholder_values((table["url"],), environment)
        network = _network_server(given, _oauth(table, environment))
        server = replace(network, shown=table["url"], hidden=hidden)
    pin = required_pin(given.text("pin") or "hold")
    timeout = required_timeout(table.get("timeout"))
    return DeclaredServer(
        owner="",
        name=name,
        path=path,
        server=server,
        groups=given.texts("group") or (),
        enable=given.texts("enable"),
        disable=given.texts("disable") or (),
        timeout=timeout,
        pin=pin,
        options=_options(table, given, os.path.dirname(path)),
        origin=ServerOrigin(path, name, _how_reached(table.get)),
        passed=_how_passed(given.declared("env"), given.declared("headers")),
    )


def _network_server(given: "_Table", oauth: OAuthClient | None) -> RemoteServer:
    url, headers, transport = given.text("url"), given.mapping("headers"), given.text("transport")
    if transport and transport not in _TRANSPORTS:
        raise DefinitionError(
            f"its transport is {transport!r}, not one of {', '.join(_TRANSPORTS)}"
        )
    if transport == "sse":
        return SseServer(url, headers, oauth)
    return HttpServer(url, headers, oauth, or_sse=not transport)


def _options(table: Mapping[str, Any], given: "_Table", base: str) -> ServerOptions:
    """Return the options of a table; its roots are relative to the folder `base`."""
    options = options_of(table)
    roots = given.texts("roots") or ()
    paths = tuple(os.path.join(base, os.path.expanduser(root)) for root in roots)
    return replace(options, roots=paths)


def _require_known(table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        if key not in keys:
            near = near_misses(key, keys)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DefinitionError(f"its key {key!r} is unknown{hint}")


def _oauth(table: Mapping[str, Any], environment: Mapping[str, str]) -> OAuthClient | None:
    """Return the OAuth client that the table of a server names, or `None`."""
    if (values := table.get("oauth")) is None:
        return None
    if not isinstance(values, Mapping):
        raise DefinitionError("its oauth must be a table")
    _require_known(values, _OAUTH_KEYS)
    given = _Table(values, environment)
    return OAuthClient(
        client_id=given.text("client-id"),
        client_secret=given.text("client-secret"),
        issuer=given.text("issuer"),
        scopes=given.texts("scopes") or (),
        redirect=given.text("redirect"),
        grant=cast("Grant", given.text("grant") or "authorization-code"),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a file; `${NAME}` in its values is filled in from the environment."""

    values: Mapping[str, Any]
    environment: Mapping[str, str]

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        if not isinstance(value, str):
            raise DefinitionError(f"its {key} must be a string")
        return self._filled(value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        if key not in self.values:
            return None
        value = self.values[key]
        items = [value] if isinstance(value, str) and key != "args" else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise DefinitionError(f"its {key} must be a list of strings")
        return tuple(map(self._filled, items))

    def mapping(self, key: str) -> dict[str, str]:
        return {name: self._filled(text) for name, text in self.declared(key).items()}

    def declared(self, key: str) -> Mapping[str, str]:
        value = self.values.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise DefinitionError(f"its {key} must be a table of strings")
        return value

    def _filled(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name, default = match.groups()
            if name not in self.environment:
                if default is not None:
                    return str(default)
                raise DefinitionError(f"it uses the environment variable {name}, which is not set")
            return self.environment[name]

        return _PLACEHOLDER.sub(value, text)


def unique_server_names(
    servers: Iterable[DeclaredServer], taken: Iterable[str]
) -> dict[str, DeclaredServer]:
    """Return servers by unique names.

    A name that is taken gets the plugin's name as a prefix, and then a number.
    """
    by_name: dict[str, DeclaredServer] = {}
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
