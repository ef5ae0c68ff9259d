import asyncio
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from described import PATIENT, client_of, described

from satchel.errors import NotFoundError, SatchelError, ToolError
from satchel.mcp_servers.server_addresses import StdioServer
from satchel.mcp_servers.server_options import ServerConfig
from satchel.settings import Limits
from satchel.tools import ArgumentError, Audio, Image, Resource, ResourceLink, Text

NUMBER = {"type": "object", "properties": {"kg": {"type": "integer"}}, "required": ["kg"]}


async def test_all_pages_are_listed_with_the_schemas_of_the_server(on_stdio):
    names = [f"tool_{number}" for number in range(8)]
    server = on_stdio(*names, described("weigh", inputSchema=NUMBER, outputSchema=NUMBER))
    async with client_of(server) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
    assert [*tools] == [*names, "weigh"]
    assert (tools["weigh"].parameters, tools["weigh"].output) == (NUMBER, NUMBER)
    assert tools["weigh"].description == "weigh."


async def test_every_kind_of_block_arrives(on_stdio):
    async with client_of(on_stdio("show")) as client:
        result = await (await client.get_callable_function("show"))()
    assert result.content == (
        Text("one"),
        Text("two"),
        Image(b"a pixel", "image/png"),
        Audio(b"a pixel", "audio/wav"),
        Text("[left out: image, which cannot be decoded]"),
        ResourceLink(uri="file:///a", name="a", description=None, mime_type="text/plain"),
        Resource("file:///b", "b", "text/x"),
        Resource("file:///c", b"a pixel"),
    )


async def test_a_function_gives_the_result_or_what_it_says(on_stdio):
    tools = ("pid", "fail", described("weigh", inputSchema=NUMBER, outputSchema=NUMBER))
    async with client_of(on_stdio(*tools)) as client:
        weigh = await client.get_callable_function("weigh")
        assert (await weigh(kg=2)).structured == {"kg": 2}
        weigh = await client.get_callable_function("weigh", wrap_tool_result=False)
        assert await weigh(kg=2) == {"kg": 2}
        with pytest.raises(ArgumentError):
            await weigh(kg="much")
        fail = await client.get_callable_function("fail")
        result = await fail()
        assert (result.is_error, result.text) == (True, "no such city")
        fail = await client.get_callable_function("fail", wrap_tool_result=False)
        with pytest.raises(ToolError, match="no such city"):
            await fail()
        with pytest.raises(NotFoundError, match="did you mean pid"):
            await client.get_callable_function("pidd")


async def test_a_value_that_is_not_what_was_promised_is_an_error(on_stdio):
    promise = {"type": "object", "properties": {"kg": {"type": "integer"}}}
    async with client_of(on_stdio(described("weigh", outputSchema=promise))) as client:
        weigh = await client.get_callable_function("weigh")
        assert (await weigh(kg="heavy")).error_code == "invalid_result"
        assert (await weigh(kg=1)).structured == {"kg": 1}


async def test_a_process_gets_a_safe_environment_and_what_is_given(on_stdio, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "x")
    async with client_of(on_stdio("environment", env={"GIVEN": "y"})) as client:
        result = await (await client.get_callable_function("environment"))()
    assert '"GIVEN": "y"' in result.text
    assert "A_SECRET_OF_THE_HOST" not in result.text


async def test_one_client_keeps_its_process_and_a_stateless_one_makes_one_for_each_call(plain):
    server = plain("pid")
    async with client_of(server) as client:
        pid = await client.get_callable_function("pid", wrap_tool_result=False)
        assert await pid() == await pid()
    async with client_of(server, stateless=True) as client:
        pid = await client.get_callable_function("pid", wrap_tool_result=False)
        assert await pid() != await pid()


async def test_a_stateless_client_reports_refusals_as_well(plain):
    async with client_of(plain("die", "fail"), stateless=True) as client:
        die = await client.get_callable_function("die")
        with pytest.raises(ToolError, match="disconnected during the call"):
            await die()
        fail = await client.get_callable_function("fail")
        assert (await fail()).is_error


