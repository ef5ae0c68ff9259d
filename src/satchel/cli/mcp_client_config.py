"""What MCP clients want to have in their configuration to start a server, or to connect to one."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TOKEN = "YOUR_TOKEN"  # noqa: S105 - it stands for one
"""Stands where the user's own token goes: nothing secret is ever printed."""
TOKEN_VARIABLE = "SATCHEL_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """How a client writes its servers down."""

    file: str
    """Where it keeps them."""
    remote_file: str = ""
    """Where it keeps those that it connects to, if that is not the same."""
    key: str = "mcpServers"
    url: str = "url"
    """What it calls the address of a server."""
    local: str = ""
    """What it calls a server that it starts, if it wants that said."""
    remote: str = ""
    """What it calls a server that it connects to, if it wants that said."""
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
"""What is particular about the clients that are known, by the names to call them by."""


def mcp_client(name: str) -> McpClient:
    """Return one of the clients that are known."""
    return McpClient(**CLIENTS[name])


def to_start(client: McpClient, name: str, arguments: Iterable[str]) -> str:
    """Return the block with which a client starts `satchel` with some arguments."""
    typed = {"type": client.local} if client.local else {}
    command = {"command": sys.executable, "args": ["-m", "satchel", *arguments]}
    return _written(client, name, {**typed, **command})


def to_connect(client: McpClient, name: str, url: str, *, with_token: bool) -> str:
    """Return the block with which a client connects to an address."""
    typed = {"type": client.remote} if client.remote else {}
    proof: dict[str, Any] = {}
    if with_token and client.is_toml:
        proof = {"bearer_token_env_var": TOKEN_VARIABLE}
    elif with_token:
        proof = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    return _written(client, name, {**typed, client.url: url, **proof})


def absolute(options: Iterable[tuple[str, str]], paths: Iterable[str]) -> list[str]:
    """Write options out for a program that runs in another folder: `paths` name folders."""
    named = frozenset(paths)
    return [
        word
        for option, value in options
        for word in (option, os.path.abspath(value) if option in named else value)
    ]


def _written(client: McpClient, name: str, server: dict[str, Any]) -> str:
    if not client.is_toml:
        return json.dumps({client.key: {name: server}}, indent=2)
    lines = [f"{key} = {_in_toml(value)}" for key, value in server.items()]
    return "\n".join([f"[{client.key}.{name}]", *lines])


def _in_toml(value: Any) -> str:
    """Write a text, or a list of them: in TOML they look like those of JSON, nearly."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
