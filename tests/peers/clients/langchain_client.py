"""langchain-mcp-adapters."""

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from peer_report import ARGUMENTS, report


async def main(kind, target):
    if kind == "stdio":
        how = {"transport": "stdio", "command": target[0], "args": target[1:]}
    else:
        how = {"transport": "streamable_http", "url": target[0]}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"peer": how}).get_tools()}
    called = await tools["echo"].ainvoke(ARGUMENTS)
    report(tools, called if isinstance(called, str) else called[0]["text"])


asyncio.run(main(sys.argv[1], sys.argv[2:]))
