"""The remote servers that one satchel carries: which they are, and as what."""

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
    """The servers of one satchel; each is connected to from when it is added."""

    def __init__(self, settings: Settings, on_news: Callable[[], None]) -> None:
        limits, self._folder = settings.limits, state_folder(settings.state_folder)
        self._pins: dict[str, PinStore] = {}
        self._fleet = ServerPool(limits, on_news)
        self._serial = itertools.count(1)
        self._members: dict[str, tuple[ServerConfig, ServerHandle]] = {}
        self._declared: dict[str, DeclaredServer] = {}
        self._unwanted: list[DeclaredServer] = []

    def made(
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
        """Return a server as it is to be carried. Raises `DefinitionError` and `ConflictError`."""
        stateless, origin = False, None
        if isinstance(server, DeclaredServer):
            origin, server = server.origin, server.server
        if isinstance(server, RemoteClient):
            stateless = server.stateless
            timeout = server.timeout if timeout is None else timeout
            server = server.server
        if not isinstance(server, StdioServer | HttpServer | SseServer):
            raise DefinitionError(
                f"{type(server).__name__} is no remote server",
                fix="give a StdioServer, an HttpServer, an SseServer or a RemoteClient",
            )
        name = server.name if name is None else name
        origin = origin or ServerOrigin("", name, way_of(server))
        if fault := plugin_name_fault(name) if isinstance(name, str) else "is no text":
            raise DefinitionError(f"the name {name!r} of a server {fault}")
        if name in self._members:
            raise ConflictError(
                f"a server {name!r} is carried already", fix="remove it first, or give name="
            )
        return ServerConfig(
            name=name,
            server=server,
            serial=f"server {next(self._serial)}",
            groups=groups,
            enable=None if enable is None else _several(enable),
            disable=() if disable is None else _several(disable),
            presets=_checked(NOTHING if presets is None else presets),
            timeout=required_timeout(timeout),
            pin=required_pin(pin),
            stateless=stateless,
            origin=origin,
        )

    def add(self, carried: ServerConfig) -> ServerHandle:
        """Carry a server from now on."""
        member = self._fleet.add(carried.name, carried.server, stateless=carried.stateless)
        self._members[carried.name] = carried, member
        return member

    def settle(self, declared: Iterable[DeclaredServer]) -> bool:
        """Carry what is written down, and nothing of it that is not any more.

        Tells whether something was let go.
        """
        own = [name for name in self._members if name not in self._declared]
        wanted = unique_server_names((item for item in declared if item not in self._unwanted), own)
        gone = [name for name, item in self._declared.items() if wanted.get(name) != item]
        self._let_go(gone)
        for name, item in wanted.items():
            if name not in self._members:
                if item.data:
                    make_folder(item.data)
                self.add(self._carried(name, item))
        self._declared = wanted
        return bool(gone)

    def _carried(self, name: str, item: DeclaredServer) -> ServerConfig:
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
        """Wait until it is known of every server whether it answers."""
        end = time.monotonic() + seconds
        return all(member.wait(max(0.0, end - time.monotonic())) for _, member in self.members)

    def remove(self, names: Iterable[str]) -> None:
        """Carry servers no more. Raises `NotFoundError` for one that is not, and removes none."""
        names = tuple(names)
        for name in names:
            if name not in self._members:
                raise NotFoundError("MCP server", name, near_misses(name, self._members))
        self._unwanted += [self._declared[name] for name in names if name in self._declared]
        self._let_go(names)

    def _let_go(self, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            carried, member = self._members.pop(name)
            self._declared.pop(name, None)
            self._pins.pop(carried.serial, None)
            self._fleet.remove(member)

    def without_tool(self, owner: str, tool: str) -> bool:
        """Want a tool of a server no more; tell whether `owner` is one that is carried."""
        name = owner.removeprefix(f"{SOURCE}:")
        if owner == name or name not in self._members:
            return False
        carried, member = self._members[name]
        self._members[name] = replace(carried, removed=(*carried.removed, tool)), member
        return True

    def offered(self) -> tuple[ServerOffer, ...]:
        """Return what all servers offer at the moment, in the order in which they came."""
        return tuple(
            self._offered(carried, member.offer, member)
            for carried, member in self.members
            if member.is_settled
        )

    @property
    def members(self) -> tuple[tuple[ServerConfig, ServerHandle], ...]:
        """Return all servers, in the order in which they came."""
        return tuple(self._members.values())

    def _offered(
        self, carried: ServerConfig, offer: ServerSnapshot, member: ServerHandle
    ) -> ServerOffer:
        if carried.pin == "off" or not offer.is_up:
            return ServerOffer(carried=carried, offer=offer, begin=member.call, read=member.read)
        verdict = self._pins_of(carried).judged(offer.listing.tools)
        return ServerOffer(
            carried=carried, offer=offer, begin=member.call, verdict=verdict, read=member.read
        )

    def approve(
        self, name: str, tools: tuple[str, ...], digests: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        """Pin tools of a server as they are now, or all; return those that were not so before.

        Raises `NotFoundError`, and `ConflictError` while the server is down, or if a tool is not
        what its digest names.
        """
        if name not in self._members:
            raise NotFoundError("MCP server", name, near_misses(name, self._members))
        carried, member = self._members[name]
        offer = member.offer
        if offer.trouble is not None:
            raise ConflictError(offer.trouble.message, fix=offer.trouble.fix)
        known = [tool.name for tool in offer.listing.tools]
        for tool in (*tools, *(digests or ())):
            if tool not in known:
                raise NotFoundError("tool", tool, near_misses(tool, known))
        return self._pins_of(carried).approve(offer.listing.tools, tools, digests)

    def _pins_of(self, carried: ServerConfig) -> PinStore:
        if carried.serial not in self._pins:
            self._pins[carried.serial] = PinStore(self._folder, carried.name, carried.origin)
        return self._pins[carried.serial]

    def poke(self) -> None:
        """Have everybody told that what is offered is another."""
        self._fleet.poke()

    def close(self) -> None:
        """Close all connections, the last opened first."""
        self._members.clear()
        self._fleet.close()


def _several(given: Iterable[str]) -> tuple[str, ...]:
    """Accept one name where several are meant. Raises `DefinitionError` for what is no text."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"tools are named by texts, not by {given!r}")
    return names


def _checked(presets: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    given = [presets, *presets.values()] if isinstance(presets, Mapping) else [presets]
    if not all(isinstance(values, Mapping) for values in given):
        raise DefinitionError(
            "the presets of a server are values by the names of its tools",
            fix='write presets={"tool": {"argument": value}}, or {"*": {...}} for all tools',
        )
    return {tool: dict(values) for tool, values in presets.items()}
