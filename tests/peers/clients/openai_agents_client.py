"""The OpenAI Agents SDK."""

import asyncio
import sys

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from peer_report import ARGUMENTS, at_end, cut_short, report


def connect(kind, target):
    if kind == "stdio":
        how = {"command": target[0], "args": target[1:]}
        return MCPServerStdio(params=how, client_session_timeout_seconds=60)
    return MCPServerStreamableHttp(params={"url": target[0]}, client_session_timeout_seconds=60)


async def main(kind, target):
    async with connect(kind, target) as server:
        tools = [tool.name for tool in await server.list_tools()]
        called = (await server.call_tool("echo", ARGUMENTS)).content[0].text

    async def leave():
        async with connect(kind, target) as server:
            await cut_short(lambda arguments: server.call_tool("slow", arguments))

    report(tools, called, await at_end(leave()))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
