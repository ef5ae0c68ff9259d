"""Microsoft's Agent Framework with a scripted model."""

import json
from types import MappingProxyType

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from satchel.adapters.agent_framework import provider
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    async def _answer(self, messages, options):
        message = next(item.text for item in messages if item.role == "user")
        script = self.script_of(message)
        read(messages, script)
        names = [
            item["name"] if isinstance(item, dict) else item.name for item in options["tools"] or []
        ]
        calls = script.answer(names, options.get("instructions"))
        contents = [
            Content.from_function_call(
                call_id=call.id, name=call.name, arguments=json.dumps(dict(call.arguments))
            )
            for call in calls
        ]
        message = Message(role="assistant", contents=contents or [Content.from_text("done")])
        return ChatResponse(messages=[message])

    def _inner_get_response(self, *, messages, stream, options, **_):
        return self._answer(messages, options)


@tool(approval_mode="never_require")
def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


WEB_SEARCH = {"type": "web_search", "name": "web_search"}
OWN = {"who_am_i": who_am_i, "web_search": WEB_SEARCH}


class Host:
    name = "Agent Framework"
    own_tool, provider_tool = "who_am_i", "web_search"
    cannot = MappingProxyType(
        {
            "errors_are_marked": Cannot(
                "what middleware returns gets no flag, and an error that it raises gets the "
                "framework's words",
                "agent_framework._tools",
                "return _finalize_function_result(\n"
                "call_id=call_id,\n"
                "id=function_call_content.id,\n"
                "result=function_result,\n"
                "base_additional_properties=function_call_content.additional_properties,\n"
                "context=middleware_context,\n)",
            ),
            "chunks_reach_the_host": Cannot(
                "a tool returns once", "agent_framework._tools", ") -> list[Content] | Any:"
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        client = Scripted()
        client.script_of = model
        client.function_invocation_configuration["max_iterations"] = 10_000
        return Agent(
            client=client,
            name="x",
            instructions=prompt or None,
            tools=[OWN[name] for name in tools],
            context_providers=[provider(source)],
        )

    async def run(self, agent, user, model):
        session = agent.create_session(session_id=user)
        done = await agent.run(user, session=session)
        read(done.messages, model)

    async def run_asking(self, session, model, *, answer):
        client = Scripted()
        client.script_of = lambda _: model

        def agent():
            providers = [InMemoryHistoryProvider(), provider(session(), approvals=True)]
            return Agent(client=client, name="x", context_providers=providers)

        talk = AgentSession()
        asked = (await agent().run("go", session=talk)).user_input_requests
        answers = [item.to_function_approval_response(answer) for item in asked]
        talk = AgentSession.from_dict(talk.to_dict())
        done = await agent().run(Message(role="user", contents=answers), session=talk)
        read(done.messages, model)
        return len(asked)

    def user_of(self, context):
        return context if isinstance(context, str) else context.session_id


def read(messages, script):
    for message in messages:
        for item in message.contents:
            if item.type == "function_result":
                media = sum(part.type == "data" for part in item.items or ())
                texts = [part.text for part in item.items or () if part.type == "text"]
                text = " ".join(texts) or str(item.result)
                script.answers[item.call_id] = Answered(text, None, media)
