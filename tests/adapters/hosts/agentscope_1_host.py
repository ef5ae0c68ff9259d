"""AgentScope 1's ReActAgent with a scripted model."""

from types import MappingProxyType

from agentscope.formatter import OpenAIChatFormatter
from agentscope.memory import InMemoryMemory
from agentscope.message import Msg, TextBlock, ToolUseBlock
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.tool import Toolkit, ToolResponse

from satchel.adapters.agentscope_1 import agent
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(ChatModelBase):
    def __init__(self, script):
        super().__init__("scripted", False)
        self.script = script

    async def __call__(self, messages, tools=None, tool_choice=None, **_):
        content = messages[0]["content"]
        prompt = content if isinstance(content, str) else content[0]["text"]
        names = [tool["function"]["name"] for tool in tools or []]
        calls = self.script.answer(names, prompt)
        uses = [
            ToolUseBlock(type="tool_use", id=call.id, name=call.name, input=dict(call.arguments))
            for call in calls
        ]
        return ChatResponse(content=uses or [TextBlock(type="text", text="done")])


def who_am_i() -> ToolResponse:
    """Say who it is."""
    return ToolResponse([TextBlock(type="text", text="the host's own")])


class Host:
    name = "AgentScope 1"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "the_framework_asks_for_approval": Cannot(
                "the agent has no confirmation: approve(ask)",
                "agentscope.agent._react_agent",
                "tool_res = await self.toolkit.call_tool_function(tool_call)",
            ),
            "a_tool_of_the_provider_stays": Cannot(
                "a toolkit has only functions that the agent runs",
                "agentscope.tool._toolkit",
                "tool_func: ToolFunction,",
            ),
            "errors_are_marked": Cannot(
                "of a response, only the content gets into the message",
                "agentscope.agent._react_agent",
                'tool_res_msg.content[0][  # type: ignore[index]\n"output"\n] = chunk.content',
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        toolkit = Toolkit()
        if tools:
            toolkit.register_tool_function(who_am_i)
        return source, prompt, toolkit

    async def run(self, agent_of, user, model):
        source, prompt, toolkit = agent_of
        created = agent(
            source,
            toolkit=toolkit,
            name=user,
            sys_prompt=prompt or "Help.",
            model=Scripted(model),
            formatter=OpenAIChatFormatter(),
            memory=InMemoryMemory(),
            parallel_tool_calls=True,
            max_iters=10_000,
        )
        created.set_console_output_enabled(False)

        def note(_agent, event):
            for block in event["msg"].get_content_blocks("tool_result"):
                if not event["last"]:
                    model.chunks.append(block["output"][-1]["text"])

        created.register_instance_hook("pre_print", "chunks", note)
        await created(Msg("user", "go", "user"))
        for message in await created.memory.get_memory():
            for block in message.get_content_blocks("tool_result"):
                texts = [part["text"] for part in block["output"] if part["type"] == "text"]
                media = sum(part["type"] == "image" for part in block["output"])
                model.answers[block["id"]] = Answered(" ".join(texts), None, media)

    def user_of(self, context):
        return context if isinstance(context, str) else context.name
