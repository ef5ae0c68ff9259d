"""Logging in to an MCP server on its page, in a real browser."""

import sys
from pathlib import Path

import pytest
from dev_servers import LOOKS, DevServer, serious_faults

sys.path.insert(0, str(Path(__file__).parents[1] / "mcp_servers"))  # `authorized.py` is there

from authorized import Running

from satchel import Project, Satchel, Settings
from satchel.web.workbench import DevOptions, Workbench

pytestmark = pytest.mark.slow


@pytest.fixture
def box():
    running = Running()
    yield running
    running.stop()


@pytest.fixture
def server(folders, box):
    (folders / "satchel.toml").write_text(f'[mcp.box]\nurl = "{box.url}"\n')
    with Satchel(project=Project(".", trust="code"), settings=Settings(mcp_servers=True)) as app:
        app.wait_for_mcp_servers()
        server = DevServer(Workbench(app, DevOptions(source_options=("--skills", "more"))))
        yield server
        server.stop()


def test_a_login_is_begun_on_the_page_and_used_at_once(server, open_page):
    page = open_page(server, "/servers")
    assert "needs a login" in page.inner_text("#servers")
    page.click("text=Log in to box")
    with page.expect_popup() as popup:
        page.click("text=Open the login page of box")
    popup.value.wait_for_selector("text=Satchel has the login to box")
    page.wait_for_selector("a.chip:has-text('echo')")
    assert "Log in" not in page.inner_text("#servers")


@pytest.mark.parametrize("path", ["/servers", "/problems"])
def test_the_pages_name_one_command_that_logs_in(server, open_page, path):
    page = open_page(server, path)
    assert "satchel mcp login --skills more box" in page.inner_text("main")


def test_the_state_of_a_server_has_one_name(server, open_page):
    page = open_page(server, "/servers")
    assert page.inner_text("#servers .chip.revoked") == "revoked"


def test_the_address_of_a_browser_elsewhere_can_be_pasted(server, open_page, box):
    page = open_page(server, "/servers")
    page.click("text=Log in to box")
    page.wait_for_selector("text=Open the login page of box")
    link = page.get_attribute("text=Open the login page of box", "href")
    # A browser elsewhere cannot open the last address.
    answer = page.request.get(link, max_redirects=0)
    page.fill("[name=address]", "http://127.0.0.1:1/callback?code=forged&state=forged")
    page.click("text=Use it")
    page.wait_for_selector("#toast:has-text('not the address at which the login ends')")
    page.fill("[name=address]", answer.headers["location"])
    page.click("text=Use it")
    page.wait_for_selector("a.chip:has-text('echo')")


def test_a_login_that_waits_can_be_left(server, open_page):
    page = open_page(server, "/servers")
    page.click("text=Log in to box")
    page.click("text=Cancel")
    page.wait_for_selector("text=Log in to box")


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_serious_about_a_login(server, open_page, scheme, width):
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_page(server, "/servers", **look)
    page.wait_for_selector("text=Log in to box")
    faults = serious_faults(page)
    page.click("text=Log in to box")
    page.wait_for_selector("text=Open the login page of box")
    page.wait_for_selector("[name=address]")
    assert faults + serious_faults(page) == []
