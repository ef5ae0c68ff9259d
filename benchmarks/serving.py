"""Compare the response times of `satchel serve` with those of a plain server of the SDK.

    python benchmarks/serving.py [CALLS [SIZE...]]

Both servers offer the same async tools and run in separate processes. The same client asks them in
turn, over stdio and over HTTP, in both versions of the protocol. The output is medians in
milliseconds, and the ratio of Satchel to the plain server. Then the tool of another plugin is
edited. The output is the time until an idle client is notified: the median and the slowest of
twenty edits.
"""

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters

SIZES = (10, 100, 1_000)
ERAS = {"2025-11-25": "legacy", "2026-07-28": "auto"}
ROUNDS = 5
TOOLS_PER_PLUGIN = 50
HTTP = ["--http", "127.0.0.1:0", "--rate", "0"]
EDITS = 20
PAUSE = 0.5
"""Seconds between two edits, so that they are not debounced together."""

Listener = tuple[Client, "asyncio.Queue[float]"]
"""A client, and the times of its notifications."""

TOOL = '''
@tool
async def tool_{number}(city: str, days: int = 3, unit: str = "C") -> dict[str, str]:
    """Weather for the next days, by station {number}."""
    return {{"city": city, "unit": unit}}
'''

PLAIN = """
import json, sys
import anyio, mcp_types as types, uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = [types.Tool.model_validate(item) for item in json.load(open(sys.argv[1]))]

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS)

async def call_tool(ctx, params):
    arguments = params.arguments or {}
    given = {"city": arguments["city"], "unit": arguments.get("unit", "C")}
    text = types.TextContent(text=json.dumps(given))
    return types.CallToolResult(content=[text], structured_content=given)

server = Server("plain", on_list_tools=list_tools, on_call_tool=call_tool)

async def main():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

if len(sys.argv) > 2:
    app = server.streamable_http_app()
    print(f"at http://127.0.0.1:{sys.argv[2]}/mcp,", file=sys.stderr, flush=True)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
else:
    anyio.run(main)
"""


