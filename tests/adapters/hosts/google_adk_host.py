"""Google's ADK with a scripted model."""

from types import MappingProxyType
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from satchel.adapters.google_adk import toolset
from satchel.testing.adapter_checks import Answered, Cannot


class Scripted(BaseLlm):
    model: str = "scripted"
    script_of: Any = None

    async def generate_content_async(self, llm_request, stream=False):
        messages = [part.text for item in llm_request.contents for part in item.parts if part.text]
        script = self.script_of(messages[0])
        read(llm_request.contents, script)
        names = [
            item.name
            for tool in llm_request.config.tools or []
            for item in tool.function_declarations or []
        ]
        names += ["google_search" for tool in llm_request.config.tools or [] if tool.google_search]
        calls = script.answer(names, str(llm_request.config.system_instruction or ""))
        parts = [
            types.Part(
                function_call=types.FunctionCall(name=c.name, args=dict(c.arguments), id=c.id)
            )
            for c in calls
        ]
        content = types.Content(role="model", parts=parts or [types.Part(text="done")])
        yield LlmResponse(content=content)


def who_am_i() -> str:
    """Say who it is."""
    return "the host's own"


class GoogleSearch(BaseTool):
    """As ADK's own, which wants a model whose name begins with gemini."""

    async def process_llm_request(self, *, tool_context, llm_request):
        tools = [*(llm_request.config.tools or []), types.Tool(google_search=types.GoogleSearch())]
        llm_request.config.tools = tools


OWN = {
    "who_am_i": who_am_i,
    "google_search": GoogleSearch(name="google_search", description="google_search"),
}


class Host:
    name = "Google ADK"
    own_tool, provider_tool = "who_am_i", "google_search"
    cannot = MappingProxyType(
        {
            "chunks_reach_the_host": Cannot(
                "a tool returns once",
                "google.adk.tools.base_tool",
                "async def run_async(\n"
                "self, *, args: dict[str, Any], tool_context: ToolContext\n"
                ") -> Any:",
            )
        }
    )

    def make(self, source, model, prompt, tools):
        return LlmAgent(
            name="x",
            model=Scripted(script_of=model),
            instruction=prompt,
            tools=[*(OWN[name] for name in tools), toolset(source)],
        )

    async def run(self, agent, user, model):
        runner = InMemoryRunner(agent=agent, app_name="app")
        talk = await runner.session_service.create_session(app_name="app", user_id=user)
        message = types.Content(role="user", parts=[types.Part(text=user)])
        config = RunConfig(max_llm_calls=10_000)  # ADK ends a run after 500
        async for event in runner.run_async(
            user_id=user, session_id=talk.id, new_message=message, run_config=config
        ):
            read([event.content] if event.content else [], model)

    async def run_asking(self, session, model, *, answer):
        sessions = InMemorySessionService()
        talk = await sessions.create_session(app_name="app", user_id="ada")
        asked = []

        async def send(part):
            agent = LlmAgent(
                name="x",
                model=Scripted(script_of=lambda _: model),
                tools=[toolset(session(), approvals=True)],
            )
            runner = Runner(agent=agent, app_name="app", session_service=sessions)
            message = types.Content(role="user", parts=[part])
            async for event in runner.run_async(
                user_id="ada", session_id=talk.id, new_message=message
            ):
                asked.extend(
                    call
                    for call in event.get_function_calls()
                    if call.name == "adk_request_confirmation"
                )
                read([event.content] if event.content else [], model)

        await send(types.Part(text="go"))
        (question,) = asked
        reply = types.FunctionResponse(
            id=question.id, name=question.name, response={"confirmed": answer}
        )
        await send(types.Part(function_response=reply))
        return len(asked)

    def user_of(self, context):
        return context if isinstance(context, str) else context.user_id


def read(contents, script):
    for content in contents:
        for part in content.parts or ():
            if (response := part.function_response) is not None:
                answer = response.response
                text = str(answer.get("result", answer.get("error", "")))
                script.answers[response.id] = Answered(
                    text, "error" in answer, len(response.parts or ())
                )
