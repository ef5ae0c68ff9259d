"""LangChain's create_agent with a scripted model, asynchronous and blocking."""

from types import MappingProxyType
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from satchel.adapters.langchain import middleware
from satchel.testing.adapter_checks import Answered


class Scripted(BaseChatModel):
    script_of: Any
    bound: list = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        names = [
            item.get("function", item)["name"] if isinstance(item, dict) else item.name
            for item in tools
        ]
        return Scripted(script_of=self.script_of, bound=names)

    def _generate(self, messages, stop=None, run_manager=None, **_):
        user = next(m.text for m in messages if m.type == "human")
        script = self.script_of(user)
        read(messages, script)
        prompt = messages[0].text if messages[0].type == "system" else ""
        calls = [
            {"name": call.name, "args": dict(call.arguments), "id": call.id}
            for call in script.answer(self.bound, prompt)
        ]
        message = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


OWN = {"who_am_i": who_am_i, "web_search": {"type": "web_search", "name": "web_search"}}


class Host:
    name = "LangChain"
    own_tool, provider_tool = "who_am_i", "web_search"
    cannot = MappingProxyType({})

    def make(self, source, model, prompt, tools):
        return create_agent(
            Scripted(script_of=model),
            tools=[OWN[name] for name in tools],
            system_prompt=prompt or None,
            middleware=[middleware(source)],
            context_schema=str,
        )

    async def run_asking(self, session, model, *, answer):
        saver = InMemorySaver()

        def agent():
            return create_agent(
                Scripted(script_of=lambda _: model),
                middleware=[middleware(session(), approvals=True)],
                checkpointer=saver,
            )

        config = {"configurable": {"thread_id": "one"}}
        messages = {"messages": [{"role": "user", "content": "go"}]}
        done = await self._invoke(agent(), messages, config)
        (asked,) = done["__interrupt__"]
        assert asked.value["type"] == "tool_approval"
        decision = Command(resume={"type": "approve" if answer else "reject"})
        read((await self._invoke(agent(), decision, config))["messages"], model)
        return 1

    async def _invoke(self, agent, state, config):
        return await agent.ainvoke(state, config)

    async def run(self, agent, user, model):
        messages = {"messages": [{"role": "user", "content": user}]}
        stream = agent.astream(
            messages, {"recursion_limit": 10_000}, context=user, stream_mode=["custom", "values"]
        )
        async for mode, item in stream:
            note(mode, item, model)

    def user_of(self, context):
        return context if isinstance(context, str) else context.context


def note(mode, item, script):
    if mode == "custom":
        script.chunks.append(item["text"])
    else:
        read(item["messages"], script)


def read(messages, script):
    for message in messages:
        if message.type == "tool":
            blocks = message.content if isinstance(message.content, list) else []
            media = sum(block["type"] == "image" for block in blocks)
            script.answers[message.tool_call_id] = Answered(
                message.text, message.status == "error", media
            )
