"""Logging in to servers, against the authorization server of the SDK."""

import asyncio
import json
import logging
import queue
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx2
import pytest
from authorized import Running, free_port
from mcp.shared.auth import OAuthClientInformationFull

from satchel import (
    HttpServer,
    Limits,
    OAuthClient,
    RemoteClient,
    Satchel,
    SatchelError,
    Settings,
    SseServer,
    StdioServer,
    tool,
)
from satchel.mcp_servers import login_auth
from satchel.mcp_servers.browser_login import LoginDialog, log_in
from satchel.mcp_servers.server_login import ServerLogin
from satchel.mcp_servers.token_store import TokenStore

ENOUGH = 120


@pytest.fixture
def running():
    created = []

    def make(**options):
        created.append(Running(**options))
        return created[-1]

    yield make
    for item in created:
        item.stop()


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def left_alone(monkeypatch):
    """Return a function that waits until a server that needs a login is not asked any more."""
    waiting, wait_for_login = threading.Event(), ServerLogin.until_changed

    async def until_changed(login):
        waiting.set()
        await wait_for_login(login)
        waiting.clear()

    monkeypatch.setattr(ServerLogin, "until_changed", until_changed)
    return lambda: waiting.wait(ENOUGH)


class Browser:
    """Opens addresses as a browser does, in a thread; `meanwhile` comes between."""

    def __init__(self, meanwhile=None):
        self.shown, self.opened, self.meanwhile = [], [], meanwhile
        self.answers = queue.SimpleQueue()

    def open(self, address):
        self.opened.append(address)
        threading.Thread(target=self._visit, args=(address,), daemon=True).start()
        return True

    def _visit(self, address):
        redirect = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        if self.meanwhile is not None:
            self.meanwhile(redirect, self.answers)
        self.answers.put(httpx2.get(address, follow_redirects=True))

    @property
    def dialog(self):
        return LoginDialog(show=self.shown.append, open=self.open)


def logged_in(server, folder, browser=None, seconds=ENOUGH):
    browser = browser or Browser()
    return asyncio.run(
        log_in("box", server, folder, browser.dialog, limits=Limits(), seconds=seconds)
    )


def satchel_of(folder, server, **options):
    app = Satchel(settings=Settings(limits=Limits(mcp_connect=60), state_folder=folder))
    app.register_mcp_server(server, name="box", **options)
    return app


def problems(app):
    return [item for item in app.catalog.diagnostics if item.code.startswith("mcp-")]


def codes(app):
    return [item.code for item in problems(app)]


def echoed(app, **arguments):
    session = app.session()
    session.activate("box")
    return asyncio.run(session.call("echo", arguments or {"text": "hello"}))


def expire(box, server, folder):
    """Let the time of the stored token pass."""
    store = TokenStore(folder, server)
    store.save(replace(store.load(), expires_at=1.0))
    box.authority.access.clear()


@tool
def nearly() -> str:
    """Have nearly the name of another tool."""
    return ""


def until(true):
    end = time.monotonic() + ENOUGH
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_login_is_used_by_every_later_connection(running, folder):
    server = HttpServer(running().url)
    browser = Browser()
    assert logged_in(server, folder, browser) == 3
    assert browser.shown == browser.opened
    page = browser.answers.get(timeout=ENOUGH)
    assert (page.status_code, "Satchel has the login to box" in page.text) == (200, True)
    with satchel_of(folder, server) as app:
        assert codes(app) == []
        assert echoed(app).text == "hello"


def test_a_server_that_needs_a_login_says_so_and_is_not_asked_again(running, folder, left_alone):
    box = running()
    with satchel_of(folder, HttpServer(box.url)) as app:
        (problem,) = problems(app)
        assert problem.code == "mcp-login-needed"
        assert problem.fix == "satchel mcp login box"
        assert left_alone()
        asked = len(box.requests)
    assert len(box.requests) == asked


