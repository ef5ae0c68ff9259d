"""How a server is started, and how its tools appear here."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from satchel.errors import DefinitionError
from satchel.formats.frozen_values import to_plain
from satchel.formats.mcp_json import is_header
from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING

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
        from satchel.formats.server_table import OptionsTable
        from satchel.formats.table_model import read_table

        values = {item.name.replace("_", "-"): getattr(self, item.name) for item in fields(self)}
        read_table(OptionsTable, to_plain(values))
        for header in self.forward_headers:
            lowered = header.lower()
            is_own = lowered in _OWN_HEADERS or lowered.startswith(("mcp-", "proxy-"))
            if is_own or not is_header(header, ""):
                message = f"its forward-headers has {header!r}, which cannot be forwarded"
                raise DefinitionError(message)

    def name_of(self, tool: str) -> str:
        """Return the name that a tool should have here."""
        return self.rename.get(tool) or self.prefix + tool


def forwarded(options: ServerOptions, headers: Any) -> dict[str, str]:
    """Return the headers of a caller's request that are sent on to the server."""
    if not options.forward_headers or not isinstance(headers, Mapping):
        return {}
    given = {str(name).lower(): value for name, value in headers.items()}
    values = ((name, given.get(name.lower())) for name in options.forward_headers)
    return {
        name: value
        for name, value in values
        if isinstance(value, str) and value.isascii() and is_header(name, value)
    }