@pytest.mark.parametrize(
    ("command", "message"),
    [("no-such-command", "cannot be started"), (sys.executable, "disconnected")],
)
async def test_a_server_that_does_not_start_is_said_at_once(command, message):
    with pytest.raises(SatchelError, match=f"MCP server .* {message}"):
        async with client_of(StdioServer(command=command, args=("-c", "raise SystemExit"))):
            pass


async def test_a_server_that_says_nothing_is_given_up_after_the_limit():
    server = StdioServer(command="sleep", args=("600",))
    limits = Limits(mcp_startup=0.5)
    with pytest.raises(SatchelError, match=r"did not respond within 0.5 s \(limit mcp_startup\)"):
        async with client_of(server, limits=limits):
            pass


@pytest.mark.slow
async def test_a_caller_that_stops_waiting_cancels_at_the_server(on_stdio, on_http, tmp_path):
    for number, server in enumerate((on_stdio("wait"), on_http("wait").server)):
        os.mkfifo(pipe := tmp_path / f"pipe{number}")
        async with client_of(server) as client:
            wait = await client.get_callable_function("wait")
            call = asyncio.create_task(wait(pipe=str(pipe)))
            with await asyncio.to_thread(pipe.open) as messages:
                assert await asyncio.to_thread(messages.readline) == "begun\n"
                call.cancel()
                assert await asyncio.to_thread(messages.readline) == "cancelled\n"
            with pytest.raises(asyncio.CancelledError):
                await call


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"timeout": 2}, {"limits": replace(PATIENT, tool_call=2)}])
async def test_a_call_has_a_time_limit(on_stdio, tmp_path, options):
    os.mkfifo(pipe := tmp_path / "pipe")
    async with client_of(on_stdio("wait"), **options) as client:
        wait = await client.get_callable_function("wait")
        call = asyncio.create_task(wait(pipe=str(pipe)))
        with await asyncio.to_thread(pipe.open) as messages:
            with pytest.raises(ToolError, match="wait did not answer within 2 s"):
                await call
            assert await asyncio.to_thread(messages.read) == "begun\ncancelled\n"


async def test_a_client_is_used_in_a_block(plain):
    client = client_of(plain("pid"))
    with pytest.raises(SatchelError, match="not open"):
        await client.list_tools()
    async with client:
        with pytest.raises(SatchelError, match="open already"):
            await client.__aenter__()
    async with client:
        assert await client.list_tools()


async def test_a_function_that_outlives_its_block_says_so(plain):
    async with client_of(plain("pid")) as client:
        pid = await client.get_callable_function("pid")
        assert not (await pid()).is_error
    with pytest.raises(ToolError, match="cannot be reached"):
        await pid()


@pytest.mark.slow
def test_loading_the_sdk_takes_nothing_of_the_time_that_a_server_has(plain):
    server = plain("pid")
    program = f"""
import asyncio, sys, time
from satchel import Limits, RemoteClient, StdioServer

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            sys.meta_path.remove(self)
            time.sleep(7)

sys.meta_path.insert(0, Slow())

async def main():
    server = StdioServer(command={server.command!r}, args={server.args!r})
    async with RemoteClient(server, limits=Limits(mcp_connect=3)) as client:
        print(len(await client.list_tools()))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_no_one_waits_for_a_server_that_is_let_go(watched, plain):
    pool = watched(mcp_connect=60).pool
    handle = pool.add(ServerConfig(name="box", server=plain("echo", how=("hang",))))
    pool.remove(handle)
    assert handle.wait(50)


def test_a_caller_that_waits_in_vain_for_a_server_learns_its_state(watched, plain):
    config = ServerConfig(name="box", server=plain("echo", how=("hang",)))
    handle = watched(mcp_connect=60).pool.add(config)
    assert not handle.is_settled
    assert not handle.wait(0.01)
    assert "is starting" in handle.snapshot.outage.message
    assert handle.snapshot.outage.code == "mcp-server-starting"
    assert not handle.wait(0.01)
