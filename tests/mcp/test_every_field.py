"""A client of `satchel serve` gets every field of the protocol that a server behind it sets."""

import asyncio
import json
import sys
from itertools import count
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import mcp_types as types
import pytest
from clients import ERAS, STATELESS, client_of
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import BaseModel

from satchel import Limits, Satchel, Settings, StdioServer, ToolCall
from satchel.mcp.mcp_server import SatchelServer
from satchel.mcp.protocol_validation import described_tool
from satchel.mcp.served_selection import ServedSelection
from satchel.provider_messages.message_formats import result_messages

ANSWERING = str(Path(__file__).parents[1] / "mcp_servers" / "answering.py")
NUMBERS = count()
CHOSEN = {
    "name": "every",
    "uri": "note://today",
    "uriTemplate": "day://{day}",
    "mimeType": "text/plain",
    "data": "AAEC",
    "blob": "AAEC",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "isError": False,
    "priority": 0.5,
    "resultType": "complete",
}
"""Fields that must have a certain value."""

BLOCK_KEYS = {"type", "text", "data", "mimeType", "uri", "name", "description", "resource"}


def filled(kind: Any, name: str = "") -> Any:
    """Return a value of a type with every field that the SDK knows."""
    inside = [one for one in get_args(kind) if one is not NoneType]
    if name in CHOSEN:
        return CHOSEN[name]
    match get_origin(kind):
        case origin if origin in (Annotated, Union, UnionType):
            return filled(inside[0], name)
        case origin if origin is Literal:
            return inside[0]
        case origin if origin is list:
            is_union = get_origin(inside[0]) in (Union, UnionType)
            return [filled(one, name) for one in (get_args(inside[0]) if is_union else inside)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.values()
        return {field.alias: filled(field.annotation, field.alias) for field in fields}
    values = {str: f"{name} {next(NUMBERS)}", int: 3, float: 3.5, bool: True}
    return values.get(kind, {"com.example/key": {"text": f"meta {next(NUMBERS)}", "list": [1]}})


RESULTS = {
    "tools/list": {"tools": [filled(types.Tool)]},
    "tools/call": filled(types.CallToolResult),
    "prompts/list": {"prompts": [filled(types.Prompt)]},
    "prompts/get": {
        **filled(types.GetPromptResult),
        "messages": [
            {**filled(types.PromptMessage), "content": block}
            for block in filled(list[types.ContentBlock])
        ],
    },
    "resources/list": {"resources": [filled(types.Resource)]},
    "resources/templates/list": {"resourceTemplates": [filled(types.ResourceTemplate)]},
    "resources/read": filled(types.ReadResourceResult),
    "completion/complete": filled(types.CompleteResult),
}


async def received(client):
    """Return what a client gets for each method."""
    sent: Any = {"com.example/sent": {"by": "the client"}}
    completion = types.CompleteRequestParams(
        ref=types.PromptReference(name="every"),
        argument=types.CompletionArgument(name="every", value=""),
        _meta=sent,
    )
    request = types.CompleteRequest(params=completion)
    results = [
        await client.list_tools(),
        await client.call_tool("every", {}, meta=sent),
        await client.list_prompts(),
        await client.get_prompt("every", {"every": "x"}, meta=sent),
        await client.list_resources(),
        await client.list_resource_templates(),
        await client.read_resource("note://today", meta=sent),
        await client.session.send_request(request, types.CompleteResult),
    ]
    dumped = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in results]
    return {method: own_part(one) for method, one in zip(RESULTS, dumped, strict=True)}


def own_part(result):
    """Return what a server's result has that is not of the list, or of how long to keep it."""
    for key in ("tools", "prompts", "resources", "resourceTemplates"):
        if key in result:
            return {item["name"]: item for item in result[key] if item["name"] == "every"}
    return {key: value for key, value in result.items() if key not in {"ttlMs", "cacheScope"}}


def lost(direct, carried, where):
    """Yield the parts of a value that did not arrive as they were; there may be more."""
    match direct, carried:
        case dict(), dict():
            for key, value in direct.items():
                yield from lost(value, carried.get(key), f"{where}.{key}")
        case list(), list() if len(direct) == len(carried):
            for at, pair in enumerate(zip(direct, carried, strict=True)):
                yield from lost(*pair, f"{where}[{at}]")
        case _ if direct != carried:
            yield f"{where}: {direct!r} became {carried!r}"


@pytest.fixture
def line(tmp_path):
    """Start a server that answers with `RESULTS`."""
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    return {"command": sys.executable, "args": [ANSWERING, str(tmp_path / "results.json")]}


@pytest.fixture
def app(tmp_path, line):
    settings = Settings(limits=Limits(mcp_connect=60), state_folder=str(tmp_path / "state"))
    with Satchel(settings=settings) as satchel_app:
        satchel_app.register_mcp_server(StdioServer(**line), name="box")
        yield satchel_app


@pytest.fixture
def served(app):
    return SatchelServer(app, ServedSelection(every_group=True))


@pytest.mark.parametrize("era", ERAS)
def test_every_field_of_a_server_arrives(line, served, era):
    async def both():
        async with client_of(stdio_client(StdioServerParameters(**line))) as (client, _):
            direct = await received(client)
        async with client_of(served, era) as (client, _):
            return direct, await received(client)

    direct, carried = asyncio.run(both())
    if era == STATELESS:
        del direct["tools/list"]["every"]["execution"]  # that version does not have it
    assert direct["tools/call"]["_meta"]["asked"]["com.example/sent"]
    assert not [*lost(direct, carried, "")]


def test_what_a_client_cannot_send_to_a_server_behind(served):
    async def call():
        async with client_of(served) as (client, _):
            forged: Any = {"dev.satchel/headers": {"Cookie": "x"}, "com.example/sent": 1}
            return await client.call_tool("every", {}, meta=forged)

    asked = asyncio.run(call()).meta["asked"]
    assert asked["com.example/sent"] == 1
    assert "dev.satchel/headers" not in asked


def test_a_session_of_the_host_shows_a_model_none_of_them(app):
    session = app.session()
    session.activate("box")
    shown = next(tool for tool in session.schemas("mcp") if tool["name"] == "every")
    listed = RESULTS["tools/list"]["tools"][0]
    assert "icons" not in shown
    assert shown["annotations"]["title"] == shown["title"] == listed["title"]
    result = asyncio.run(session.call("every", {}))
    messages = result_messages([ToolCall(name="every")], [result], "mcp")
    assert {key for block in messages[0]["content"] for key in block} <= BLOCK_KEYS


def test_fields_that_a_version_of_the_protocol_refuses_do_not_cost_the_tool(app):
    tool = app.catalog.tool("every").tool
    tool.mcp_fields = {"icons": 3}
    described = described_tool(tool, "box")
    assert described["name"] == "every"
    assert "icons" not in described
