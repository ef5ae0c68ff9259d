"""The loop over Anthropic's own library, streaming."""

import asyncio
import json
from types import MappingProxyType

import anthropic
from scripted_provider import (
    CANNOT,
    RETURNS_THE_END,
    WAITS_IN_A_THREAD,
    WEB_SEARCH,
    anthropic_answer,
    anthropic_body,
    anthropic_stream,
    http_library,
)

from satchel import Session, ToolChunk
from satchel.adapters.anthropic import run_anthropic, run_anthropic_sync, stream_anthropic

HTTP = http_library(anthropic.AsyncAnthropic)


def transport(model):
    def answer(request):
        body = json.loads(request.content)
        calls = anthropic_answer(body, model)
        if body.get("stream"):
            kind = {"content-type": "text/event-stream"}
            return HTTP.Response(200, content=anthropic_stream(calls), headers=kind)
        return HTTP.Response(200, json=anthropic_body(calls))

    return HTTP.MockTransport(answer)


class Host:
    name, own_tool, provider_tool = "Anthropic's library, streaming", "who_am_i", WEB_SEARCH["name"]
    cannot = CANNOT

    def make(self, source, model, prompt, tools):
        searching = {"tools": [WEB_SEARCH]} if WEB_SEARCH["name"] in tools else {}
        return source, {"system": prompt, **searching}

    async def run(self, agent, user, model):
        source, options = agent
        session = source if isinstance(source, Session) else source(user)
        http = HTTP.AsyncClient(transport=transport(model))
        client = anthropic.AsyncAnthropic(api_key="k", http_client=http)
        await self.talk(client, session, [{"role": "user", "content": "go"}], model, options)

    async def talk(self, client, session, messages, model, options):
        async for item in stream_anthropic(
            client, session, messages, model="m", max_requests=9999, **options
        ):
            if isinstance(item, ToolChunk):
                model.chunks.append(item.text)
        assert messages[-1]["content"] == [{"type": "text", "text": "done"}]

    def user_of(self, context):
        return context


class WholeHost(Host):
    name = "Anthropic's library"
    cannot = MappingProxyType({**CANNOT, "chunks_reach_the_host": RETURNS_THE_END})

    async def talk(self, client, session, messages, model, options):
        text = await run_anthropic(
            client, session, messages, model="m", max_requests=9999, **options
        )
        assert text == "done"


class BlockingHost(WholeHost):
    name = "Anthropic's library, without a loop"
    cannot = MappingProxyType(
        {**WholeHost.cannot, "cancelling_reaches_the_tool": WAITS_IN_A_THREAD}
    )

    async def run(self, agent, user, model):
        source, options = agent
        session = source if isinstance(source, Session) else source(user)
        http = HTTP.Client(transport=transport(model))
        client = anthropic.Anthropic(api_key="k", http_client=http)
        messages = [{"role": "user", "content": "go"}]
        await asyncio.to_thread(
            run_anthropic_sync, client, session, messages, model="m", max_requests=9999, **options
        )
