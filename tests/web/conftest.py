"""The pages of `satchel dev`: as an application, and as a server that a real browser visits."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))  # `dev_servers.py` stands beside

from dev_servers import CHROMIUM, FLAGS, LOOPBACK, PATIENCE, TOKEN, DevServer

from satchel import Satchel
from satchel.web.dev_server import dev_app
from satchel.web.page_security import PageKeys
from satchel.web.workbench import DevOptions, Workbench

TOOLS = '''
    import asyncio
    from satchel import Image, tool

    PICTURE = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
    )

    @tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @tool
    def draw() -> list:
        """Draw a picture."""
        return ["a picture", Image(PICTURE), Image(b"<script>alert(1)</script>", "text/html")]

    @tool
    async def slow():
        """Take long."""
        yield "begun "
        await asyncio.sleep(600)
        yield "ended"

    @tool
    def fail():
        """Fail."""
        raise ValueError("no")
'''


@pytest.fixture
def folders(tmp_path, monkeypatch, write_skill, write_plugin) -> Path:
    """A folder with `skills` and `plugins`, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "skills", "pdf", description="Fills in PDF forms.", body="# PDF\n")
    write_skill(tmp_path / "skills", "mail", description="Writes letters.")
    write_plugin(
        tmp_path / "plugins",
        "demo",
        "version: 1.2.3\ndescription: Shows how.\nnotes: Be kind.\nactive: true\n",
        tools=TOOLS,
    )
    return tmp_path


@pytest.fixture
def make_bench(folders):
    """Return a function that makes a workbench of the folders."""
    apps = []

    def make(**options) -> Workbench:
        app = Satchel(skills=["skills"], plugins=["plugins"])
        apps.append(app)
        all_options = {
            "sources": {"skills": ["skills"]},
            "source_options": ("--skills", "skills"),
            **options,
        }
        return Workbench(app, DevOptions(**all_options))

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def bench(make_bench) -> Workbench:
    return make_bench()


@pytest.fixture
def visit(bench):
    """Return a client of the pages of `bench`, or of another workbench, that has the cookie."""

    def visit(other: Workbench | None = None, *, with_cookie: bool = True) -> TestClient:
        app = dev_app(other or bench, PageKeys(TOKEN, LOOPBACK.port), LOOPBACK)
        client = TestClient(app, base_url=LOOPBACK.root_url, follow_redirects=False)
        if with_cookie:
            client.get(f"/?token={TOKEN}")
            client.headers["x-csrf-token"] = PageKeys(TOKEN, LOOPBACK.port).csrf
        return client

    return visit


@pytest.fixture
def pages(visit) -> TestClient:
    return visit()


@pytest.fixture
def start_server(make_bench):
    """Return a function that starts a server with a workbench of its own."""
    servers = []

    def start(port: int = 0, **options) -> DevServer:
        servers.append(DevServer(make_bench(**options), port))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def chromium():
    """A real browser, if the system has one; its event loop must not outlive the module."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a page of a server, and fails for anything in its console."""
    contexts, complaints = [], []

    def open_page(server: DevServer, path: str = "/", **options) -> SimpleNamespace:
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1_000)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message) or dialog.dismiss())
        page.on(
            "console",
            lambda line: complaints.append(line.text) if "Content Security" in line.text else None,
        )
        page.goto(server.entrance)
        if path != "/":
            page.goto(server.url + path)
        page.wait_for_selector(".live.on")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