def test_a_model_hears_of_all_servers_that_are_down(running, folder):
    dead = StdioServer(command="no-such-command")
    with satchel_of(folder, HttpServer(running().url)) as app:
        app.register_mcp_server(dead, name="a")
        assert echoed(app).text.endswith(
            "not connected: server 'box' needs a login, server 'a' is restarting. Ask the user to "
            "run: satchel mcp login box. Or try again later. Continue without it if you can."
        )
        for name in "bcd":
            app.register_mcp_server(dead, name=name)
        assert ", server 'b' is restarting, and 2 more. Ask the user" in echoed(app).text
        app.remove_mcp_servers("box")
        assert asyncio.run(app.session().call("echo", {})).text.endswith(
            "not connected: server 'a' is restarting, server 'b' is restarting, server 'c' is "
            "restarting, and 1 more. Try again later, or continue without it."
        )


def test_a_model_hears_that_the_server_needs_a_login(running, folder):
    box = running()
    server = HttpServer(box.url)
    advice = "server 'box' needs a login. Ask the user to run: satchel mcp login box. Continue "
    with satchel_of(folder, server) as app:  # never connected
        assert (
            "Either no server has it, or it is a tool of a server that is not connected: " + advice
        ) in echoed(app).text
        app.register_tool(nearly, name="ech")
        assert "Did you mean" not in echoed(app).text
    logged_in(server, folder)
    with satchel_of(folder, server):
        pass
    TokenStore(folder, server).delete()
    with satchel_of(folder, server) as app:  # known by its pins
        assert echoed(app).text.startswith(f"Tool 'echo' cannot be used now: {advice}")
        assert "It needs a login" in app.catalog.groups["box"].description
        unknown = asyncio.run(app.session().call("ecko", {})).text
        assert unknown.startswith("There is no tool 'ecko'.")
        assert "not connected" not in unknown


def test_a_running_program_uses_a_login_as_soon_as_it_is_there(running, folder):
    server = HttpServer(running().url)
    with satchel_of(folder, server) as app:
        assert codes(app) == ["mcp-login-needed"]
        logged_in(server, folder)
        until(lambda: codes(app) == [])
        assert echoed(app).text == "hello"


def test_an_expired_token_is_renewed(running, folder):
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    expire(box, server, folder)
    with satchel_of(folder, server) as app:
        assert echoed(app).text == "hello"
        assert box.authority.refreshed >= 1
    # A later process uses what was renewed: the first refresh token is used up.
    refreshed = box.authority.refreshed
    with satchel_of(folder, server) as app:
        assert echoed(app).text == "hello"
    assert box.authority.refreshed == refreshed


def test_a_token_that_the_server_forgot_is_renewed_during_a_call(running, folder):
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    with satchel_of(folder, server) as app:
        box.authority.access.clear()
        assert echoed(app).text == "hello"
        assert box.authority.refreshed == 1


def test_a_refresh_that_fails_needs_another_login(running, folder):
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    with satchel_of(folder, server) as app:
        box.authority.refuses_refresh = True
        box.authority.access.clear()
        result = echoed(app)
        assert result.is_error
        assert "ask the user to run 'satchel mcp login box'" in result.text
        until(lambda: "mcp-login-needed" in codes(app))
        (problem,) = problems(app)
        assert "does not accept the login any more" in problem.message


def test_a_broken_authorization_server_is_an_outage(running, folder):
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    expire(box, server, folder)
    box.authority.is_broken = True
    with satchel_of(folder, server) as app:
        (problem,) = problems(app)
        assert problem.code == "mcp-server-down"
        assert "its authorization server answered with HTTP status 500" in problem.message
        box.authority.is_broken = False
        until(lambda: codes(app) == [])


def test_two_processes_renew_a_login_one_after_the_other(running, folder):
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    with satchel_of(folder, server) as one, satchel_of(folder, server) as other:
        box.authority.access.clear()
        assert echoed(one).text == "hello"
        # The other one has the old refresh token, which is used up.
        assert echoed(other).text == "hello"
        assert box.authority.refreshed == 1


def forged(**values):
    """Come before the browser, with another redirect."""

    def meanwhile(redirect, answers):
        for query in (values, {}, {"error": "access_denied"}, {"error": "x", "state": "wrong"}):
            parts = urlsplit(redirect)
            answers.put(httpx2.get(urlunsplit(parts._replace(query=urlencode(query)))))
        answers.put(httpx2.get(redirect.replace("/callback", "/favicon.ico")))

    return meanwhile


