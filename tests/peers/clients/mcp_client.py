"""The official SDK, 1.x or 2.x."""

import asyncio
import sys
from importlib.metadata import version

from peer_report import ARGUMENTS, at_end, report


async def first(kind, target):
    """The SDK 1.x: a session on the streams of a transport."""
    from datetime import timedelta

    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    start = StdioServerParameters(command=target[0], args=target[1:]) if kind == "stdio" else None
    transport = stdio_client(start) if start else streamablehttp_client(target[0])
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        if "echo" not in tools:
            await session.call_tool("reset_equipped_tools", {"peer": True})
            tools = [tool.name for tool in (await session.list_tools()).tools]
        called = (await session.call_tool("echo", ARGUMENTS)).content[0].text

    async def leave():
        again = stdio_client(start) if start else streamablehttp_client(target[0])
        async with again as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            await session.call_tool(
                "slow", {"seconds": 1.2}, read_timeout_seconds=timedelta(seconds=0.5)
            )

    report(tools, called, await at_end(leave()))


async def second(kind, target):
    """The SDK 2.x: one client."""
    from mcp import Client, StdioServerParameters

    def connect():
        if kind == "stdio":
            return Client(StdioServerParameters(command=target[0], args=target[1:]))
        return Client(target[0])

    async with connect() as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        called = (await client.call_tool("echo", ARGUMENTS)).content[0].text

    async def leave():
        async with connect() as client:
            await client.call_tool("slow", {"seconds": 1.2}, read_timeout_seconds=0.5)

    report(tools, called, await at_end(leave()))


client = first if version("mcp").startswith("1.") else second
asyncio.run(client(sys.argv[1], sys.argv[2:]))
