"""A server of the pages in a thread, and the browser that visits it."""

import asyncio
import importlib.util
import shutil
import threading
import urllib.parse
from contextlib import suppress
from pathlib import Path

import pytest

from satchel.http.listen_address import Address
from satchel.http.quiet_server import listen
from satchel.web.dev_server import serve_dev
from satchel.web.workbench import Workbench

PATIENCE = 60.0
"""Seconds after which something that should come counts as never coming."""
TOKEN = "a-token-of-some-length"
LOOPBACK = Address("127.0.0.1", 7317)
HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(1)> "quoted" \u202egnitrever'

LOOKS = [("light", 1280), ("dark", 400), ("dark", 1280), ("light", 400)]
"""Every colour scheme in every width."""

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class DevServer:
    """A server in a thread; it can be stopped, and started again at its port."""

    def __init__(self, bench: Workbench, port: int = 0) -> None:
        self.bench = bench
        self._listening, self.address = listen(Address("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._is_ready = threading.Event()
        self._loop = self._task = None
        self._thread.start()
        assert self._is_ready.wait(PATIENCE)

    @property
    def url(self) -> str:
        return self.address.root_url

    @property
    def entrance(self) -> str:
        return f"{self.url}/?{urllib.parse.urlencode({'token': TOKEN})}"

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            await serve_dev(self.bench, self._listening, self.address, TOKEN, self._is_ready.set)

        with suppress(asyncio.CancelledError), self._listening:
            asyncio.run(serve())

    def stop(self) -> None:
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def serious_faults(page) -> list[tuple]:
    """Return what axe-core finds serious on the open page, and whether it is too wide."""
    axe = importlib.util.find_spec("axe_playwright_python")
    if axe is None:
        pytest.skip("axe-playwright-python, which has axe-core, is not installed")
    page.evaluate((Path(axe.submodule_search_locations[0]) / "axe.min.js").read_text())
    results = [
        (item["id"], [node["html"][:200] for node in item["nodes"]][:3])
        for item in page.evaluate("axe.run(document)")["violations"]
        if item["impact"] in {"serious", "critical"}
    ]
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [*results, ("too wide", wide)] if wide > 0 else results
