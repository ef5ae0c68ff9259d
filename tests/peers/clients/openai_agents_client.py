"""The OpenAI Agents SDK."""

import asyncio
import sys

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from peer_report import ARGUMENTS, report


async def main(kind, target):
    if kind == "stdio":
        server = MCPServerStdio(
            params={"command": target[0], "args": target[1:]}, client_session_timeout_seconds=60
        )
    else:
        server = MCPServerStreamableHttp(
            params={"url": target[0]}, client_session_timeout_seconds=60
        )
    async with server:
        tools = [tool.name for tool in await server.list_tools()]
        called = (await server.call_tool("echo", ARGUMENTS)).content[0].text
    report(tools, called)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