def test_a_forged_redirect_is_refused_and_the_login_continues(running, folder):
    box = running()
    browser = Browser(forged(code="forged", state="wrong"))
    assert logged_in(HttpServer(box.url), folder, browser) == 3
    answers = [browser.answers.get(timeout=ENOUGH) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [400] * 5 + [200]
    assert not any("forged" in answer.text for answer in answers)


def test_a_redirect_of_another_issuer_is_refused(running, folder):
    box = running()

    class Mixed(Browser):
        def _visit(self, address):
            location = httpx2.get(address, follow_redirects=False).headers["location"]
            self.answers.put(httpx2.get(f"{location}&iss=https%3A%2F%2Felsewhere.example"))

    with pytest.raises(SatchelError, match="authorization server is another one than expected"):
        logged_in(HttpServer(box.url), folder, Mixed())
    assert TokenStore(folder, HttpServer(box.url)).load() is None


def test_a_login_that_the_user_refuses_is_not_saved(running, folder):
    box = running()

    class Refusing(Browser):
        def _visit(self, address):
            asked = parse_qs(urlsplit(address).query)
            location = urlencode({"error": "access_denied", "state": asked["state"][0]})
            self.answers.put(httpx2.get(f"{asked['redirect_uri'][0]}?{location}"))

    with pytest.raises(SatchelError, match="refused the login: access_denied"):
        logged_in(HttpServer(box.url), folder, Refusing())
    assert TokenStore(folder, HttpServer(box.url)).load() is None


@pytest.mark.slow
def test_a_login_that_is_not_completed_ends(running, folder):
    class Closed(Browser):
        def _visit(self, address):
            """Do nothing: the window was closed."""

    with pytest.raises(SatchelError, match="no login within 5 s"):
        logged_in(HttpServer(running().url), folder, Closed(), seconds=5)


def test_the_address_can_be_pasted_where_there_is_no_browser(running, folder):
    pasted = queue.SimpleQueue()

    def show(address):
        location = httpx2.get(address, follow_redirects=False).headers["location"]
        pasted.put("not an address\n")
        pasted.put(f"{location}\n")

    dialog = LoginDialog(show=show, open=lambda _: False, read_line=pasted.get)
    server = HttpServer(running().url)
    created = log_in("box", server, folder, dialog, limits=Limits(), seconds=ENOUGH)
    assert asyncio.run(created) == 3
    pasted.put("")  # ends the thread that reads


def test_the_scopes_that_a_server_asks_for_are_requested(running, folder):
    box = running(scopes=["read"])
    server = HttpServer(box.url, oauth=OAuthClient(scopes=("mail",)))
    logged_in(server, folder)
    assert box.authority.asked_scopes == [["read", "mail"]]


def test_a_call_that_needs_another_scope_says_so_and_the_next_login_asks_for_it(running, folder):
    box = running(scopes=["read"])
    server = HttpServer(box.url)
    logged_in(server, folder)
    with satchel_of(folder, server) as app:
        session = app.session()
        session.activate("box")
        result = asyncio.run(session.call("write", {"text": "x"}))
        assert "needs a login with the scope 'read write'" in result.text
        assert echoed(app).text == "hello"  # the others still work
        logged_in(server, folder)
        assert box.authority.asked_scopes[-1] == ["read", "write"]
        assert asyncio.run(session.call("write", {"text": "x"})).text == "written"


def test_a_server_without_a_login_says_so(running, folder):
    box = running(auth=False)
    with pytest.raises(SatchelError, match="it offers no login") as caught:
        logged_in(HttpServer(box.url), folder)
    assert "headers" in caught.value.fix


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (HttpServer("http://mcp.example.org/mcp"), "not reached over https"),
        (HttpServer("https://a.example/mcp", {"authorization": "x"}), "has credentials in its"),
        (HttpServer("https://me:hush@a.example/mcp"), "has credentials in its"),
    ],
)
def test_no_login_is_begun_where_it_would_be_of_no_use(folder, server, why):
    with pytest.raises(SatchelError, match=why):
        logged_in(server, folder)


