"""Compare Satchel as an MCP client with the bare client of the SDK.

    python benchmarks/connecting.py [CALLS [SERVERS]]

The output is the time until all servers have listed their tools, as a ratio, and what a call takes
more than with the bare client: the median in milliseconds. The two take turns, and the best round
of each counts. The servers are written by hand, so their own start takes little.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Before anything is measured: both need it.
import mcp.client.streamable_http  # noqa: F401
from mcp import Client, StdioServerParameters

from satchel import Satchel, Settings, StdioServer

ROUNDS = 5
PLAIN = Path(__file__).parents[1] / "tests" / "mcp_servers" / "plain.py"
TOOL = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}


def main(calls: int = 400, servers: int = 20) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book.json"
        book.write_text(json.dumps([TOOL]))
        args = [str(PLAIN), str(book)]
        bare, ours = best(
            lambda: asyncio.run(bare_start(args, servers)),
            lambda: satchel_start(args, servers, folder),
        )
        print(f"{servers} servers up: bare {bare:.2f} s, satchel {ours:.2f} s, {ours / bare:.2f}")
        bare, ours = best(
            lambda: asyncio.run(bare_calls(args, calls)), lambda: satchel_calls(args, calls, folder)
        )
        print(f"a call: bare {bare:.3f} ms, satchel {ours:.3f} ms, {ours - bare:+.3f} ms")


def best(*measures: Callable[[], float]) -> list[float]:
    """Return the best of several rounds of each measure; they take turns."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [min(values) for values in zip(*rounds, strict=True)]


async def bare_start(args: list[str], servers: int) -> float:
    """Return the seconds until every bare client has its list of tools."""
    done, left = asyncio.Event(), servers

    async def one() -> None:
        nonlocal left
        async with Client(StdioServerParameters(command=sys.executable, args=args)) as client:
            await client.list_tools()
            left -= 1
            if not left:
                done.set()
            await done.wait()

    began = time.perf_counter()
    tasks = [asyncio.create_task(one()) for _ in range(servers)]
    await done.wait()
    seconds = time.perf_counter() - began
    await asyncio.gather(*tasks)
    return seconds


def settings(folder: str) -> Settings:
    """Return settings that read and write nothing elsewhere."""
    return Settings(state_folder=folder, config_folder=folder)


def satchel_start(args: list[str], servers: int, folder: str) -> float:
    """Return the seconds until a satchel has the tools of every server in `satchel.toml`."""
    table = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
    text = "".join(f"[mcp.s{number}]\n{table}" for number in range(servers))
    (Path(folder) / "satchel.toml").write_text(text)
    began = time.perf_counter()
    with Satchel(settings=settings(folder)) as satchel:
        satchel.wait_for_mcp_servers()
        seconds = time.perf_counter() - began
        assert len(satchel.catalog.tools) == servers
    (Path(folder) / "satchel.toml").unlink()
    return seconds


async def bare_calls(args: list[str], calls: int) -> float:
    """Return the median milliseconds of a call of the bare client."""
    async with Client(StdioServerParameters(command=sys.executable, args=args)) as client:
        times = []
        for _ in range(calls):
            began = time.perf_counter()
            await client.call_tool("echo", {"a": 1})
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1_000


def satchel_calls(args: list[str], calls: int, folder: str) -> float:
    """Return the median milliseconds of a call of a session."""

    async def call() -> float:
        session = satchel.session()
        session.activate("far")
        times = []
        for _ in range(calls):
            began = time.perf_counter()
            result = await session.call("echo", {"a": 1})
            times.append(time.perf_counter() - began)
        assert result.text == '{"a": 1}'
        return statistics.median(times) * 1_000

    with Satchel(settings=settings(folder)) as satchel:
        server = StdioServer(command=sys.executable, args=tuple(args))
        satchel.register_mcp_server(server, name="far")
        return asyncio.run(call())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
