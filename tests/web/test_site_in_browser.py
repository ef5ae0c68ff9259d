"""The documentation site in a real browser: nothing is missing, and nothing is hard to reach."""

import importlib.util
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WITH_AXE = [
    *("index.html", "tutorial.html", "reference/python.html", "reference/benchmarks.html"),
    "reference/api.html",
]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Print no line for a request."""


@pytest.fixture(scope="module")
def site_address(built_site):
    handler = partial(QuietHandler, directory=str(built_site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def site_page(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_every_page_of_the_site_opens_without_a_failed_request(site_address, site_page):
    faults, asked = [], []
    site_page.on(
        "requestfailed",  # a worker of the search is stopped when its page is left
        lambda request: "ABORTED" in request.failure or faults.append((site_page.url, request.url)),
    )
    site_page.on(
        "response",
        lambda answer: (
            asked.append(answer.url),
            faults.append((site_page.url, answer.url)) if answer.status >= 400 else None,
        ),
    )
    site_page.on("pageerror", lambda error: faults.append((site_page.url, str(error))))
    pages = sorted(page.relative_to(ROOT / "site") for page in (ROOT / "site").rglob("*.html"))
    for page in pages:
        if page.name != "404.html":
            site_page.goto(f"{site_address}{page}", wait_until="load")
    assert faults == []
    assert len(asked) > len(pages)
    assert [address for address in asked if not address.startswith(site_address)] == []


# Each colour and each width once: axe needs minutes for the largest pages.
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_serious_in_the_site(site_address, chromium, scheme, width):
    axe = importlib.util.find_spec("axe_playwright_python")
    if axe is None:
        pytest.skip("axe-playwright-python, which has axe-core, is not installed")
    script = (Path(axe.submodule_search_locations[0]) / "axe.min.js").read_text()
    context = chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    faults = []
    for path in WITH_AXE:
        page.goto(site_address + path, wait_until="load")  # a large page is idle before that, too
        page.wait_for_load_state("networkidle")
        page.evaluate(script)
        faults += [
            (path, item["id"], [node["html"][:200] for node in item["nodes"]][:3])
            for item in page.evaluate("axe.run(document)")["violations"]
            if item["impact"] in {"serious", "critical"}
        ]
    context.close()
    assert faults == []


@pytest.mark.parametrize("place", ["web", "disk"])
def test_the_search_of_the_site_finds_a_page(site_address, built_site, site_page, place):
    failed = []
    site_page.on("requestfailed", lambda request: failed.append(request.url))
    index = site_address if place == "web" else (built_site / "index.html").as_uri()
    site_page.goto(index, wait_until="networkidle")
    box = site_page.get_by_role("combobox")
    deadline = time.monotonic() + 60
    while not box.is_visible() and time.monotonic() < deadline:  # its script may still be loading
        site_page.keyboard.press("/")
        site_page.wait_for_timeout(200)
    box.fill("last good")
    site_page.get_by_text("Why the last good version stays").wait_for()
    assert failed == []