checks_issuers = pytest.mark.skipif(
    not login_auth.CHECKS_ISSUERS, reason="a login with an issuer needs an SDK from 2.2 on"
)


def test_an_sdk_that_does_not_check_issuers_logs_in_with_none(running, folder, monkeypatch):
    monkeypatch.setattr(login_auth, "CHECKS_ISSUERS", False)
    box = running()
    secret = {"client_id": "known", "client_secret": "hush", "issuer": box.issuer}
    by_person = HttpServer(box.url, oauth=OAuthClient(**secret))
    with pytest.raises(SatchelError, match="do not check the configured issuer"):
        logged_in(by_person, folder)
    alone = HttpServer(box.url, oauth=OAuthClient(grant="client-credentials", **secret))
    with satchel_of(folder, alone) as app:
        (problem,) = problems(app)
        assert "SDKs before 2.2 do not check the configured issuer" in problem.message
    assert box.requests == []


@checks_issuers
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_configured_client_is_not_registered(running, folder, method):
    box = running(metadata={"token_endpoint_auth_methods_supported": [method]})
    redirect = f"http://localhost:{free_port()}/back"
    box.authority.clients["known"] = OAuthClientInformationFull(
        client_id="known",
        client_secret="hush-hush",
        redirect_uris=[redirect],
        token_endpoint_auth_method=method,
        scope="mail",
    )
    client = OAuthClient(
        client_id="known",
        client_secret="hush-hush",
        issuer=box.issuer,
        redirect=redirect,
        scopes=("mail",),
    )
    server = HttpServer(box.url, oauth=client)
    logged_in(server, folder)
    assert ("POST", "/register") not in box.requests
    assert ["mail"] in box.authority.asked_scopes
    box.authority.access.clear()
    with satchel_of(folder, server) as app:
        assert echoed(app).text == "hello"
        assert "hush-hush" not in repr(app.catalog.diagnostics) + repr(server)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"code_challenge_methods_supported": None}, "does not say that it checks code challenges"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not say that it checks"),
        ({"authorization_endpoint": "https://known.example@evil.example/"}, "has a user name"),
        ({"token_endpoint": "https://known.example@evil.example/"}, "has a user name"),
        ({"token_endpoint": "http://192.0.2.2/token"}, "token_endpoint is not reached over https"),
        ({"authorization_endpoint": "https://a.example/login#a"}, "has a fragment"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "says about itself is invalid"),
        ({"code_challenge_methods_supported": "S256"}, "says about itself is invalid"),
        ({"registration_endpoint": "http://192.0.2.2/"}, "is not reached over https"),
    ],
)
def test_a_login_that_could_be_stolen_is_not_begun(running, folder, metadata, why):
    browser = Browser()
    with pytest.raises(SatchelError, match=why):
        logged_in(HttpServer(running(metadata=metadata).url), folder, browser)
    assert browser.opened == []


def test_the_address_of_a_login_has_one_query():
    assert login_auth.with_one_query("https://a.example/login?p=x?state=1") == (
        "https://a.example/login?p=x&state=1"
    )
    assert (
        login_auth.with_one_query("https://a.example/login?state=1")
        == "https://a.example/login?state=1"
    )


@checks_issuers
def test_a_secret_is_sent_to_no_other_authorization_server(running, folder):
    box = running()
    client = OAuthClient(client_id="known", client_secret="hush", issuer="https://other.example")
    with pytest.raises(SatchelError, match="authorization server is another one than expected"):
        logged_in(HttpServer(box.url, oauth=client), folder)
    assert ("POST", "/token") not in box.requests


@checks_issuers
def test_client_credentials_need_no_person(running, folder):
    box = running().for_programs()
    client = OAuthClient(
        grant="client-credentials",
        client_id="agent",
        client_secret="hush",
        issuer=box.issuer,
        scopes=("read",),
    )
    with satchel_of(folder, HttpServer(box.url, oauth=client)) as app:
        assert codes(app) == []
        assert echoed(app).text == "hello"
        box.authority.access.clear()
        assert echoed(app).text == "hello"
        assert box.authority.asked_scopes == [["read"], ["read"]]
    assert not Path(TokenStore(folder, HttpServer(box.url)).path).exists()


