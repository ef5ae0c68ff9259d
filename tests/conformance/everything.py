"""Connect the MCP reference server, and kill it in the middle of a call.

    python tests/conformance/everything.py

`run.py` does the same and records it. It needs npx, which fetches the server; the variable
EVERYTHING may name an installed command instead.
"""

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from satchel import Event, HttpServer, Image, Limits, ResourceLink, Satchel, Settings, StdioServer
from satchel.mcp_servers.server_addresses import RemoteServer

VERSION = "2026.8.31"
COMMAND = f"npx --yes @modelcontextprotocol/server-everything@{VERSION}"
LIMIT = 120
"""Seconds after which a step has failed; npx may have to download the server first."""

Row = tuple[str, bool, str]


def command() -> list[str]:
    """Return the command that starts the server."""
    return shlex.split(os.environ.get("EVERYTHING", COMMAND))


def run() -> list[Row]:
    """Try both transports; return for each whether it passed, and what was tried."""
    rows = []
    for name, start in (("stdio", on_stdio), ("streamable HTTP", on_http)):
        try:
            with start() as (server, kill), connected(server) as app:
                details, passed = "; ".join(tried(app, kill)), True
        except Exception as problem:
            details, passed = f"{type(problem).__name__}: {problem}", False
        rows.append((name, passed, details))
    return rows


@contextmanager
def on_stdio() -> Iterator[tuple[RemoteServer, Callable[[], None]]]:
    """Yield a server that writes its process id into a file, and a function that kills it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pid")
        wrapper = ("-c", 'echo $$ > "$0"; exec "$@"', str(file))
        server = StdioServer(command="sh", args=(*wrapper, *command(), "stdio"))
        yield server, lambda: os.kill(int(file.read_text()), signal.SIGKILL)


@contextmanager
def on_http() -> Iterator[tuple[RemoteServer, Callable[[], None]]]:
    """Yield a server on a free port, and a function that kills it and starts another one there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        process = subprocess.Popen(
            [*command(), "streamableHttp"],
            env={**os.environ, "PORT": str(port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stderr is not None
        running.append(process)
        for line in process.stderr:
            if b"listening" in line:
                # Keep reading stderr, so that the server does not block on a full pipe.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return
        raise RuntimeError("the server did not start")

    def end() -> None:
        os.killpg(running[-1].pid, signal.SIGKILL)
        running[-1].wait()

    def restart() -> None:
        end()
        start()

    start()
    try:
        yield HttpServer(f"http://127.0.0.1:{port}/mcp"), restart
    finally:
        end()


@contextmanager
def connected(server: RemoteServer) -> Iterator[Satchel]:
    """Yield a `Satchel` with this server and without the configuration of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            limits=Limits(mcp_connect=LIMIT),
            state_folder=str(Path(folder, "state")),
            config_folder=str(Path(folder, "config")),
        )
        with Satchel(settings=settings) as app:
            app.register_mcp_server(server, name="everything", group="basic", timeout=LIMIT)
            yield app


def tried(app: Satchel, kill: Callable[[], None]) -> Iterator[str]:
    """Use the tools, kill the server during a call, use them again; yield each step that passed."""
    names = {*app.catalog.tools}
    assert {"echo", "get-sum"} <= names, app.catalog.diagnostics
    yield f"{len(names)} tools"
    asyncio.run(use(app))
    yield "text, structured content, images and links"
    gone, back = threading.Event(), threading.Event()
    seen = defaultdict(threading.Event, {Event.REMOVED: gone, Event.ADDED: back})
    app.subscribe(lambda change: seen[change.event].set() if change.name == "echo" else None)
    asyncio.run(interrupted(app, kill))
    yield "killed during a call, which is reported"
    assert gone.wait(LIMIT), "its tools were not removed"
    assert back.wait(LIMIT), "the server did not come back"
    assert {*app.catalog.tools} == names, "its tools changed"
    asyncio.run(use(app))
    yield "back by itself with the same tools"


async def use(app: Satchel) -> None:
    """Call tools with different kinds of results."""
    session = app.session()

    async def call(name: str, **arguments: object) -> object:
        result = await session.call(name, arguments)
        assert not result.is_error, f"{name}: {result.text}"
        return result

    assert (await call("echo", message="hello")).text == "Echo: hello"
    assert "5" in (await call("get-sum", a=2, b=3)).text
    weather = await call("get-structured-content", location="Chicago")
    assert weather.structured.keys() == {"temperature", "conditions", "humidity"}
    picture = await call("get-tiny-image")
    assert any(isinstance(block, Image) for block in picture.content)
    links = await call("get-resource-links", count=2)
    assert sum(isinstance(block, ResourceLink) for block in links.content) == 2
    refused = await session.call("get-structured-content", {"location": "Atlantis"})
    assert refused.error_code == "invalid_arguments"


async def interrupted(app: Satchel, kill: Callable[[], None]) -> None:
    """Kill the server once a long call reports progress; the call ends as an error."""
    arguments = {"duration": LIMIT, "steps": LIMIT}
    items = app.session().stream("trigger-long-running-operation", arguments)
    first = await anext(items)
    assert "progress" in first.metadata, first
    await asyncio.to_thread(kill)
    *_, last = [item async for item in items]
    assert last.error_code == "tool_error", last
    assert "everything" in last.text, last.text


def section(rows: list[Row]) -> str:
    """Return the results as a section of a page."""
    table = "\n".join(
        f"| {name} | {'pass' if ok else 'FAIL'} | {details} |" for name, ok, details in rows
    )
    return SECTION.format(version=VERSION, table=table)


SECTION = """
## The reference server as a remote server

The same run connects a `Satchel` to `@modelcontextprotocol/server-everything` {version}
(`tests/conformance/everything.py`), and kills the server with SIGKILL during a call.

| over | result | tried |
| --- | --- | --- |
{table}
"""

if __name__ == "__main__":
    results = run()
    print(section(results))
    sys.exit(not all(passed for _, passed, _ in results))
