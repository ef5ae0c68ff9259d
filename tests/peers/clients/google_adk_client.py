"""The Agent Development Kit of Google."""

import asyncio
import sys

from google.adk.tools.mcp_tool.mcp_session_manager import (
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters
from peer_report import ARGUMENTS, at_end, cut_short, report


async def main(kind, target):
    if kind == "stdio":
        start = StdioServerParameters(command=target[0], args=target[1:])
        how = StdioConnectionParams(server_params=start, timeout=60)
    else:
        how = StreamableHTTPConnectionParams(url=target[0], timeout=60)
    toolset = McpToolset(connection_params=how)
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    session = await toolset._mcp_session_manager.create_session()
    called = (await session.call_tool("echo", ARGUMENTS)).content[0].text

    async def leave():
        try:
            await cut_short(lambda arguments: session.call_tool("slow", arguments))
        finally:
            await toolset.close()

    report(tools, called, await at_end(leave()))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
