"""What an HTTP request passes first."""

import pytest
from clients import run
from starlette.responses import PlainTextResponse

from satchel.mcp.address import Address
from satchel.mcp.gate import CREDENTIAL, Gate
from satchel.mcp.tokens import Tokens

TOKEN = "a" * 32
LOOPBACK = Address("127.0.0.1", 8000)
EVERY = Address("0.0.0.0", 8000)


async def welcome(scope, receive, send):
    await PlainTextResponse(str(CREDENTIAL in scope))(scope, receive, send)


def status(gate, path="/mcp", client=("127.0.0.1", 9), **headers):
    """Return the status that a request is answered with."""
    sent = []

    async def send(message):
        sent.append(message)

    given = {"host": "127.0.0.1:8000", **{key.replace("_", "-"): v for key, v in headers.items()}}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "client": client,
        "headers": [(key.encode(), value.encode()) for key, value in given.items() if value],
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


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_the_names_of_this_machine_are_let_in(host):
    assert status(Gate(welcome, LOOPBACK), host=host) == 200


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
    assert status(Gate(welcome, LOOPBACK), host=host) == 421


def test_a_name_can_be_added():
    gate = Gate(welcome, LOOPBACK, hosts=["Tools.Example.com"])
    assert status(gate, host="tools.example.com") == 200


def test_every_address_is_called_by_any_number_and_by_no_unknown_name():
    assert status(Gate(welcome, EVERY), host="192.168.1.5:8000") == 200
    assert status(Gate(welcome, EVERY), host="evil.com:8000") == 421


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:1"])
def test_pages_of_this_machine_are_let_in(origin):
    assert status(Gate(welcome, LOOPBACK), origin=origin) == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "https://localhost.evil.com", "null", "file://localhost", "http://[", "x"],
)
def test_other_pages_are_refused(origin):
    assert status(Gate(welcome, LOOPBACK), origin=origin) == 403


def test_a_page_can_be_added():
    gate = Gate(welcome, LOOPBACK, origins=["https://app.example.com/"])
    assert status(gate, origin="https://app.example.com") == 200
    assert status(gate, origin="http://app.example.com") == 403


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return Tokens(str(path))


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_who_bears_a_token_is_let_in(tokens, given):
    assert status(Gate(welcome, LOOPBACK, tokens=tokens), authorization=given) == 200


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Basic {TOKEN}", "Bearer x", f"Bearer {TOKEN}x", TOKEN]
)
def test_who_bears_none_is_not(tokens, given):
    assert status(Gate(welcome, LOOPBACK, tokens=tokens), authorization=given) == 401


def test_names_are_checked_also_of_who_bears_a_token(tokens):
    gate = Gate(welcome, LOOPBACK, tokens=tokens)
    assert status(gate, host="evil.com", authorization=f"Bearer {TOKEN}") == 421


def test_one_address_may_send_so_many_requests_at_once_and_others_still_may():
    gate = Gate(welcome, LOOPBACK, per_second=0.01)
    assert [status(gate) for _ in range(2)] == [200, 429]
    assert status(gate, client=("10.0.0.1", 9)) == 200


def test_guessing_tokens_counts_as_requests(tokens):
    gate = Gate(welcome, LOOPBACK, tokens=tokens, per_second=0.01)
    assert [status(gate, authorization="Bearer x") for _ in range(2)] == [401, 429]


def test_what_is_no_http_is_not_let_in():
    async def fail(*_):
        raise AssertionError

    run(Gate(fail, LOOPBACK)({"type": "websocket"}, None, fail))
