"""The MCP servers that one satchel is connected to."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from satchel.diagnostics import Diagnostic
from satchel.errors import ConflictError, DefinitionError, ToolError
from satchel.files.state_files import make_folder, state_folder
from satchel.formats.server_table import ServerTable
from satchel.formats.table_model import read_table
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.client_callbacks import ClientCallbacks
from satchel.mcp_servers.pin_store import (
    PinStore,
    PinVerdict,
    ToolDrift,
    origin_in_code,
)
from satchel.mcp_servers.remote_client import RemoteClient
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer, SseServer, StdioServer
from satchel.mcp_servers.server_contributions import SOURCE, ServerOffer, held_error
from satchel.mcp_servers.server_declarations import unique_server_names
from satchel.mcp_servers.server_instructions import INSTRUCTIONS
from satchel.mcp_servers.server_options import Pin, ServerConfig, ServerOptions
from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition, check_definition
from satchel.names import plugin_name_fault, require_known
from satchel.settings import Limits, Settings
from satchel.tools.empty_mapping import NOTHING
from satchel.trust.name_owners import NameOwners

# Twice: a server that hangs is stopped only after its time for starting.
_START_FACTOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What is known of one MCP server now."""

    name: str
    server: RemoteServer
    is_known: bool
    """Whether the first connection succeeded or failed."""
    outage: Diagnostic | None
    """Why it is unavailable, or `None` while it is up."""
    log: str
    """The end of what its process wrote to its standard error."""


