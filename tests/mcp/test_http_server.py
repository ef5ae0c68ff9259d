"""Streamable HTTP, in the process of the test: paths, credentials, limits."""

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from clients import ERAS, HANDSHAKE, PATIENCE, STATELESS, client_of, code_of, names_of, run
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from satchel import Satchel, tool
from satchel.http.listen_address import Address
from satchel.http.quiet_server import listen
from satchel.mcp import http_server, principals
from satchel.mcp.bearer_tokens import BearerTokens
from satchel.mcp.http_server import serve_http
from satchel.mcp.principals import LARGEST_BODY
from satchel.mcp.served_selection import ServedSelection

every_era = pytest.mark.parametrize("era", ERAS)
WHOLE, LIMITED, ANOTHER = "a" * 32, "b" * 32, "c" * 32


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@pytest.fixture
def satchel():
    satchel = Satchel()
    satchel.register_tool(echo)
    for name in ("maps", "web"):
        satchel.create_group(name, f"All about {name}.")
        satchel.register_tool(echo, name=f"{name}_tool", group=name)
    return satchel


@asynccontextmanager
async def served(satchel, choice=None, **options):
    """Serve over HTTP; yields the address of `/mcp`."""
    ready = asyncio.Event()
    listening, address = listen(Address("127.0.0.1", 0))
    with listening:
        serving = asyncio.create_task(
            serve_http(
                satchel, choice or ServedSelection(), listening, address, ready=ready.set, **options
            )
        )
        await ready.wait()
        try:
            yield address.url
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def connected(url, era, token=None):
    """Connect, with a token or without."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        create_mcp_http_client(headers=headers) as http,
        client_of(streamable_http_client(url, http_client=http), era) as (client, notices),
    ):
        yield client, notices


async def names_at(url, era, token=None):
    async with connected(url, era, token) as (client, _):
        return await names_of(client)


def asked(url, body=b"{}", **headers):
    """Return the status of a plain request."""
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


@every_era
def test_a_path_shows_the_whole_or_one_group(satchel, era):
    async def ask():
        async with served(satchel, ServedSelection(every_group=True)) as url:
            return [await names_at(url + path, era) for path in ("", "/maps", "/web", "/basic")]

    whole, maps, web, basic = run(ask())
    assert {"echo", "maps_tool", "web_tool"} <= set(whole)
    assert (maps, web, basic) == (["echo", "maps_tool"], ["echo", "web_tool"], ["echo"])


def test_what_is_nowhere_is_not_found(satchel):
    async def ask():
        async with served(satchel) as url:
            paths = ("/nothing", "/maps/more", "x", "/../etc")
            base = url.removesuffix("/mcp")
            urls = [*(url + path for path in paths), base, f"{base}/", f"{base}/maps"]
            return [await asyncio.to_thread(asked, item) for item in urls]

    assert run(ask()) == [404] * 7


def test_a_group_is_found_at_its_path_once_it_is_there(satchel):
    async def ask():
        async with served(satchel) as url:
            before = await asyncio.to_thread(asked, f"{url}/later")
            satchel.create_group("later")
            satchel.register_tool(echo, name="later_tool", group="later")
            return before, await names_at(f"{url}/later", STATELESS)

    assert run(ask()) == (404, ["echo", "later_tool"])


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{WHOLE}\n{LIMITED} maps\n{ANOTHER}\n")
    path.chmod(0o600)
    return BearerTokens(str(path))


@every_era
def test_a_credential_with_groups_sees_those_and_no_others(satchel, tokens, era):
    async def ask():
        async with served(satchel, ServedSelection(every_group=True), tokens=tokens) as url:
            return [
                await names_at(url, era, WHOLE),
                await names_at(url, era, LIMITED),
                await names_at(f"{url}/maps", era, LIMITED),
                await asyncio.to_thread(asked, f"{url}/web", authorization=f"Bearer {LIMITED}"),
                await asyncio.to_thread(asked, url),
            ]

    whole, limited, maps, web, nobody = run(ask())
    assert "web_tool" in whole
    assert limited == maps == ["echo", "maps_tool"]
    assert (web, nobody) == (404, 401)


@every_era
def test_a_credential_cannot_call_what_it_does_not_see(satchel, tokens, era):
    async def ask():
        async with (
            served(satchel, ServedSelection(every_group=True), tokens=tokens) as url,
            connected(url, era, LIMITED) as (client, _),
        ):
            return await code_of(client.call_tool("web_tool", {"text": "x"}))

    assert run(ask())[0] == -32602


def opened(url, token, session=None):
    """Open a session, or use one; return its id, or the status."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "ping" if session else "initialize",
        "params": {}
        if session
        else {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **({"mcp-session-id": session} if session else {}),
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers["mcp-session-id"] or answer.status
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def test_a_session_belongs_to_the_credential_that_opened_it(satchel, tokens):
    async def ask():
        async with served(satchel, tokens=tokens) as url:
            session = await asyncio.to_thread(opened, url, WHOLE)
            return [
                await asyncio.to_thread(opened, url, token, session)
                for token in (WHOLE, LIMITED, ANOTHER)
            ]

    own, *others = run(ask())
    assert own != 404
    assert others == [404, 404]


@pytest.mark.skipif(not principals.session_limit(), reason="this SDK is older than 2.2")
def test_idle_sessions_make_room_for_new_ones(satchel, tokens, monkeypatch):
    monkeypatch.setattr(principals, "MOST_SESSIONS", 2)

    async def ask():
        async with served(satchel, tokens=tokens) as url:
            many = [await asyncio.to_thread(opened, url, WHOLE) for _ in range(5)]
            item = [await asyncio.to_thread(opened, url, WHOLE, session) for session in many]
            return many, item, await asyncio.to_thread(opened, url, ANOTHER)

    many, item, other = run(ask())
    assert all(isinstance(session, str) for session in (*many, other))
    assert item[:3] == [404, 404, 404]
    assert 404 not in item[3:]


def test_a_body_that_does_not_come_is_cut(satchel, monkeypatch):
    monkeypatch.setattr(http_server, "_IDLE_TIMEOUT", 0.05)
    monkeypatch.setattr(http_server, "_BODY_TIMEOUT", 0.05)

    async def ask():
        async with served(satchel) as url, asyncio.timeout(PATIENCE):
            reading, writing = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            writing.write(head + b"Content-Type: application/json\r\n\r\n{")
            heard = await reading.read()
            writing.close()
            return heard

    assert run(ask()) == b""


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "localhost.evil.example", "evil@localhost", "localhost/x"),
        *("localhost#", "localhost?", "localhost:99999", "localhost:80:80", "localhost:x"),
        *("[::1", "::1", "localhost\\@evil", "local host"),
    ],
)
def test_odd_hosts_are_refused(satchel, host):
    async def ask():
        async with served(satchel) as url:
            reading, writing = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            writing.write(f"GET /mcp HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answer = await reading.readline()
            writing.close()
            return answer

    assert run(ask()).split()[1] in {b"421", b"400"}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000"])
def test_plain_hosts_are_served(satchel, host):
    async def ask():
        async with served(satchel) as url:
            return await asyncio.to_thread(lambda: asked(f"{url}/nothing", host=host))

    assert run(ask()) == 404


def test_a_client_that_has_all_its_requests_open_takes_none_of_others(satchel, tokens, monkeypatch):
    monkeypatch.setattr(principals, "MOST_REQUESTS", 1)

    async def ask():
        async with (
            served(satchel, tokens=tokens) as url,
            connected(url, STATELESS, ANOTHER) as (client, _),
            client.listen(tools_list_changed=True),
        ):
            bearing = [{"authorization": f"Bearer {token}"} for token in (ANOTHER, WHOLE)]
            return [await asyncio.to_thread(asked, url, **one) for one in bearing]

    assert run(ask()) == [503, 400]


def test_a_client_that_asks_nothing_is_not_kept_waiting_for(satchel, monkeypatch):
    monkeypatch.setattr(http_server, "_IDLE_TIMEOUT", 0.05)

    async def ask():
        async with served(satchel) as url:
            reading, writing = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            writing.write(b"POST /mcp HTTP/1.1\r\nHost: local")
            heard = await reading.read()
            writing.close()
            return heard

    assert run(ask()) == b""


def test_a_client_that_asks_once_is_not_kept_waiting_for_either(satchel, monkeypatch):
    monkeypatch.setattr(http_server, "_IDLE_TIMEOUT", 0.5)

    async def ask():
        async with served(satchel) as url, asyncio.timeout(PATIENCE):
            reading, writing = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            writing.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reading.readuntil(b"Not found")
            writing.write(b"GET /nothing HTTP/1.1\r\nHost: local")
            heard = await reading.read()
            writing.close()
            return heard

    assert run(ask()) == b""


def withdraw(path):
    """Leave only one of the tokens in the file."""
    path.write_text(f"{ANOTHER}\n")


def test_a_stream_ends_with_the_token_that_opened_it(satchel, tokens, tmp_path, monkeypatch):
    async def ask():
        async with (
            served(satchel, tokens=tokens) as url,
            connected(url, STATELESS, WHOLE) as (one, _),
            connected(url, STATELESS, ANOTHER) as (other, _),
            one.listen(tools_list_changed=True) as stream,
            other.listen(tools_list_changed=True) as kept,
        ):
            withdraw(tmp_path / "tokens")
            with contextlib.suppress(Exception):  # an end without a word
                async for _ in stream:
                    pytest.fail("it was told")
            satchel.register_tool(echo, name="newer")
            return await anext(kept)

    monkeypatch.setattr(http_server, "_CHECK_INTERVAL", 0.01)
    assert run(ask())


def test_nothing_is_reported_once_the_token_is_gone_though_no_one_has_looked_yet(
    satchel, tokens, tmp_path, monkeypatch
):
    async def ask():
        async with (
            served(satchel, tokens=tokens) as url,
            connected(url, STATELESS, WHOLE) as (client, _),
            client.listen(tools_list_changed=True) as stream,
        ):
            withdraw(tmp_path / "tokens")
            satchel.register_tool(echo, name="newer")
            with contextlib.suppress(Exception):  # an end without a word
                async for _ in stream:
                    pytest.fail("it was told")

    monkeypatch.setattr(http_server, "_CHECK_INTERVAL", PATIENCE * 10)
    run(asyncio.wait_for(ask(), PATIENCE))


@every_era
def test_what_a_withdrawn_token_began_ends(satchel, tokens, era, tmp_path, monkeypatch):
    async def ask():
        begun, ended = asyncio.Event(), asyncio.Event()

        @tool(background=True)
        async def endless() -> str:
            """Never end."""
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        satchel.register_tool(endless)
        async with served(satchel, tokens=tokens) as url, connected(url, era, WHOLE) as (client, _):
            call = asyncio.create_task(client.call_tool("endless", {}))
            await begun.wait()
            withdraw(tmp_path / "tokens")
            await ended.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    monkeypatch.setattr(http_server, "_CHECK_INTERVAL", 0.01)
    run(asyncio.wait_for(ask(), PATIENCE))


@pytest.mark.parametrize("extra", [{}, {"hosts": ("tools.example.com",)}, {"tokens": True}])
def test_where_skills_lie_is_reported_only_if_no_proxy_can_be_in_between(
    satchel, tokens, extra, tmp_path, write_skill
):
    satchel.register_skill(write_skill(tmp_path, "pdf"))
    options = {"tokens": tokens} if "tokens" in extra else extra

    async def ask():
        async with (
            served(satchel, **options) as url,
            connected(url, STATELESS, WHOLE) as (client, _),
        ):
            result = await client.call_tool("load_skill", {"name": "pdf"})
            return str(tmp_path) in result.content[0].text

    assert run(ask()) is not bool(extra)


def test_a_body_that_is_too_large_is_refused(satchel):
    async def ask():
        async with served(satchel) as url:
            reading, writing = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LARGEST_BODY + 1}"
            writing.write(f"{head}\r\n\r\n".encode())
            answer = await reading.readline()
            writing.close()
            return answer

    assert b" 413 " in run(ask())