async def main(calls: int, sizes: tuple[int, ...]) -> None:
    """Measure and print."""
    print(
        f"{'tools':>5} {'transport':9} {'era':10}  {'':4} {'satchel':>8} {'plain':>8} {'ratio':>6}"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            ours = written(Path(folder), size)
            plain = [str(Path(folder, "plain.py")), await dumped(Path(folder), ours)]
            for transport in ("stdio", "http"):
                for era in ERAS:
                    await compared(f"{size:5} {transport:9} {era:10}", (ours, plain), calls)
                    await edited(f"{size:5} {transport:9} {era:10}", ours, Path(folder))


def written(folder: Path, size: int) -> list[str]:
    """Write both servers, and return the arguments that start `satchel serve`."""
    for first in range(0, size, TOOLS_PER_PLUGIN):
        numbers = range(first, min(first + TOOLS_PER_PLUGIN, size))
        plugin(folder, f"many-{first}", "".join(TOOL.format(number=n) for n in numbers))
    plugin(folder, "one", TOOL.format(number="x"))
    (folder / "plain.py").write_text(textwrap.dedent(PLAIN))
    return ["-m", "satchel", "serve", "--plugins", str(folder / "plugins")]


def plugin(folder: Path, name: str, tools: str) -> None:
    """Write a plugin."""
    home = folder / "plugins" / name
    home.mkdir(parents=True)
    (home / "tools.py").write_text(f"from satchel import tool\n{tools}")
    (home / "toolkit.yaml").write_text(f"name: {name}\nactive: true\n")


async def dumped(folder: Path, ours: list[str]) -> str:
    """Write the list of tools to a file, so that the plain server returns the same list."""
    async with Client(started(ours)) as client:
        tools = [item for item in (await client.list_tools()).tools if "tool_" in item.name]
    path = folder / "tools.json"
    dumps = [item.model_dump(by_alias=True, mode="json", exclude_none=True) for item in tools]
    path.write_text(json.dumps(dumps))
    return str(path)


def started(arguments: list[str]) -> StdioServerParameters:
    """Return the parameters that start a server on stdio without its stderr."""
    quiet = ["-c", 'exec "$0" "$@" 2>/dev/null', sys.executable, *arguments]
    return StdioServerParameters(command="sh", args=quiet, env=dict(os.environ))


@asynccontextmanager
async def listening(arguments: list[str]) -> AsyncIterator[str]:
    """Run a server over HTTP, and yield its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    while not (
        match := re.search(rb"at (http://[^:]+:(\d+)/mcp),", await process.stderr.readline())
    ):
        pass
    try:
        await reachable(match[2].decode())
        yield match[1].decode()
    finally:
        process.terminate()
        await process.wait()


async def reachable(port: str) -> None:
    """Wait until a server listens."""
    while True:
        try:
            _, writing = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            return writing.close()


@asynccontextmanager
async def connected(setting: str, arguments: list[str], http: list[str]) -> AsyncIterator[Listener]:
    """Start a server and yield a client, with the times of its notifications."""
    _, transport, era = setting.split()
    times = asyncio.Queue[float]()

    async def on_message(_message: object) -> None:
        times.put_nowait(time.perf_counter())

    async with AsyncExitStack() as stack:
        server: StdioServerParameters | str = started(arguments)
        if transport == "http":
            server = await stack.enter_async_context(listening([*arguments, *http]))
        client = Client(server, mode=ERAS[era], cache=None, message_handler=on_message)
        yield await stack.enter_async_context(client), times


async def compared(setting: str, both: tuple[list[str], list[str]], calls: int) -> None:
    """Ask both servers in turn, and print the times."""
    async with (
        connected(setting, both[0], HTTP) as (ours, _),
        connected(setting, both[1], ["38765"]) as (plain, _),
    ):
        questions = {
            "list": (lambda client: client.list_tools(), max(10, calls // 10)),
            "call": (lambda client: client.call_tool("tool_3", {"city": "Oslo"}), calls),
        }
        for name, (ask, count) in questions.items():
            mine, theirs = await medians([ours, plain], ask, count)
            print(f"{setting}  {name} {mine:8.2f} {theirs:8.2f} {mine / theirs:6.2f}", flush=True)


async def edited(setting: str, ours: list[str], folder: Path) -> None:
    """Edit a tool repeatedly, and print how long it takes until a client is notified."""
    file = folder / "plugins" / "one" / "tools.py"
    before, times = file.read_text(), []
    async with (
        connected(setting, ours, HTTP) as (client, notified),
        AsyncExitStack() as stack,
    ):
        if client.protocol_version > "2026":
            await stack.enter_async_context(client.listen(tools_list_changed=True))
        for number in range(EDITS):
            await asyncio.sleep(PAUSE)
            while not notified.empty():
                notified.get_nowait()
            start = time.perf_counter()
            file.write_text(before.replace("by station x.", f"by station x, edit {number}."))
            times.append((await notified.get() - start) * 1e3)
    file.write_text(before)
    print(f"{setting}  edit {statistics.median(times):8.2f} {max(times):8.2f}", flush=True)


async def medians(
    clients: list[Client], ask: Callable[[Client], Awaitable[object]], count: int
) -> list[float]:
    """Return the median time of each client, asked in turn, so that other load affects both."""
    times: list[list[float]] = [[] for _ in clients]
    for _ in range(ROUNDS):
        for client, taken in zip(clients, times, strict=True):
            for _ in range(count // ROUNDS + 1):
                before = time.perf_counter()
                await ask(client)
                taken.append((time.perf_counter() - before) * 1e3)
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    calls, *sizes = map(int, sys.argv[1:] or [300])
    asyncio.run(main(calls, tuple(sizes) or SIZES))
