"""One session of the host, served over MCP."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from clients import ERAS, HANDSHAKE, STATELESS, client_of, run

from satchel import Image, Satchel, ToolCall, ToolContext, ToolError
from satchel.mcp.session_server import SessionServer

LISTED = "notifications/tools/list_changed"


@pytest.fixture
def app():
    app = Satchel()
    app.create_group("maps", "Ways.", notes="Be exact.")

    def echo(text: str) -> str:
        """Say it again."""
        return text

    def way(end: str) -> str:
        """Find the way."""
        return f"to {end}"

    app.register_tool(echo)
    app.register_tool(way, group="maps")
    return app


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def text_of(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    return result.is_error, result.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_client_and_host_share_the_groups_of_the_session(app, era):
    async def talk():
        session = app.session()
        async with client_of(SessionServer(app, session), era) as (client, _):
            assert await names(client) == ["echo", "reset_equipped_tools"]
            session.activate("maps")
            assert await names(client) == ["echo", "reset_equipped_tools", "way"]
            assert await text_of(client, "way", end="Oslo") == (False, "to Oslo")
            await client.call_tool("reset_equipped_tools", {})
            assert session.active_groups == ("basic",)
            assert (await text_of(client, "way", end="Oslo"))[0] is True

    run(talk())


@pytest.mark.parametrize("era", ERAS)
def test_state_middleware_and_errors_are_those_of_the_session(app, era):
    session, seen = app.session(), []

    async def note(call: ToolCall, proceed):
        seen.append((call.name, call.id != ""))
        async for item in proceed(call):
            yield item

    def count(ctx: ToolContext) -> int:
        """Count."""
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    def fail() -> str:
        """Fail."""
        raise ToolError("Ask again tomorrow.")

    app.register_tool(count)
    app.register_tool(fail)
    app.register_middleware(note)

    async def talk():
        async with client_of(SessionServer(app, session), era) as (client, _):
            await client.call_tool("count", {})
            assert await text_of(client, "count") == (False, "2")
            assert await text_of(client, "fail") == (True, "Ask again tomorrow.")
            is_error, text = await text_of(client, "echo", txt="x")
            assert is_error
            assert "text" in text

    run(talk())
    assert session.state == {"n": 2}
    assert seen[:3] == [("count", True), ("count", True), ("fail", True)]


@pytest.mark.parametrize("era", ERAS)
def test_a_picture_arrives_as_a_picture(app, era):
    app.register_tool(lambda: Image(b"png", "image/png"), name="draw", description="Draw.")

    async def talk():
        async with client_of(SessionServer(app, app.session()), era) as (client, _):
            (block,) = (await client.call_tool("draw", {})).content
            assert (block.type, block.mime_type) == ("image", "image/png")

    run(talk())


def test_the_chunks_of_a_call_come_as_progress(app):
    async def slow() -> AsyncIterator[str]:
        """Work."""
        yield "one "
        yield "two"

    app.register_tool(slow)

    async def talk():
        async with client_of(SessionServer(app, app.session())) as (client, notices):
            result = await client.call_tool("slow", {}, progress_callback=notices.step)
            assert result.content[0].text == "one two"
            assert [message for _, _, message in notices.progress] == ["one ", "two"]

    run(talk())


def test_the_client_hears_of_a_new_tool_and_of_groups_that_a_call_switched(app):
    async def talk():
        async with client_of(SessionServer(app, app.session()), HANDSHAKE) as (client, notices):
            await names(client)
            app.register_tool(lambda: "x", name="more", description="More.")
            await notices.until(LISTED)
            assert "more" in await names(client)
            notices.messages.clear()
            await client.call_tool("reset_equipped_tools", {"maps": True})
            await notices.until(LISTED)
            assert "way" in await names(client)

    run(talk())


def test_a_call_that_changes_nothing_reports_nothing(app):
    async def talk():
        async with client_of(SessionServer(app, app.session()), HANDSHAKE) as (client, notices):
            await names(client)
            await client.call_tool("echo", {"text": "x"})
            await names(client)
            assert notices.messages == []

    run(talk())


def test_the_instructions_of_a_handshake_are_the_prompt_of_now(app):
    session = app.session()
    server = SessionServer(app, session)
    session.activate("maps")

    async def talk():
        async with client_of(server, HANDSHAKE) as (client, _):
            assert "Be exact." in client.instructions

    run(talk())


def test_cancelling_a_call_reaches_the_tool(app):
    async def talk():
        began, ended = asyncio.Event(), asyncio.Event()

        async def wait() -> str:
            """Wait."""
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        app.register_tool(wait)
        async with client_of(SessionServer(app, app.session()), STATELESS) as (client, _):
            call = asyncio.ensure_future(client.call_tool("wait", {}))
            await began.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.wait_for(ended.wait(), 30)

    run(talk())
