"""The MCP servers that a plugin declares."""

import re
from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from satchel.formats.frozen_values import to_plain
from satchel.lazy_dataclass import dataclass

MCP_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json": "1.0.0"}
)
"""The known schemas of `mcp.json`, each with its version of the format."""

PLUGIN_ROOT = "PLUGIN_ROOT"
"""The variable with the plugin's folder, for its servers."""

PLUGIN_DATA = "PLUGIN_DATA"
"""The variable with the folder where a plugin's servers can store data."""

HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[ \t!-~\x80-\xff]*[!-~\x80-\xff])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerManifest:
    """One MCP server that a plugin or a `.mcp.json` declares.

    Each format is read as a table with the keys of a satchel.toml.
    """

    name: str
    table: Mapping[str, Any] = field(hash=False)
    """Its placeholders are not filled in yet."""
    of_claude: bool = False
    """Whether a Claude bundle declares it; its placeholders may name any variable."""
    lines: Mapping[str, int | None] = field(default_factory=dict, compare=False, repr=False)
    """The lines of its keys, if known."""

    @property
    def is_local(self) -> bool:
        """Return whether it is a program on this machine, not an address."""
        return "command" in self.table

    @property
    def plain_table(self) -> dict[str, Any]:
        """Return a copy of the table, with lists and dicts, as TOML is read."""
        table: dict[str, Any] = to_plain(self.table)
        return table


def is_header(name: str, value: str) -> bool:
    """Return whether this is a valid HTTP header."""
    return bool(HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value))


def is_loopback(host: str) -> bool:
    """Return whether the name or address of a host is this machine's."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
