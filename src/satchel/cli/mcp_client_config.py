"""Configuration blocks with which MCP clients start, or connect to, `satchel serve`."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from satchel.lazy_dataclass import dataclass

TOKEN = "YOUR_TOKEN"  # noqa: S105 - a placeholder
"""The user replaces this with their token: no secret is ever printed."""
TOKEN_VARIABLE = "SATCHEL_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """How one client configures its MCP servers."""

    file: str
    """The configuration file."""
    remote_file: str = ""
    """The file for servers that it connects to, if it is another one."""
    key: str = "mcpServers"
    url: str = "url"
    """The field for the address of a server."""
    local: str = ""
    """The `type` of a server that it starts, if it needs one."""
    remote: str = ""
    """The `type` of a server that it connects to, if it needs one."""
    is_toml: bool = False


CLIENTS: Mapping[str, Mapping[str, Any]] = {
    "claude": {
        "file": ".mcp.json, or claude_desktop_config.json",
        "remote_file": ".mcp.json",
        "remote": "http",
    },
    "codex": {"file": "~/.codex/config.toml", "key": "mcp_servers", "is_toml": True},
    "cursor": {"file": "~/.cursor/mcp.json, or .cursor/mcp.json"},
    "gemini": {"file": "~/.gemini/settings.json", "url": "httpUrl"},
    "vscode": {"file": ".vscode/mcp.json", "key": "servers", "local": "stdio", "remote": "http"},
    "windsurf": {"file": "~/.codeium/windsurf/mcp_config.json", "url": "serverUrl"},
    "zed": {"file": "the settings.json of Zed", "key": "context_servers"},
}
"""The fields of `McpClient` for each known client."""


def to_start(client: McpClient, name: str, arguments: Iterable[str]) -> str:
    """Return the block with which a client starts `satchel` with these arguments."""
    kind = {"type": client.local} if client.local else {}
    # -P: a client starts it in the folder of a project, whose modules must not be imported.
    command = {"command": sys.executable, "args": ["-P", "-m", "satchel", *arguments]}
    return _block(client, name, {**kind, **command})


def to_connect(client: McpClient, name: str, url: str, *, with_token: bool) -> str:
    """Return the block with which a client connects to an address."""
    kind = {"type": client.remote} if client.remote else {}
    token: dict[str, Any] = {}
    if with_token and client.is_toml:
        token = {"bearer_token_env_var": TOKEN_VARIABLE}
    elif with_token:
        token = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    return _block(client, name, {**kind, client.url: url, **token})


def _block(client: McpClient, name: str, server: dict[str, Any]) -> str:
    if not client.is_toml:
        return json.dumps({client.key: {name: server}}, indent=2)
    # JSON strings and lists are valid TOML, except that TOML also escapes DEL.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in server.items()
    ]
    return "\n".join([f"[{client.key}.{name}]", *lines])
