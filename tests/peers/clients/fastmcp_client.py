"""fastmcp 2 or 3."""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from peer_report import ARGUMENTS, at_end, report


def connect(kind, target, **options):
    if kind == "stdio":
        transport = StdioTransport(command=target[0], args=target[1:], keep_alive=False)
    else:
        transport = StreamableHttpTransport(target[0])
    return Client(transport, **options)


async def main(kind, target):
    async with connect(kind, target) as client:
        tools = [tool.name for tool in await client.list_tools()]
        called = (await client.call_tool("echo", ARGUMENTS)).content[0].text

    async def leave():
        async with connect(kind, target) as client:
            await client.call_tool("slow", {"seconds": 1.2}, timeout=0.5)

    report(tools, called, await at_end(leave()))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