class ServerRegistry:
    """The MCP servers of one satchel, from its plugins, its files and its host.

    `on_change` is called in a thread whenever the snapshot of a server changes.
    """

    def __init__(
        self,
        settings: Settings,
        on_change: Callable[[], None],
        callbacks: ClientCallbacks | None = None,
    ) -> None:
        self._limits, self._folder = settings.limits, state_folder(settings.state_folder)
        self._pins: dict[str, PinStore] = {}
        self._pool = ServerPool(self._limits, on_change, folder=self._folder, callbacks=callbacks)
        self._serial = itertools.count(1)
        self._handles: dict[str, tuple[ServerConfig, ServerHandle]] = {}
        self._declared: dict[str, ServerConfig] = {}
        self._removed: list[ServerConfig] = []

    def create(
        self,
        server: RemoteServer | RemoteClient | ServerConfig,
        *,
        name: str | None,
        groups: tuple[str, ...],
        enable: Iterable[str] | None,
        disable: Iterable[str] | None,
        presets: Mapping[str, Mapping[str, Any]] | None,
        timeout: float | None,
        pin: Pin,
        options: ServerOptions | None,
        identity: str | None = None,
    ) -> ServerConfig:
        """Return the validated configuration. Raises `DefinitionError` and `ConflictError`."""
        stateless, origin, path = False, None, ""
        is_copy = isinstance(server, ServerConfig)
        if isinstance(server, ServerConfig):
            options, path = options or server.options, server.path
            origin, server = server.origin, server.server
        if isinstance(server, RemoteClient):
            stateless = server.stateless
            timeout = server.timeout if timeout is None else timeout
            server = server.server
        if not isinstance(server, StdioServer | HttpServer | SseServer):
            raise DefinitionError(
                f"{type(server).__name__} is not an MCP server",
                fix="pass a StdioServer, an HttpServer, an SseServer or a RemoteClient",
            )
        if identity is not None and (not isinstance(identity, str) or not identity):
            raise DefinitionError("the identity of a server must be a string that is not empty")
        origin = origin or origin_in_code(server, name, identity)
        name = server.name if name is None else name
        if fault := plugin_name_fault(name) if isinstance(name, str) else "is not a string":
            raise DefinitionError(f"the name {name!r} of a server {fault}")
        is_of_plugin = name in self._declared and self._declared[name].owner
        if name in self._handles and not is_of_plugin:
            raise ConflictError(
                f"a server {name!r} is connected already", fix="remove it first, or pass name="
            )
        read_table(ServerTable, {"timeout": timeout, "pin": pin})
        return ServerConfig(
            name=name,
            server=server,
            serial=self._new_serial(),
            groups=groups,
            enable=None if enable is None else _tool_names(enable),
            disable=() if disable is None else _tool_names(disable),
            presets=_valid_presets(NOTHING if presets is None else presets),
            timeout=timeout,
            pin=pin,
            stateless=stateless,
            options=options or ServerOptions(),
            origin=origin,
            path=path,
            is_copy=is_copy,
        )

    def _new_serial(self) -> str:
        return f"server {next(self._serial)}"

    def add(self, config: ServerConfig) -> ServerHandle:
        """Start to connect to a server; one of a plugin leaves its name to it."""
        if config.name in self._handles:
            self._disconnect([config.name])
        handle = self._pool.add(
            config,
            pinned=self._pinned_tools(config),
            refusal=partial(self._refusal, config) if config.pin == "hold" else None,
        )
        self._handles[config.name] = config, handle
        return handle

    def _refusal(
        self, config: ServerConfig, snapshot: ServerSnapshot, tool: ToolDefinition
    ) -> ToolError | None:
        """Return the error for a call of a tool that is held; `None` for any other tool."""
        drift = self._pins_of(config).compare(snapshot.to_pin).drift.get(tool.name)
        return held_error(config.name, tool.name, drift) if drift is not None else None

    def _pinned_tools(self, config: ServerConfig) -> tuple[ToolDefinition, ...]:
        """Return the tools that a server had when its pins were written."""
        if config.pin == "off":
            return ()
        pinned = self._pins_of(config).known_tools()
        tools = tuple(tool for tool in pinned if tool.name != INSTRUCTIONS)
        tools = tools[: self._limits.mcp_tools]
        return _checked(tools, self._limits) if config.options.lazy else tools

    def update(
        self,
        declared: Iterable[ServerConfig],
        left_out: Iterable[str] = (),
        owners: NameOwners | None = None,
    ) -> bool:
        """Connect to the declared servers, and disconnect those no longer declared.

        Return whether that changed anything. Servers that are `left_out` keep their names.
        """
        registered = [name for name in self._handles if name not in self._declared]
        current = unique_server_names(
            (item for item in declared if item not in self._removed),
            (*registered, *left_out),
            owners,
        )
        gone = [name for name, item in self._declared.items() if current.get(name) != item]
        self._disconnect(gone)
        new = [(name, item) for name, item in current.items() if name not in self._handles]
        for name, item in new:
            if item.data:
                make_folder(item.data)
            self.add(replace(item, name=name, serial=self._new_serial()))
        self._declared = current
        # As after a new start, when the declared ones are there first.
        self._handles = {name: self._handles[name] for name in {**current, **self._handles}}
        return bool(gone or new)

    def wait(self, seconds: float | None) -> bool:
        """Wait until every server is connected or failed. Return `False` after `seconds`.

        `None` waits twice as long as the slowest server may take to start.
        """
        if seconds is None:
            starts = (handle.start_seconds for _, handle in self._handles.values())
            seconds = max(starts, default=0.0) * _START_FACTOR
        end = time.monotonic() + seconds
        return all(
            handle.wait(max(0.0, end - time.monotonic())) for _, handle in self._handles.values()
        )

    def remove(self, names: Iterable[str]) -> None:
        """Disconnect servers. Raises `NotFoundError`, and removes none, if one is unknown."""
        names = tuple(names)
        for name in names:
            require_known("MCP server", name, self._handles)
        self._removed += [self._declared[name] for name in names if name in self._declared]
        self._disconnect(names)

    def _disconnect(self, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            config, handle = self._handles.pop(name)
            self._declared.pop(name, None)
            self._pins.pop(config.serial, None)
            self._pool.remove(handle)

    def remove_tool(self, owner: str, tool: str) -> bool:
        """Remove a tool of a server. Return `False` if no server has the catalog name `owner`."""
        name = owner.removeprefix(f"{SOURCE}:")
        if owner == name or name not in self._handles:
            return False
        config, handle = self._handles[name]
        self._handles[name] = replace(config, removed=(*config.removed, tool)), handle
        return True

    def offered(self) -> tuple[ServerOffer, ...]:
        """Return what each server offers now, in the order in which they were added.

        One that is starting offers nothing yet, and says so.
        """
        offers, is_settled = [], True
        # A copy: the host may add servers in another thread.
        for config, handle in tuple(self._handles.values()):
            is_settled &= handle.is_settled
            offers.append(self._offer(config, handle, is_settled=is_settled))
        return tuple(offers)

    def _offer(
        self, config: ServerConfig, handle: ServerHandle, *, is_settled: bool
    ) -> ServerOffer:
        snapshot = handle.snapshot  # read after `is_settled`, so that it is not older
        verdict = PinVerdict()
        if config.pin != "off" and snapshot.is_up:
            verdict = self._pins_of(config).compare(snapshot.to_pin)
        return ServerOffer(
            config=config,
            snapshot=snapshot,
            verdict=verdict,
            handle=handle,
            is_settled=is_settled,
        )

    def states(self) -> tuple[ServerState, ...]:
        """Return the state of each server, in the order in which they were added."""
        return tuple(
            ServerState(
                name=config.name,
                server=config.server,
                is_known=handle.is_settled,
                outage=handle.snapshot.outage,
                log=handle.log,
            )
            for config, handle in tuple(self._handles.values())
        )

    def approve(
        self, name: str, tools: tuple[str, ...], digests: Mapping[str, str] | None
    ) -> tuple[str, ...]:
        """Pin some or all tools of a server. Return those that were not pinned so before.

        Raises `NotFoundError`, and `ConflictError` while the server is down or if a tool has
        another digest.
        """
        require_known("MCP server", name, self._handles)
        config, handle = self._handles[name]
        snapshot = handle.snapshot
        if snapshot.outage is not None:
            raise ConflictError(snapshot.outage.message, fix=snapshot.outage.fix)
        tool_names = [tool.name for tool in snapshot.to_pin]
        for tool in (*tools, *(digests or ())):
            require_known("tool", tool, tool_names)
        return self._pins_of(config).approve(snapshot.to_pin, tools, digests)

    def drift(self, name: str) -> Mapping[str, ToolDrift]:
        """Return how tools and instructions of a server differ from what was approved.

        Raises `NotFoundError`.
        """
        require_known("MCP server", name, self._handles)
        config, handle = self._handles[name]
        return self._offer(config, handle, is_settled=handle.is_settled).verdict.drift

    def _pins_of(self, config: ServerConfig) -> PinStore:
        if config.serial not in self._pins:
            self._pins[config.serial] = PinStore(self._folder, config.name, config.origin)
        return self._pins[config.serial]

    def close(self) -> None:
        """Close all connections, the last opened first."""
        self._handles.clear()
        self._pool.close()


def _checked(tools: Iterable[ToolDefinition], limits: Limits) -> tuple[ToolDefinition, ...]:
    """Return the definitions that are valid: the file of pins may have been edited."""
    checked = []
    for tool in tools:
        with suppress(DefinitionError):
            checked.append(check_definition(tool, limits))
    return tuple(checked)


def _tool_names(value: Iterable[str]) -> tuple[str, ...]:
    """Normalize a single name or an iterable of names. Raises `DefinitionError`."""
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"names of tools must be strings, not {value!r}")
    return names


def _valid_presets(presets: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    tables = [presets, *presets.values()] if isinstance(presets, Mapping) else [presets]
    if not all(isinstance(values, Mapping) for values in tables):
        raise DefinitionError(
            "the presets of a server must map names of its tools to arguments and values",
            fix='write presets={"tool": {"argument": value}}, or {"*": {...}} for all tools',
        )
    return {tool: dict(values) for tool, values in presets.items()}
