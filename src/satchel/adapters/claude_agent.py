"""Skills and tools for the Claude Agent SDK: `query(prompt="Hello", options=options(...))`.

The SDK drops the messages by which a server in its process says that its tools changed, so Satchel
runs in a process of its own, over stdio.
"""

import sys
from collections.abc import Sequence
from typing import Any

from satchel.adapters import framework

with framework("claude-agent-sdk"):
    from claude_agent_sdk import ClaudeAgentOptions

_THIS_SATCHEL = (sys.executable, "-P", "-m", "satchel")  # -P: no module of the current folder


def options(
    *arguments: str,
    name: str = "satchel",
    command: Sequence[str] = _THIS_SATCHEL,
    **options: Any,
) -> ClaudeAgentOptions:
    """Return options with `satchel serve` as one more MCP server; `options` are the SDK's own.

    `arguments` are those of `satchel serve`, such as `"--skills", "skills"`. `command` starts a
    Satchel of another environment. The SDK calls the tools `mcp__satchel__NAME`, and asks before
    each unless `allowed_tools` has `mcp__satchel`.
    """
    program, *before = command
    server = {"type": "stdio", "command": program, "args": [*before, "serve", *arguments]}
    servers = {**options.pop("mcp_servers", {}), name: server}
    return ClaudeAgentOptions(mcp_servers=servers, **options)
