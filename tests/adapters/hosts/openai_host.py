"""The loop over OpenAI's own library, streaming."""

import asyncio
import json
from types import MappingProxyType

import openai
from scripted_provider import (
    CANNOT,
    RETURNS_THE_END,
    WAITS_IN_A_THREAD,
    WEB_SEARCH,
    http_library,
    openai_answer,
    openai_body,
    openai_stream,
)

from satchel import Session, ToolChunk
from satchel.adapters.openai import run_openai, run_openai_sync, stream_openai
from satchel.testing.adapter_checks import Cannot

HTTP = http_library(openai.AsyncOpenAI)


def transport(model):
    def answer(request):
        body = json.loads(request.content)
        calls = openai_answer(body, model)
        if body.get("stream"):
            kind = {"content-type": "text/event-stream"}
            return HTTP.Response(200, content=openai_stream(calls), headers=kind)
        return HTTP.Response(200, json=openai_body(calls))

    return HTTP.MockTransport(answer)


class Host:
    name, own_tool, provider_tool = "OpenAI's library, streaming", "who_am_i", WEB_SEARCH["name"]
    cannot = MappingProxyType(
        {
            **CANNOT,
            "errors_are_marked": Cannot(
                "a tool's message has no error flag in Chat Completions",
                "openai.types.chat.chat_completion_tool_message_param",
                "class ChatCompletionToolMessageParam(TypedDict, total=False):\n"
                "content: Required[Union[str, Iterable[ChatCompletionContentPartTextParam]]]\n"
                '"""The contents of the tool message."""\n'
                "\n"
                'role: Required[Literal["tool"]]\n'
                '"""The role of the messages author, in this case `tool`."""\n'
                "\n"
                "tool_call_id: Required[str]",
            ),
        }
    )

    def make(self, source, model, prompt, tools):
        searching = {"tools": [WEB_SEARCH]} if WEB_SEARCH["name"] in tools else {}
        return source, {"system": prompt, **searching}

    async def run(self, agent, user, model):
        source, options = agent
        session = source if isinstance(source, Session) else source(user)
        http = HTTP.AsyncClient(transport=transport(model))
        client = openai.AsyncOpenAI(api_key="k", http_client=http)
        await self.talk(client, session, [{"role": "user", "content": "go"}], model, options)

    async def talk(self, client, session, messages, model, options):
        async for item in stream_openai(
            client, session, messages, model="m", max_requests=9999, **options
        ):
            if isinstance(item, ToolChunk):
                model.chunks.append(item.text)
        assert messages[-1]["content"] == "done"

    def user_of(self, context):
        return context


class WholeHost(Host):
    name = "OpenAI's library"
    cannot = MappingProxyType({**Host.cannot, "chunks_reach_the_host": RETURNS_THE_END})

    async def talk(self, client, session, messages, model, options):
        text = await run_openai(client, session, messages, model="m", max_requests=9999, **options)
        assert text == "done"


class BlockingHost(WholeHost):
    name = "OpenAI's library, without a loop"
    cannot = MappingProxyType(
        {**WholeHost.cannot, "cancelling_reaches_the_tool": WAITS_IN_A_THREAD}
    )

    async def run(self, agent, user, model):
        source, options = agent
        session = source if isinstance(source, Session) else source(user)
        client = openai.OpenAI(api_key="k", http_client=HTTP.Client(transport=transport(model)))
        messages = [{"role": "user", "content": "go"}]
        await asyncio.to_thread(
            run_openai_sync, client, session, messages, model="m", max_requests=9999, **options
        )
