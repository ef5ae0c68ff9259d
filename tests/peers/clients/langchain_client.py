"""langchain-mcp-adapters."""

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from peer_report import ARGUMENTS, at_end, cut_short, report


async def main(kind, target):
    if kind == "stdio":
        how = {"transport": "stdio", "command": target[0], "args": target[1:]}
    else:
        how = {"transport": "streamable_http", "url": target[0]}
    client = MultiServerMCPClient({"peer": how})
    tools = {tool.name: tool for tool in await client.get_tools()}
    called = await tools["echo"].ainvoke(ARGUMENTS)

    async def leave():
        async with client.session("peer") as session:
            own = {tool.name: tool for tool in await load_mcp_tools(session)}
            await cut_short(own["slow"].ainvoke)

    left = await at_end(leave())
    report(tools, called if isinstance(called, str) else called[0]["text"], left)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
