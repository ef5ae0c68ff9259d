"""The MCP servers that a plugin declares."""

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

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


def no_pairs() -> Mapping[str, Any]:
    """Return an empty read-only mapping."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerManifest:
    """One MCP server that a plugin declares, with its placeholders not yet filled in.

    `transport` is `stdio`, with a command, or `streamable-http` or `sse`, with a URL.
    """

    name: str
    transport: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    cwd: str = ""
    env_file: str = ""
    """A file with more environment variables."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    client_id: str = ""
    """The OAuth client as which to log in, if the server wants that."""
    redirect: str = ""
    """The registered redirect address of that client."""
    scopes: tuple[str, ...] = ()
    """OAuth scopes to ask for."""
    or_sse: bool = False
    """Whether no transport is named, so that `sse` is tried if the server refuses the other."""
    of_claude: bool = False
    """Whether a Claude bundle declares it; its placeholders may name any variable."""
    enable: tuple[str, ...] | None = None
    """The only tools to use, or patterns of them."""
    disable: tuple[str, ...] = ()
    """Tools that are not used."""
    timeout: float | None = None
    """Seconds that a call may take."""
    startup_timeout: float | None = None
    """Seconds that it may take to start or to be reached."""
    protocol: Literal["auto", "legacy"] = "auto"
    """`legacy` if it is spoken to in the protocol up to 2025-11-25."""
    lines: Mapping[str, int | None] = field(default_factory=no_pairs, compare=False, repr=False)
    """The lines of its keys, if known."""


def is_header(name: str, value: str) -> bool:
    """Return whether this is a valid HTTP header."""
    return bool(HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value))
