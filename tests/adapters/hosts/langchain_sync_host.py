"""LangChain's create_agent without an event loop: `invoke` and `stream` in a thread."""

import asyncio
from types import MappingProxyType

from langchain_host import Host as AsyncHost
from langchain_host import note

from satchel.testing.adapter_checks import Cannot


class Host(AsyncHost):
    name = "LangChain, without a loop"
    cannot = MappingProxyType(
        {
            "cancelling_reaches_the_tool": Cannot(
                "a thread that waits in invoke cannot be cancelled",
                "asyncio.threads",
                "return await loop.run_in_executor(None, func_call)",
            )
        }
    )

    async def _invoke(self, agent, state, config):
        return await asyncio.to_thread(agent.invoke, state, config)

    async def run(self, agent, user, model):
        await asyncio.to_thread(self._stream, agent, user, model)

    def _stream(self, agent, user, model):
        message, config = (
            {"messages": [{"role": "user", "content": user}]},
            {"recursion_limit": 10_000},
        )
        modes = ["custom", "values"]
        for mode, item in agent.stream(message, config, context=user, stream_mode=modes):
            note(mode, item, model)
