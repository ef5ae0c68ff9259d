"""The MCP servers that one `Satchel` connects, with their configuration."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.mcp_servers import (
    DeclaredServer,
    RemoteClient,
    RemoteServer,
    ServerHandle,
    ServerPool,
    ServerSnapshot,
)
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin, way_of
from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
from satchel.mcp_servers.server_contributions import SOURCE, Pin, ServerConfig, ServerOffer
from satchel.mcp_servers.server_declarations import (
    required_pin,
    required_timeout,
    unique_server_names,
)
from satchel.names import near_misses, plugin_name_fault
from satchel.settings import Settings
from satchel.sources.state_files import make_folder, state_folder
from satchel.tools.empty_mapping import NOTHING


class ServerRegistry:
    """The MCP servers of one `Satchel`; adding one connects it."""

    def __init__(self, settings: Settings, on_news: Callable[[], None]) -> None:
        limits, self._folder = settings.limits, state_folder(settings.state_folder)
        self._pins: dict[str, PinStore] = {}
        self._pool = ServerPool(limits, on_news)
        self._serial = itertools.count(1)
        self._entries: dict[str, tuple[ServerConfig, ServerHandle]] = {}
        self._declared: dict[str, DeclaredServer] = {}
        self._removed: list[DeclaredServer] = []

    def create(
        self,
        server: RemoteServer | RemoteClient | DeclaredServer,
        *,
        name: str | None,
        groups: tuple[str, ...],
        enable: Iterable[str] | None,
        disable: Iterable[str] | None,
        presets: Mapping[str, Mapping[str, Any]] | None,
        timeout: float | None,
        pin: Pin,
    ) -> ServerConfig:
        """Return the configuration of a server. Raises `DefinitionError` and `ConflictError`."""
        stateless, origin = False, None
        if isinstance(server, DeclaredServer):
            origin, server = server.origin, server.server
        if isinstance(server, RemoteClient):
            stateless = server.stateless
            timeout = server.timeout if timeout is None else timeout
            server = server.server
        if not isinstance(server, StdioServer | HttpServer | SseServer):
            raise DefinitionError(
                f"{type(server).__name__} is not a remote server",
                fix="pass a StdioServer, an HttpServer, an SseServer or a RemoteClient",
            )
        name = server.name if name is None else name
        origin = origin or ServerOrigin("", name, way_of(server))
        if fault := plugin_name_fault(name) if isinstance(name, str) else "is not a string":
            raise DefinitionError(f"the name {name!r} of a server {fault}")
        if name in self._entries:
            raise ConflictError(
                f"a server {name!r} is already connected", fix="remove it first, or pass name="
            )
        return ServerConfig(
            name=name,
            server=server,
            serial=f"server {next(self._serial)}",
            groups=groups,
            enable=None if enable is None else _as_tuple(enable),
            disable=() if disable is None else _as_tuple(disable),
            presets=_checked_presets(NOTHING if presets is None else presets),
            timeout=required_timeout(timeout),
            pin=required_pin(pin),
            stateless=stateless,
            origin=origin,
        )

    def add(self, config: ServerConfig) -> ServerHandle:
        """Connect a server."""
        handle = self._pool.add(config.name, config.server, stateless=config.stateless)
        self._entries[config.name] = config, handle
        return handle

    def update(self, declared: Iterable[DeclaredServer]) -> bool:
        """Connect the declared servers, and disconnect those that are no longer declared.

        Returns whether a server was disconnected.
        """
        registered = [name for name in self._entries if name not in self._declared]
        wanted = unique_server_names(
            (item for item in declared if item not in self._removed), registered
        )
        changed = [name for name, item in self._declared.items() if wanted.get(name) != item]
        self._disconnect(changed)
        for name, item in wanted.items():
            if name not in self._entries:
                if item.data:
                    make_folder(item.data)
                self.add(self._declared_config(name, item))
        self._declared = wanted
        return bool(changed)

    def _declared_config(self, name: str, item: DeclaredServer) -> ServerConfig:
        return ServerConfig(
            name=name,
            server=item.server,
            serial=f"server {next(self._serial)}",
            groups=item.groups,
            enable=item.enable,
            disable=item.disable,
            timeout=item.timeout,
            pin=item.pin,
            origin=item.origin,
        )

    def wait(self, seconds: float) -> bool:
        """Wait until every server answers or is known to be down; return whether that is so."""
        end = time.monotonic() + seconds
        return all(handle.wait(max(0.0, end - time.monotonic())) for _, handle in self.entries)

    def remove(self, names: Iterable[str]) -> None:
        """Disconnect servers. Raises `NotFoundError` for an unknown one, and then removes none."""
        names = tuple(names)
        for name in names:
            if name not in self._entries:
                raise NotFoundError("MCP server", name, near_misses(name, self._entries))
        self._removed += [self._declared[name] for name in names if name in self._declared]
        self._disconnect(names)

    def _disconnect(self, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            config, handle = self._entries.pop(name)
            self._declared.pop(name, None)
            self._pins.pop(config.serial, None)
            self._pool.remove(handle)

    def remove_tool(self, owner: str, tool: str) -> bool:
        """Remove a tool of a server; return whether `owner` is a connected server."""
        name = owner.removeprefix(f"{SOURCE}:")
        if owner == name or name not in self._entries:
            return False
        config, handle = self._entries[name]
        self._entries[name] = replace(config, removed=(*config.removed, tool)), handle
        return True

    def offered(self) -> tuple[ServerOffer, ...]:
        """Return the current snapshots of all servers, in the order in which they were added."""
        return tuple(
            self._offer_of(config, handle.offer, handle)
            for config, handle in self.entries
            if handle.is_settled
        )

    @property
    def entries(self) -> tuple[tuple[ServerConfig, ServerHandle], ...]:
        """All servers, in the order in which they were added."""
        return tuple(self._entries.values())

    def _offer_of(
        self, config: ServerConfig, offer: ServerSnapshot, handle: ServerHandle
    ) -> ServerOffer:
        if config.pin == "off" or not offer.is_up:
            return ServerOffer(carried=config, offer=offer, begin=handle.call, read=handle.read)
        verdict = self._pins_of(config).judged(offer.listing.tools)
        return ServerOffer(
            carried=config, offer=offer, begin=handle.call, verdict=verdict, read=handle.read
        )

    def approve(
        self, name: str, tools: tuple[str, ...], digests: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        """Pin the current definitions of a server's tools, or of all; return those that changed.

        Raises `NotFoundError`, and `ConflictError` while the server is down or if a digest does
        not match.
        """
        if name not in self._entries:
            raise NotFoundError("MCP server", name, near_misses(name, self._entries))
        config, handle = self._entries[name]
        offer = handle.offer
        if offer.trouble is not None:
            raise ConflictError(offer.trouble.message, fix=offer.trouble.fix)
        names = [tool.name for tool in offer.listing.tools]
        for tool in (*tools, *(digests or ())):
            if tool not in names:
                raise NotFoundError("tool", tool, near_misses(tool, names))
        return self._pins_of(config).approve(offer.listing.tools, tools, digests)

    def _pins_of(self, config: ServerConfig) -> PinStore:
        if config.serial not in self._pins:
            self._pins[config.serial] = PinStore(self._folder, config.name, config.origin)
        return self._pins[config.serial]

    def notify(self) -> None:
        """Trigger the callback for changed servers."""
        self._pool.poke()

    def close(self) -> None:
        """Close all connections, the last opened first."""
        self._entries.clear()
        self._pool.close()


def _as_tuple(given: Iterable[str]) -> tuple[str, ...]:
    """Normalize one name or several to a tuple. Raises `DefinitionError` unless all are strings."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"names of tools must be strings, not {given!r}")
    return names


def _checked_presets(presets: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    given = [presets, *presets.values()] if isinstance(presets, Mapping) else [presets]
    if not all(isinstance(values, Mapping) for values in given):
        raise DefinitionError(
            "the presets of a server must be a mapping of tool names to values",
            fix='write presets={"tool": {"argument": value}}, or {"*": {...}} for all tools',
        )
    return {tool: dict(values) for tool, values in presets.items()}
