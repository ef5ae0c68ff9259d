"""LangChain's create_agent without an event loop: `invoke` in a thread."""

import asyncio
from types import MappingProxyType

from langchain_host import Host as AsyncHost
from langchain_host import read


class Host(AsyncHost):
    name = "LangChain, without a loop"
    cannot = MappingProxyType(
        {
            "chunks_reach_the_host": "invoke returns whole results: "
            "langchain/agents/middleware/types.py, wrap_tool_call returns one message",
            "cancelling_reaches_the_tool": "a thread that waits in invoke cannot be cancelled",
        }
    )

    async def _invoke(self, agent, given, config):
        return await asyncio.to_thread(agent.invoke, given, config)

    async def run(self, agent, user, model):
        said = {"messages": [{"role": "user", "content": user}]}
        config = {"recursion_limit": 10_000}
        done = await asyncio.to_thread(agent.invoke, said, config, context=user)
        read(done["messages"], model)
