"""Real servers, in processes of their own."""

import asyncio
import inspect
import json
import os
import queue
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_pool import ServerPool
from satchel.settings import Limits

OFFERING = str(Path(__file__).with_name("offering.py"))
ENOUGH = 120
"""Seconds after which a test gives up; nothing waits that long that goes well."""


sys.path.insert(0, str(Path(__file__).parent))  # `described.py` stands beside

from described import PLAIN, described  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), ENOUGH))
    return True


@pytest.fixture
def book(tmp_path):
    """Write what a server offers, and return where that stands."""

    def write(*tools, name="book"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([t if isinstance(t, dict) else described(t) for t in tools]))
        return str(path)

    return write


@pytest.fixture
def on_stdio(book):
    """Describe a server that offers some tools on stdio."""

    def make(*tools, env=None, name="book"):
        return StdioServer(
            command=sys.executable, args=(OFFERING, book(*tools, name=name)), env=env
        )

    return make


@pytest.fixture
def plain(book):
    """Describe a server that is written by hand, and up at once."""

    def make(*tools, how=(), env=None, name="book"):
        return StdioServer(
            command=sys.executable, args=(PLAIN, book(*tools, name=name), *how), env=env
        )

    return make


class HttpProcess:
    """A server on a port of its own, which can be killed and started anew."""

    def __init__(self, book, options=()):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.book, self.options, self.process = book, options, None
        address = f"http://127.0.0.1:{self.port}"
        self.server = SseServer(f"{address}/sse") if options else HttpServer(f"{address}/mcp")

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, OFFERING, self.book, *self.options, "--http", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(ENOUGH)
        self.process.stdout.close()


@pytest.fixture
def on_http(book):
    """Start a server that offers some tools over HTTP."""
    created = []

    def make(*tools, name="book", options=()):
        process = HttpProcess(book(*tools, name=name), options)
        process.start()
        created.append(process)
        return process

    yield make
    for process in created:
        if process.process.poll() is None:
            process.kill()


class Watched:
    """A pool, and a way to wait for what it tells."""

    def __init__(self, limits):
        self.news = queue.SimpleQueue()
        self.pool = ServerPool(limits, lambda: self.news.put(None))

    def until(self, condition):
        """Return what is true at last, looking again after each piece of news."""
        while not (result := condition()):
            self.news.get(timeout=ENOUGH)
        return result

    def up(self, *servers, **options):
        """Add servers, and wait until each has listed its tools."""
        handles = [
            self.pool.add(ServerConfig(name=f"s{at}", server=item, **options))
            for at, item in enumerate(servers)
        ]
        self.until(lambda: all(handle.snapshot.is_up for handle in handles))
        return handles[0] if len(handles) == 1 else handles


@pytest.fixture
def watched():
    created = []

    def make(**limits):
        created.append(Watched(Limits(**limits)))
        return created[-1]

    yield make
    for item in created:
        item.pool.close()