def test_requests_come_no_faster_than_the_host_allows(satchel):
    async def ask():
        async with served(satchel, per_second=0.5) as url:
            return [await asyncio.to_thread(asked, url) for _ in range(3)]

    assert run(ask())[-1] == 429


def test_a_browser_may_ask_first_only_from_a_page_that_was_named(satchel):
    def preflight(url, origin, host="localhost"):
        headers = {"origin": origin, "host": host, "access-control-request-method": "POST"}
        request = urllib.request.Request(url, headers=headers, method="OPTIONS")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.headers["access-control-allow-origin"]
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code

    async def ask():
        async with served(satchel, origins=("https://App.example.com/",)) as url:
            return [
                await asyncio.to_thread(preflight, url, *asked)
                for asked in (
                    ["https://app.example.com"],
                    ["https://evil.com"],
                    ["https://app.example.com", "evil.com"],
                )
            ]

    assert run(ask()) == ["https://app.example.com", 403, 421]


@every_era
def test_idle_clients_hear_of_changes(satchel, era):
    async def ask():
        async with served(satchel) as url, connected(url, era) as (client, notices):
            if era == STATELESS:
                async with client.listen(tools_list_changed=True) as stream:
                    satchel.register_tool(echo, name="newer")
                    await anext(stream)
            else:
                await standing(satchel, notices)
            return await names_of(client)

    assert "newer" in run(ask())


async def standing(satchel, notices):
    """Change something until the client hears of it: its stream may not stand yet."""
    for number in range(10):
        satchel.register_tool(echo, name="newer" if not number else f"newer_{number}")
        try:
            async with asyncio.timeout(0.2 * 2**number):
                await notices.until("notifications/tools/list_changed")
        except TimeoutError:
            continue
        return
    pytest.fail("it was never told")


def test_a_stream_on_which_a_client_listens_ends_with_a_word_when_the_server_does(satchel):
    async def ask():
        async with (
            served(satchel) as url,
            connected(url, STATELESS) as (client, _),
            client.listen(tools_list_changed=True) as stream,
        ):
            tasks = [task for task in asyncio.all_tasks() if "serve_http" in repr(task)]
            tasks[0].cancel()
            return [event async for event in stream]

    assert run(ask()) == []


def test_many_clients_are_served_at_once(satchel):
    async def one(url, number):
        async with connected(url, HANDSHAKE if number % 2 else STATELESS) as (client, _):
            result = await client.call_tool("echo", {"text": str(number)})
            return result.content[0].text

    async def ask():
        async with served(satchel) as url:
            return await asyncio.gather(*(one(url, number) for number in range(8)))

    assert run(ask()) == [str(number) for number in range(8)]
