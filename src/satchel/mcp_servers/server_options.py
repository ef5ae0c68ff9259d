"""How a server is started, and how its tools appear here."""

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any, Literal

from satchel.configuration.selection import tool_filter
from satchel.diagnostics import Diagnostic
from satchel.errors import DefinitionError
from satchel.formats.frozen_values import to_plain
from satchel.formats.mcp_json import is_header
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import RemoteServer, StdioServer
from satchel.mcp_servers.tool_naming import fit_tool_name
from satchel.tools.empty_mapping import NOTHING

Pin = Literal["hold", "warn", "off"]
"""What happens to a tool that differs from its pin."""

_OWN_HEADERS = frozenset({"host", "content-length", "content-type", "accept", "connection"})
"""Headers of a connection, which are never forwarded; nor are those of the protocol, `mcp-...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How to start a server, and how to show its tools. Names of tools are those at the server."""

    active: bool | None = None
    """Whether its own group is active in a new session.

    `None` is no, but `satchel serve` shows it to clients that cannot switch groups.
    """
    startup_timeout: float | None = None
    """Seconds to start or connect; the limit `mcp_startup` or `mcp_connect` without it."""
    protocol: Literal["auto", "legacy"] = "auto"
    """`auto` uses the newest version of the protocol that it speaks, `legacy` at most 2025-11-25.

    Only the older versions let a server ask something in the middle of a call.
    """
    lazy: bool = False
    """Whether it is started at its first call; until then its pins say which tools it has."""
    prefix: str = ""
    """Text in front of the name of each tool that is not renamed."""
    rename: Mapping[str, str] = field(default=NOTHING, hash=False)
    """Other names for tools."""
    rename_arguments: Mapping[str, Mapping[str, str]] = field(default=NOTHING, hash=False)
    """Other names for arguments, by tool."""
    descriptions: Mapping[str, str] = field(default=NOTHING, hash=False)
    """Descriptions for tools instead of those of the server."""
    roots: tuple[str, ...] = ()
    """Folders that the server may ask for, as its roots."""
    max_calls: int | None = None
    """How many calls may run at once; further calls wait."""
    forward_headers: tuple[str, ...] = ()
    """Names of HTTP headers of the caller's request that are sent on with each call."""

    def __post_init__(self) -> None:
        for name in ("roots", "forward_headers"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        # lazy: pydantic is needed only with an MCP server
        from satchel.formats.server_table import ServerTable
        from satchel.formats.table_model import read_table

        values = {item.name.replace("_", "-"): getattr(self, item.name) for item in fields(self)}
        read_table(ServerTable, to_plain(values))
        for header in self.forward_headers:
            lowered = header.lower()
            is_own = lowered in _OWN_HEADERS or lowered.startswith(("mcp-", "proxy-"))
            if is_own or not is_header(header, ""):
                message = f"its forward-headers has {header!r}, which cannot be forwarded"
                raise DefinitionError(message)

    def name_of(self, tool: str) -> str:
        """Return the name that a tool should have here."""
        return self.rename.get(tool) or self.prefix + tool

    def forwarded(self, headers: Any) -> dict[str, str]:
        """Return the headers of a caller's request that are sent on to the server."""
        if not isinstance(headers, Mapping):
            return {}
        received = {str(name).lower(): value for name, value in headers.items()}
        values = ((name, received.get(name.lower())) for name in self.forward_headers)
        return {
            name: value
            for name, value in values
            if isinstance(value, str) and value.isascii() and is_header(name, value)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """How to connect to a server, and what to use of it."""

    name: str
    server: RemoteServer
    serial: str = ""
    """Unique for each connection; a later server of the same name has another serial."""
    owner: str = ""
    """The plugin that declares it, or `""` for the user and the host."""
    path: str = ""
    """The file or folder that declares it."""
    data: str = ""
    """The folder for its data, or `""`."""
    declared: str = field(default="", repr=False)
    """Its declaration as JSON: variables are not filled in."""
    groups: tuple[str, ...] = ()
    """Where its tools belong; without any they have a group of the server's name."""
    enable: tuple[str, ...] | None = None
    """The tools that are wanted, or patterns of them; `None` for all."""
    disable: tuple[str, ...] = ()
    presets: Mapping[str, Mapping[str, Any]] = field(default=NOTHING, repr=False, hash=False)
    timeout: float | None = None
    pin: Pin = "hold"
    stateless: bool = False
    options: ServerOptions = field(default_factory=ServerOptions)
    removed: tuple[str, ...] = ()
    """Tools that the host removed at runtime."""
    origin: ServerOrigin = field(default_factory=ServerOrigin)
    is_copy: bool = False
    """Whether another `Satchel` declares it, which records its names."""

    def keeps(self, name: str) -> bool:
        """Return whether a name here may be that of a tool which it does not offer now."""
        options, patterns = self.options, (*(self.enable or ()), *self.disable)
        tools = {name.removeprefix(f"{self.name}_").removeprefix(options.prefix), name}
        tools |= {name.removeprefix(options.prefix), *options.rename}
        tools |= {tool for tool in patterns if fit_tool_name(tool) in tools}
        own = {it for it in tools if name in self._names_here(it)}
        enables, disables = tool_filter(self.enable, ()), tool_filter(None, self.disable)
        return any(map(enables, own)) and all(map(disables, own))

    def _names_here(self, tool: str) -> tuple[str, str]:
        name = self.options.name_of(tool)
        return fit_tool_name(name), fit_tool_name(f"{self.name}_{name}")

    @property
    def place(self) -> str:
        """Return where it is declared, with its name there; the record of names knows it so."""
        return f"{self.path}//{self.origin.name or self.name}"

    def checked(self, check: Callable[[], Diagnostic | None] | None) -> "ServerConfig":
        """Return the server with a check before each start of its program, if it has one."""
        if check is None or not isinstance(self.server, StdioServer):
            return self
        return replace(self, server=replace(self.server, check=check))

    def start_problem(self) -> Diagnostic | None:
        """Return why its program must not be started now, `None` if it may be."""
        check = self.server.check if isinstance(self.server, StdioServer) else None
        return check() if check else None

    @property
    def wants(self) -> Callable[[str], bool]:
        """Return whether the tool of a name is enabled and was not removed."""
        enables = tool_filter(self.enable, self.disable)
        return lambda tool: enables(tool) and tool not in self.removed
