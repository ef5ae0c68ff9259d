"""AgentScope 2 with a scripted model."""

import json
from types import MappingProxyType, SimpleNamespace

from agentscope.agent import Agent, ReActConfig
from agentscope.event import (
    ConfirmResult,
    RequireUserConfirmEvent,
    UserConfirmResultEvent,
)
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import ToolBase, ToolChunk, Toolkit

from satchel.adapters.agentscope import middleware
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(ChatModelBase):
    def __init__(self, script):
        super().__init__(credential=None, model="scripted", parameters=None, stream=False)
        self.formatter = SimpleNamespace(supported_input_media_types=["image/*"])
        self.script = script

    async def _call_api(self, model_name, messages, tools=None, tool_choice=None, **_):
        read(messages, self.script)
        names = [tool["function"]["name"] for tool in tools or []]
        calls = [
            ToolCallBlock(id=call.id, name=call.name, input=json.dumps(dict(call.arguments)))
            for call in self.script.answer(names, messages[0].get_text_content())
        ]
        return ChatResponse(content=calls or [TextBlock(text="done")], is_last=True)

    async def count_tokens(self, *_, **__):
        return 10


class WhoAmI(ToolBase):
    name, description = "who_am_i", "Say who it is."
    input_schema = MappingProxyType({"type": "object", "properties": {}})
    is_concurrency_safe = is_read_only = True
    is_mcp = False

    async def check_permissions(self, *_, **__):
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")

    async def call(self):
        return ToolChunk(content=[TextBlock(text="the host's own")])


class Host:
    name = "AgentScope 2"
    own_tool, provider_tool = "who_am_i", ""
    cannot = MappingProxyType(
        {
            "a_tool_of_the_provider_stays": Cannot(
                "a toolkit has only tools that the agent runs",
                "agentscope.tool._toolkit",
                "tools: list[ToolBase] | None = None,",
            )
        }
    )

    def make(self, source, model, prompt, tools):
        tool = WhoAmI()
        tool.input_schema = dict(tool.input_schema)
        return middleware(source), prompt, Toolkit(tools=[tool] if tools else [])

    async def run_asking(self, session, model, *, answer):
        message, asked, state = UserMsg(name="user", content="go"), [], AgentState()
        while message:
            state = AgentState.model_validate_json(state.model_dump_json())
            agent = self._agent(middleware(session(), approvals=True), "ada", model, state=state)
            questions = [
                event
                async for event in agent.reply_stream(message)
                if isinstance(event, RequireUserConfirmEvent)
            ]
            asked += questions
            results = [
                ConfirmResult(confirmed=answer, tool_call=call)
                for event in questions
                for call in event.tool_calls
            ]
            message = results and UserConfirmResultEvent(
                reply_id=agent.state.reply_id, confirm_results=results
            )
        read(agent.state.context, model)
        return len(asked)

    async def run(self, agent, user, model):
        shared, prompt, toolkit = agent
        agent = self._agent(shared, user, model, prompt=prompt, toolkit=toolkit)
        async for event in agent.reply_stream(UserMsg(name="user", content="go")):
            if "ToolResult" in type(event).__name__ and hasattr(event, "delta"):
                model.chunks.append(str(event.delta))
        read(agent.state.context, model)

    def _agent(self, shared, user, model, *, prompt="", toolkit=None, state=None):
        return Agent(
            name=user,
            system_prompt=prompt,
            model=Scripted(model),
            toolkit=toolkit,
            state=state,
            middlewares=[shared],
            react_config=ReActConfig(max_iters=10_000),
        )

    def user_of(self, context):
        return context if isinstance(context, str) else context.name


def read(messages, script):
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else []
        for block in blocks:
            if block.type == "tool_result":
                output = block.output if isinstance(block.output, list) else []
                texts = [part.text for part in output if part.type == "text"]
                media = sum(part.type == "data" for part in output)
                text = " ".join(texts) if output else str(block.output)
                is_error = "error" in str(block.state).lower()
                script.answers[block.id] = Answered(text, is_error, media)
