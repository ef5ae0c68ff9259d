"""What an HTTP request passes first."""

import pytest
from clients import run
from starlette.responses import PlainTextResponse

from satchel.http.listen_address import Address, origin_of
from satchel.http.trusted_hosts import TrustedHosts
from satchel.mcp.auth_middleware import CREDENTIAL, AuthMiddleware
from satchel.mcp.bearer_tokens import BearerTokens

TOKEN, OTHER = "a" * 32, "b" * 32
LOOPBACK = Address("127.0.0.1", 8000)
EVERY = Address("0.0.0.0", 8000)


async def welcome(scope, receive, send):
    await PlainTextResponse(str(CREDENTIAL in scope))(scope, receive, send)


def status(gate, path="/mcp", client=("127.0.0.1", 9), **headers):
    """Return the status that a request is answered with."""
    sent = []

    async def send(message):
        sent.append(message)

    sent_headers = {
        "host": "127.0.0.1:8000",
        **{key.replace("_", "-"): v for key, v in headers.items()},
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "client": client,
        "headers": [(key.encode(), value.encode()) for key, value in sent_headers.items() if value],
    }
    run(gate(scope, None, send))
    return sent[0]["status"]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000),
        ("localhost:0", "localhost", 0),
        ("[::1]:80", "::1", 80),
        ("8000", "127.0.0.1", 8000),
        (":8000", "127.0.0.1", 8000),
        ("0.0.0.0:1", "0.0.0.0", 1),
    ],
)
def test_an_address_is_a_host_and_a_port(text, host, port):
    assert Address.of(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "a:b", "a:70000", "a:-1", "[::1]"])
def test_what_has_no_port_is_no_address(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        Address.of(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_some_addresses_only_this_machine_can_reach(host):
    assert Address(host, 1).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.evil"])
def test_all_others_can_be_reached_from_elsewhere(host):
    assert not Address(host, 1).is_loopback


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (LOOPBACK, "http://127.0.0.1:8000/mcp"),
        (EVERY, "http://127.0.0.1:8000/mcp"),
        (Address("::1", 8000), "http://[::1]:8000/mcp"),
    ],
)
def test_an_address_has_a_url_to_connect_to(address, url):
    assert address.url == url


@pytest.mark.parametrize(
    ("page", "origin"),
    [
        ("https://App.Example.com/", "https://app.example.com"),
        ("https://app.example.com:443/page?x#y", "https://app.example.com"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_where_a_page_comes_from_is_said_as_browsers_say_it(page, origin):
    assert origin_of(page) == origin


@pytest.mark.parametrize("page", ["", "app.example.com", "ftp://x", "https://", "http://x:a"])
def test_what_is_no_page_comes_from_nowhere(page):
    with pytest.raises(ValueError, match=r"https://NAME|[Pp]ort"):
        origin_of(page)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_the_names_of_this_machine_are_let_in(host):
    assert status(TrustedHosts(welcome, LOOPBACK), host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.com",
        "evil.com:8000",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "user@evil.com",
        "192.168.1.5",
        "[::1",
        "evil.com#localhost",
    ],
)
def test_a_name_that_is_not_this_servers_is_refused(host):
    assert status(TrustedHosts(welcome, LOOPBACK), host=host) == 421


def test_a_name_can_be_added():
    gate = TrustedHosts(welcome, LOOPBACK, hosts=["Tools.Example.com"])
    assert status(gate, host="tools.example.com") == 200


def test_a_number_can_be_added():
    gate = TrustedHosts(welcome, LOOPBACK, hosts=["fd00::5", "10.0.0.5"])
    assert status(gate, host="[fd00::5]:8000", origin="http://[fd00::5]") == 200


def test_every_address_is_called_by_any_number_and_by_no_unknown_name():
    assert status(TrustedHosts(welcome, EVERY), host="192.168.1.5:8000") == 200
    assert status(TrustedHosts(welcome, EVERY), host="evil.com:8000") == 421


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("LOCALHOST:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("localhost", "http://localhost:80"),
        ("localhost", "https://localhost"),
    ],
)
def test_a_page_of_the_address_that_is_spoken_to_is_let_in(host, origin):
    assert status(TrustedHosts(welcome, LOOPBACK), host=host, origin=origin) == 200


def test_a_page_of_a_name_that_was_added_is_let_in_whatever_a_proxy_makes_of_it():
    gate = TrustedHosts(welcome, LOOPBACK, hosts=["tools.example.com"])
    assert status(gate, origin="https://tools.example.com") == 200
    assert status(gate, origin="https://tools.example.com:9999") == 403


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.com", "https://localhost.evil.com", "null", "file://localhost", "http://["),
        *("x", "http://localhost:8000", "http://127.0.0.1:3000", "http://127.0.0.1"),
        *("http://127.0.0.1:99999", "http://user@127.0.0.1:8000"),
    ],
)
def test_other_pages_are_refused(origin):
    assert status(TrustedHosts(welcome, LOOPBACK), origin=origin) == 403


def test_a_page_can_be_added():
    gate = TrustedHosts(welcome, LOOPBACK, origins=["https://app.example.com/"])
    assert status(gate, origin="https://app.example.com") == 200
    assert status(gate, origin="http://app.example.com") == 403


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n{OTHER}\n")
    path.chmod(0o600)
    return BearerTokens(str(path))


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_who_bears_a_token_is_let_in(tokens, header):
    assert status(AuthMiddleware(welcome, tokens=tokens), authorization=header) == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", f"Basic {TOKEN}", "Bearer x", f"Bearer {TOKEN}x", TOKEN]
)
def test_who_bears_none_is_not(tokens, header):
    assert status(AuthMiddleware(welcome, tokens=tokens), authorization=header) == 401


def test_names_are_checked_also_of_who_bears_a_token(tokens):
    gate = TrustedHosts(AuthMiddleware(welcome, tokens=tokens), LOOPBACK)
    assert status(gate, host="evil.com", authorization=f"Bearer {TOKEN}") == 421


def test_one_address_may_send_so_many_requests_at_once_and_others_still_may():
    gate = AuthMiddleware(welcome, per_second=0.01)
    assert [status(gate) for _ in range(2)] == [200, 429]
    assert status(gate, client=("10.0.0.1", 9)) == 200


def test_behind_one_address_everybody_with_a_token_has_turns_of_its_own(tokens):
    gate = AuthMiddleware(welcome, tokens=tokens, per_second=0.01)
    headers = [f"Bearer {token}" for token in ("x", TOKEN, TOKEN, OTHER)]
    assert [status(gate, authorization=one) for one in headers] == [401, 200, 429, 200]


def test_guessing_tokens_counts_as_requests(tokens):
    gate = AuthMiddleware(welcome, tokens=tokens, per_second=0.01)
    assert [status(gate, authorization="Bearer x") for _ in range(2)] == [401, 429]


def test_what_is_no_http_is_not_let_in():
    async def fail(*_):
        raise AssertionError

    run(TrustedHosts(fail, LOOPBACK)({"type": "websocket"}, None, fail))