@checks_issuers
def test_wrong_client_credentials_are_not_tried_again(running, folder, left_alone):
    box = running().for_programs()
    client = OAuthClient(
        grant="client-credentials", client_id="agent", client_secret="no", issuer=box.issuer
    )
    with satchel_of(folder, HttpServer(box.url, oauth=client)) as app:
        (problem,) = problems(app)
        assert problem.code == "mcp-login-needed"
        assert "refused to give a token (invalid_client)" in problem.message
        assert "client-secret" in problem.fix
        assert left_alone()
        asked = len(box.requests)
    assert len(box.requests) == asked


def test_refused_headers_are_not_tried_again(running, folder):
    box = running()
    with satchel_of(folder, HttpServer(box.url, {"Authorization": "Bearer hush-hush"})) as app:
        (problem,) = problems(app)
        assert (problem.code, problem.fix) == (
            "mcp-login-needed",
            "correct the URL or the headers of the server",
        )
        assert "hush-hush" not in str(problem)


@pytest.fixture
def side_by_side(running, folder):
    """Return a function that runs a coroutine function of a server and a session that uses it."""

    def run(work):
        box = running()
        server = HttpServer(box.url)
        logged_in(server, folder)
        with satchel_of(folder, server) as app:
            session = app.session()
            session.activate("box")
            return asyncio.run(work(box.authority, session))

    return run


def test_calls_run_side_by_side(side_by_side):
    async def work(authority, session):
        authority.access.clear()
        arguments = ({"text": str(number)} for number in range(20))
        results = await asyncio.gather(*(session.call("echo", item) for item in arguments))
        return [result.text for result in results], authority.refreshed

    assert side_by_side(work) == ([str(number) for number in range(20)], 1)


def test_a_slow_call_does_not_block_the_others(side_by_side):
    async def work(authority, session):
        slow = asyncio.create_task(session.call("hold", {}))
        echoes = [await session.call("echo", {"text": "x"}) for _ in range(3)]
        authority.is_released = True
        return [result.text for result in (*echoes, await slow)]

    assert side_by_side(work) == ["x", "x", "x", "held"]


def test_a_server_over_sse_needs_a_login_as_well(running, folder):
    box = running()
    with satchel_of(folder, SseServer(box.url)) as app:
        (problem,) = problems(app)
        assert (problem.code, problem.fix) == ("mcp-login-needed", "satchel mcp login box")


def test_a_client_for_each_call_uses_the_login_too(running, folder):
    server = HttpServer(running().url)
    client = RemoteClient(server, stateless=True)
    app = Satchel(settings=Settings(limits=Limits(mcp_connect=60), state_folder=folder))
    with app:
        app.register_mcp_server(client, name="box")
        assert codes(app) == ["mcp-login-needed"]
        logged_in(server, folder)
        until(lambda: codes(app) == [])
        assert echoed(app).text == "hello"


def test_tokens_appear_nowhere(running, folder, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    box = running()
    server = HttpServer(box.url)
    logged_in(server, folder)
    expire(box, server, folder)
    with satchel_of(folder, server) as app:
        shown = [echoed(app).text, repr(app.catalog), app.session().prompt()]
        box.authority.refuses_refresh = True
        box.authority.access.clear()
        shown += [echoed(app).text, str(app.catalog.diagnostics)]
    shown += [caplog.text, *capfd.readouterr()]
    assert len(box.authority.issued) >= 4
    for token in box.authority.issued:
        assert not any(token in text for text in shown)


def test_the_file_is_readable_only_by_its_owner(running, folder):
    box = running()
    logged_in(HttpServer(box.url), folder)
    store = TokenStore(folder, HttpServer(box.url))
    assert Path(store.path).stat().st_mode & 0o777 == 0o600
    assert Path(store.path).parent.stat().st_mode & 0o777 == 0o700
    assert "secrets" in json.loads(Path(store.path).read_bytes())
