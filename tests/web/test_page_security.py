"""Who may open the pages, what acts, and what a page may load."""

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from satchel.web.page_security import PageKeys

PATHS = ["/", "/catalog.json", "/prompt", "/problems", "/tools/add", "/sessions/1", "/timeline"]
PATHS += ["/servers", "/plugins", "/skills/pdf", "/static/dev.js", "/static/dev.css"]
TOKEN = "a-token-of-some-length"


def test_without_the_cookie_nothing_is_served(visit):
    client = visit(with_cookie=False)
    for path in [*PATHS, "/events"]:
        answer = client.get(path)
        assert (answer.status_code, "satchel dev" in answer.text) == (401, True), path


METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
SOME_PATHS = [
    "calls/a/blocks/0",
    "sessions/1/recording.jsonl",
    "sessions/1/steps/1",
    "",
    "./static/",
]


@pytest.fixture
def other_user(visit):
    return visit(with_cookie=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(METHODS, st.sampled_from(SOME_PATHS) | st.text(max_size=30), st.text(max_size=20))
def test_without_the_cookie_any_request_for_anything_is_refused(other_user, method, path, token):
    csrf = {"x-csrf-token": PageKeys(TOKEN, 7317).csrf}
    answer = other_user.request(method, f"/{quote(path)}", params={"token": token}, headers=csrf)
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


def test_with_the_cookie_every_page_is_served(pages):
    assert [path for path in PATHS if pages.get(path).status_code != 200] == []


def test_the_token_becomes_a_cookie_and_leaves_the_address(visit):
    client = visit(with_cookie=False)
    answer = client.get(f"/skills/pdf?q=a%20form&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/skills/pdf?q=a+form")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("satchel-dev-7317=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert client.get("/").status_code == 200


def test_the_way_to_the_page_never_leads_to_another_host(visit):
    answer = visit(with_cookie=False).get(f"http://127.0.0.1:7317//evil.example//?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil.example")


def test_another_token_opens_nothing(visit):
    client = visit(with_cookie=False)
    for token in ["", "x", TOKEN + "x", TOKEN[:-1], "\u00e4", "%00"]:
        answer = client.get("/", params={"token": token})
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False), token


def test_the_token_itself_is_no_cookie(visit):
    client = visit(with_cookie=False)
    cookie = {"cookie": f"satchel-dev-7317={TOKEN}"}
    assert client.get("/", headers=cookie).status_code == 401


def test_another_host_is_refused(pages):
    others = ["evil.example", "evil.example:7317", "127.0.0.1.evil.example", "localhost"]
    for host in [*others, "127.0.0.1:7318"]:
        assert pages.get("/", headers={"host": host}).status_code == 421, host


def test_each_name_of_this_machine_is_a_host(visit):
    client = visit(with_cookie=False)
    for host in ["localhost:7317", "127.0.0.1:7317", "[::1]:7317"]:
        assert client.get("/", headers={"host": host}).status_code == 401, host


FOREIGN = ["https://evil.example", "null", "http://127.0.0.1:7318", "https://127.0.0.1:7317"]


def test_a_foreign_origin_is_refused(pages):
    for origin in FOREIGN:
        for path in ("/", "/events"):
            assert pages.get(path, headers={"origin": origin}).status_code == 403, origin


def test_a_foreign_origin_cannot_act_even_with_cookie_and_csrf_token(pages):
    call = {"tool": "add", "arguments": {"a": 1}}
    assert pages.post("/calls", json=call, headers={"origin": "http://evil.example"}).is_error
    assert pages.post("/calls", json=call, headers={"origin": "http://127.0.0.1:7317"}).is_success


ACTIONS = ["/calls", "/calls/call-1/cancel", "/sessions", "/sessions/1/run", "/approvals"]
ACTIONS += ["/logins", "/logins/box/redirect", "/logins/box/cancel"]
ACTIONS += ["/lint", "/save", "/sessions/1/groups", "/sessions/1/replay", "/sessions/1/state"]


@pytest.mark.parametrize("csrf", [None, "", "wrong", "\u00e4".encode("latin-1")])
def test_whatever_acts_needs_the_csrf_token(pages, csrf):
    del pages.headers["x-csrf-token"]
    headers = {} if csrf is None else {"x-csrf-token": csrf}
    for path in ACTIONS:
        answer = pages.post(path, json={}, headers=headers)
        assert (answer.status_code, "CSRF" in answer.text) == (403, True), path


def test_nothing_acts_by_a_link(pages):
    assert [path for path in ACTIONS if pages.get(path).status_code not in {404, 405}] == []


def test_other_methods_are_refused(pages):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert pages.request(method, "/").status_code == 405, method


def test_read_only_refuses_whatever_acts(visit, make_bench):
    client = visit(make_bench(read_only=True))
    for path in ACTIONS:
        answer = client.post(path, json={})
        assert (answer.status_code, "--read-only" in answer.text) == (403, True), path
    assert "data-read-only" in client.get("/").text


def test_a_large_or_unmeasured_request_is_refused(pages):
    assert pages.post("/lint", content=b"x" * (8 * 1024 * 1024 + 1)).status_code == 413
    unmeasured = pages.post("/lint", content=iter([b"{}"]))
    assert (unmeasured.status_code, "length" in unmeasured.text) == (411, True)


def test_every_answer_limits_what_the_page_may_load(pages):
    for path in [*PATHS, "/nothing", "/skills/none"]:
        headers = pages.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; "), path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["x-frame-options"] == "DENY", path
        assert headers["referrer-policy"] == "no-referrer", path
        assert headers["cache-control"] == "no-store", path


def test_refusals_have_the_same_headers(visit):
    for headers in ({}, {"host": "evil.example"}, {"origin": "http://evil.example"}):
        answer = visit(with_cookie=False).get("/", headers=headers)
        assert answer.is_client_error
        assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_no_page_has_inline_script_or_style(pages):
    for path in PATHS[:-2]:
        text = pages.get(path).text
        assert "<script>" not in text
        assert " style=" not in text
        assert " onclick=" not in text
        assert "http://" not in text.replace("http://www.w3.org", "")


def test_two_ports_of_one_host_have_two_cookies():
    from satchel.web.page_security import PageKeys

    assert PageKeys(TOKEN, 1).cookie_name != PageKeys(TOKEN, 2).cookie_name


def test_an_unexpected_error_shows_no_traceback(bench, visit, monkeypatch):
    def broken(*_):
        raise RuntimeError("secret path /home/x")

    client = visit()
    monkeypatch.setattr(type(bench), "conversation", broken)
    answer = TestClient(client.app, base_url=client.base_url, raise_server_exceptions=False)
    answer.cookies.update(client.cookies)
    page = answer.get("/sessions/1")
    assert (page.status_code, "secret" in page.text) == (500, False)
