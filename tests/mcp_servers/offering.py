"""A server of MCP for the tests, of what a file says: `offering.py FILE [[--sse] --http PORT]`.

The file holds a list of tools as JSON, read anew for each listing. A tool whose name is in
`DOINGS` does that; any other tells its arguments.
"""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

FILE = Path(sys.argv[1])
PAGE = 3
PIXEL = base64.b64encode(b"a pixel").decode()
BUS = InMemorySubscriptionBus()


async def list_tools(ctx, params):
    tools = [types.Tool.model_validate(tool) for tool in json.loads(FILE.read_text())]
    first = int(params.cursor) if params and params.cursor else 0
    rest = first + PAGE < len(tools)
    with Path(os.environ.get("LISTED", os.devnull)).open("a") as listed:
        print(first, file=listed)
    return types.ListToolsResult(
        tools=tools[first : first + PAGE],
        next_cursor=str(first + PAGE) if rest else None,
        ttl_ms=int(os.environ.get("TTL", "0")),
    )


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    if params.name not in {tool["name"] for tool in json.loads(FILE.read_text())}:
        raise ValueError(f"Unknown tool: {params.name}")
    doing = DOINGS.get(params.name)
    return await doing(ctx, arguments) if doing else said(json.dumps(arguments, sort_keys=True))


def said(text, **fields):
    return types.CallToolResult(content=[types.TextContent(text=text)], **fields)


async def pid(ctx, arguments):
    return said(str(os.getpid()))


async def environment(ctx, arguments):
    return said(json.dumps(dict(os.environ)))


async def die(ctx, arguments):
    os._exit(3)


async def fail(ctx, arguments):
    return said("no such city", is_error=True)


async def weigh(ctx, arguments):
    return said("3 kg", structured_content={"kg": arguments.get("kg", 3)})


async def show(ctx, arguments):
    return types.CallToolResult(
        content=[
            types.TextContent(text="one"),
            types.TextContent(text="two"),
            types.ImageContent(data=PIXEL, mime_type="image/png"),
            types.AudioContent(data=PIXEL, mime_type="audio/wav"),
            types.ImageContent(data="no base64!", mime_type="image/png"),
            types.ResourceLink(uri="file:///a", name="a", mime_type="text/plain"),
            types.EmbeddedResource(
                resource=types.TextResourceContents(uri="file:///b", text="b", mime_type="text/x")
            ),
            types.EmbeddedResource(
                resource=types.BlobResourceContents(uri="file:///c", blob=PIXEL)
            ),
        ]
    )


async def count(ctx, arguments):
    for step in range(arguments["to"]):
        await ctx.session.report_progress(step + 1, arguments["to"], f"step {step + 1}")
        if arguments.get("wait"):
            await asyncio.sleep(arguments["wait"])
    return types.CallToolResult(
        content=[types.TextContent(text="counted"), types.TextContent(text="well")],
        structured_content={"n": arguments["to"]},
    )


async def mutter(ctx, arguments):
    await ctx.session.report_progress(1, None, "x" * arguments["letters"])
    await asyncio.sleep(0.5)
    return said("done")


async def give(ctx, arguments):
    return said("given", structured_content=arguments["structured"])


async def wait(ctx, arguments):
    """Wait for ever, and write into a pipe what becomes of that."""
    with Path(arguments["pipe"]).open("w") as pipe:
        print("begun", file=pipe, flush=True)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", file=pipe, flush=True)
            raise


async def offer(ctx, arguments):
    """Offer other tools, and say so."""
    FILE.write_text(json.dumps(arguments["tools"]))
    for _ in range(arguments.get("times", 1)):
        await announce(ctx)
    return said("done")


async def announce(ctx):
    await BUS.publish(ToolsListChanged())
    if ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()


async def shout(ctx, arguments):
    sys.stderr.write("x" * arguments["bytes"] + "\nlast words\n")
    sys.stderr.flush()
    return said("shouted")


async def long(ctx, arguments):
    return said("x" * arguments["bytes"])


DOINGS = {
    fn.__name__: fn
    for fn in (
        *(pid, environment, die, fail, weigh, show, long, count, wait, offer, shout),
        *(mutter, give),
    )
}


def made():
    return Server(
        "offering",
        version="1.2",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(BUS),
    )


async def on_stdio():
    server = made()
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)
    if path := os.environ.get("SAY_CLOSED"):
        with Path(path).open("a") as file:
            file.write(f"{os.environ['NAME']}\n")


def over_sse():
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport, server = SseServerTransport("/messages/"), made()
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def stream(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, options)
        return Response()

    messages = Mount("/messages/", app=transport.handle_post_message)
    return Starlette(routes=[Route("/sse", endpoint=stream), messages])


async def on_http(port):
    import uvicorn

    class Ready(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            print("ready", flush=True)

    app = over_sse() if "--sse" in sys.argv else made().streamable_http_app()
    await Ready(uvicorn.Config(app, port=port, log_level="error")).serve()


if __name__ == "__main__":
    asyncio.run(on_http(int(sys.argv[-1])) if "--http" in sys.argv else on_stdio())
