"""Servers that plugins declare and users write down, as they are carried."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, cast

from satchel.catalog import PluginEntry
from satchel.errors import DefinitionError
from satchel.formats import McpServerManifest
from satchel.formats.server_placeholders import fill_placeholders
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    as_name,
)
from satchel.mcp_servers.server_contributions import Pin
from satchel.names import near_misses, plugin_name_fault

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "transport"),
    *("group", "enable", "disable", "timeout", "pin"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredServer:
    """A server that somebody wrote down, and where."""

    owner: str
    """The plugin that declares it, or `""` for the user."""
    name: str
    path: str
    """Where a person finds what is written."""
    server: RemoteServer
    groups: tuple[str, ...] = ()
    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()
    timeout: float | None = None
    pin: Pin = "hold"
    data: str = ""
    """The folder in which it may keep things, if it has one."""
    origin: ServerOrigin = field(default_factory=ServerOrigin)


def plugin_server(
    plugin: PluginEntry,
    server: McpServerManifest,
    root: str,
    data: str,
    environment: Mapping[str, str],
) -> DeclaredServer:
    """Return a server as a plugin declares it, its placeholders filled in.

    `root` is the plugin's folder without links, and `data` where it may keep things. Of the
    environment it gets nothing but what its placeholders name. Raises `DefinitionError`.
    """
    filled = fill_placeholders(server, root, data, environment if server.of_claude else {})
    groups = plugin.supply.groups[:1]
    return DeclaredServer(
        owner=plugin.name,
        name=as_name(server.name),
        path=plugin.path,
        server=_made(filled, server.env, _named_by(server.args, environment)),
        groups=tuple(group.name for group in groups),
        data=data,
        origin=ServerOrigin(
            f"plugin {plugin.name}",
            as_name(server.name),
            _reached(lambda key: getattr(server, key)),
        ),
    )


def required_pin(given: Any) -> Pin:
    """Return a choice about pins. Raises `DefinitionError` for what is none."""
    if isinstance(given, str) and given in {"hold", "warn", "off"}:
        return cast("Pin", given)
    raise DefinitionError(f"its pin is hold, warn or off, not {given!r}")


def required_timeout(given: Any) -> float | None:
    """Return a limit of time, if there is one. Raises `DefinitionError` for what is none."""
    if given is None or (type(given) in {int, float} and 0 < given < math.inf):
        return cast("float | None", given)
    raise DefinitionError(f"its timeout is a number of seconds, not {given!r}")


def _reached(written: Callable[[str], Any]) -> str:
    """Return how a server is reached, as it is written."""
    return json.dumps([written(key) for key in ("command", "args", "cwd", "url")], default=str)


def _named_by(texts: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the environment that stand in texts as they are written."""
    names = _PLACEHOLDER.findall(" ".join(texts))
    return tuple(environment[name] for name in names if name in environment)


def _made(
    filled: McpServerManifest, own: Mapping[str, str], hidden: tuple[str, ...]
) -> RemoteServer:
    if filled.transport == "stdio":
        # What it is given on top of a safe environment: its own, and where its plugin is.
        env = {
            name: value
            for name, value in filled.env.items()
            if name in own or name.removeprefix("CLAUDE_").startswith("PLUGIN_")
        }
        return StdioServer(
            command=filled.command, args=filled.args, env=env, cwd=filled.cwd or None, hidden=hidden
        )
    kind = SseServer if filled.transport == "sse" else HttpServer
    return kind(filled.url, dict(filled.headers))


def user_server(
    name: str, table: Mapping[str, Any], path: str, environment: Mapping[str, str]
) -> DeclaredServer:
    """Return a server as a user wrote it down, `${NAME}` filled in from the environment.

    Raises `DefinitionError`.
    """
    if fault := plugin_name_fault(name):
        raise DefinitionError(f"its name {fault}")
    for key in table:
        if key not in _KEYS:
            near = near_misses(key, _KEYS)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DefinitionError(f"nobody reads its key {key!r}{hint}")
    if ("command" in table) == ("url" in table):
        raise DefinitionError("it needs either a command or a url")
    given = _Table(table, environment)
    server: RemoteServer
    if "command" in table:
        server = StdioServer(
            command=given.text("command"),
            args=given.texts("args") or (),
            env=given.mapping("env"),
            cwd=given.text("cwd") or None,
            hidden=_named_by(table.get("args", ()), environment),
        )
    else:
        kind = SseServer if given.text("transport") == "sse" else HttpServer
        server = kind(given.text("url"), given.mapping("headers"))
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
        origin=ServerOrigin(path, name, _reached(table.get)),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a file, whose values may name variables of the environment."""

    values: Mapping[str, Any]
    environment: Mapping[str, str]

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        if not isinstance(value, str):
            raise DefinitionError(f"its {key} is no text")
        return self._filled(value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        if key not in self.values:
            return None
        value = self.values[key]
        items = [value] if isinstance(value, str) and key != "args" else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise DefinitionError(f"its {key} is no list of texts")
        return tuple(map(self._filled, items))

    def mapping(self, key: str) -> dict[str, str]:
        value = self.values.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise DefinitionError(f"its {key} is no table of texts")
        return {name: self._filled(text) for name, text in value.items()}

    def _filled(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in self.environment:
                raise DefinitionError(f"the environment has no {found[1]}, which it names")
            return self.environment[found[1]]

        return _PLACEHOLDER.sub(value, text)


def unique_server_names(
    servers: Iterable[DeclaredServer], taken: Iterable[str]
) -> dict[str, DeclaredServer]:
    """Return servers by a name of their own; a name that is taken gets the plugin's in front.

    If that is taken, too, it gets a number.
    """
    found: dict[str, DeclaredServer] = {}
    known = {*taken}
    for item in servers:
        longer = as_name(f"{item.owner}-{item.name}")
        numbered = (f"{longer[:56]}-{number}" for number in count(2))
        name = next(
            name
            for name in chain((item.name, longer), numbered)
            if name not in known and not plugin_name_fault(name)
        )
        known.add(name)
        found[name] = item
    return found
