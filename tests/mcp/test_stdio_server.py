"""MCP over stdin and stdout, in the process of the test: what a client says, and what it hears."""

import asyncio
import io
import json
import os
import threading
from types import SimpleNamespace

import pytest
from clients import PATIENCE, run

from satchel import Satchel, ToolContext, tool
from satchel.mcp.mcp_server import SatchelServer
from satchel.mcp.stdio_server import serve_stdio

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}
BROKEN = "a\ud800"


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
async def slowly(text: str) -> str:
    """Say it again, later."""
    await asyncio.sleep(0.05)
    return text


@tool
async def late(text: str) -> str:
    """Say it again, when the client has left."""
    await asyncio.sleep(5)
    return text


@tool
async def endless() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


def said(method, params=None, number=None):
    """Return a request, or without a number a notification, as a line."""
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    if number is not None:
        message["id"] = number
    return json.dumps(message).encode() + b"\n"


def called(tool, number, token=None, **arguments):
    meta = {"_meta": {"progressToken": token}} if token is not None else {}
    return said("tools/call", {"name": tool, "arguments": arguments, **meta}, number)


def greeting():
    return [said("initialize", HELLO, 0), said("notifications/initialized")]


def serving(*tools):
    app = Satchel()
    for created in tools:
        app.register_tool(created)
    return SatchelServer(app, single=True)


class Talk(io.RawIOBase):
    """Lines of a client, which leaves when it has all answers; and what it hears."""

    def __init__(self, lines, number):
        self._lines, self._rest, self._number = [*lines], b"", number
        self.heard, self._has_all = [], threading.Event()

    def readline(self, size=-1):
        if not self._rest:
            if not self._lines:
                assert self._has_all.wait(PATIENCE)
                return b""
            self._rest = self._lines.pop(0)
        end = len(self._rest) if size < 0 else size
        line, self._rest = self._rest[:end], self._rest[end:]
        return line

    def write(self, line):
        line = bytes(line)
        self.heard.append(line)
        self._number -= b'"method"' not in line  # notifications and questions are no answers
        if self._number <= 0:
            self._has_all.set()
        return len(line)


def reading(lines):
    """Return a stream with these lines."""
    return SimpleNamespace(readline=lambda _size: next(lines, b""))


def is_answered(line):
    """Return whether a line gets an answer: a request, or what is no message."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return bool(line.strip()) and not line.startswith(b'{"jsonrpc":"2.0","method"')
    return not isinstance(message, dict) or "id" in message


def heard(server, *lines, unanswered=0):
    """Say some lines and leave when they are answered; return the answers after the greeting."""
    lines = [*greeting(), *lines]
    talk = Talk(lines, sum(map(is_answered, lines)) - unanswered)
    asyncio.run(asyncio.wait_for(serve_stdio(server.server, talk, talk), PATIENCE))
    return talk.heard[1:]


def answers(server, *lines, unanswered=0):
    """Return the answers by their ids."""
    read = [json.loads(line) for line in heard(server, *lines, unanswered=unanswered)]
    return {one.get("id"): one.get("result") or one.get("error") for one in read}


def text_of(answer):
    return answer["content"][0]["text"]


# ---- what tools send ------------------------------------------------------------------------


async def a_log_line(client):
    await client.log("error", {"file": BROKEN})


async def the_name_of_a_log(client):
    await client.log("error", "x", logger=BROKEN)


async def a_number_that_json_lacks(client):
    await client.log("error", {"share": float("nan")})


async def a_remark_on_progress(client):
    await client.progress(1, None, BROKEN)


async def endless_progress(client):
    await client.progress(float("inf"))


async def a_question(client):
    await client.ask({"name": {"method": "elicitation/create", "params": {"message": BROKEN}}})


@pytest.mark.parametrize(
    "send",
    [
        a_log_line,
        the_name_of_a_log,
        a_number_that_json_lacks,
        a_remark_on_progress,
        endless_progress,
        a_question,
    ],
)
def test_a_tool_that_sends_what_cannot_be_sent_fails_and_nothing_else(send):
    @tool
    async def sending(context: ToolContext) -> str:
        """Send something."""
        await send(context.get_metadata("mcp"))
        return "sent"

    result = answers(
        serving(sending, echo), called("sending", 1, token=1), called("echo", 2, text="x")
    )
    assert result[1]["isError"]
    assert "send it without" in text_of(result[1])
    assert text_of(result[2]) == "x"


def test_a_part_of_a_stream_that_cannot_be_reported_is_left_to_its_result():
    @tool
    async def streaming():
        """Stream something broken."""
        yield "fine "
        yield BROKEN

    result = answers(serving(streaming), called("streaming", 1, token=1))
    assert "invalid Unicode character" in result[1]["content"][-1]["text"]


def test_what_goes_past_the_check_costs_only_itself():
    @tool
    async def sending(context: ToolContext) -> str:
        """Send by the SDK itself."""
        await context.get_metadata("mcp").sdk.session.report_progress(1, None, BROKEN)
        return "sent"

    result = answers(serving(sending), called("sending", 1, token=1))
    assert text_of(result[1]) == "sent"


def test_an_answer_that_cannot_be_written_is_an_error():
    server = serving(echo)

    async def breaking(ctx, call_next):
        result = await call_next(ctx)
        return {**result, "tools": [BROKEN]} if ctx.method == "tools/list" else result

    server.server.middleware.insert(0, breaking)
    results = answers(server, said("tools/list", {}, 1), called("echo", 2, text="x"))
    assert results[1]["code"] == -32603
    assert text_of(results[2]) == "x"


# ---- what clients send ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"garbage", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 100_000, None, -32700),
        (called("echo", 3, text=BROKEN).strip(), 3, -32700),
        (said("tools/call", {}, BROKEN).strip(), None, -32700),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', None, -32600),
        (b'{"id":6,"method":"ping"}', 6, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping","params":7}', None, -32600),
        (b'{"jsonrpc":"2.0","id":7,"result":7}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    ],
)
def test_what_is_no_message_is_answered_with_an_error(line, number, code):
    result = answers(serving(echo), line + b"\n", called("echo", 9, text="x"))
    assert result[number]["code"] == code
    assert text_of(result[9]) == "x"


def test_a_line_that_is_too_long_is_answered_with_an_error(monkeypatch):
    monkeypatch.setattr("satchel.mcp.stdio_server.LARGEST_LINE", 1_000)
    long = called("echo", 3, text="x" * 10_000)
    result = answers(serving(echo), long, called("echo", 9, text="x"))
    assert result[None]["code"] == -32600
    assert text_of(result[9]) == "x"


@pytest.mark.parametrize("odd", [b"[" * 150 + b"]" * 150, b"1" * 5_000, b"1e999", b"NaN"])
def test_what_is_odd_in_a_notification_ends_nothing(odd):
    line = b'{"jsonrpc":"2.0","method":"notifications/odd","params":{"a":' + odd + b"}}\n"
    refused = -1 if len(odd) > 1_000 else 0  # Python reads no number of that length
    result = answers(serving(echo), line, called("echo", 9, text="x"), unanswered=refused)
    assert text_of(result[9]) == "x"


def test_empty_lines_say_nothing():
    assert heard(serving(echo), b"\n", b" \r\n") == []


# ---- the end --------------------------------------------------------------------------------


def test_every_request_of_many_at_once_is_answered():
    lines = [called("slowly", number, text=str(number)) for number in range(1, 20)]
    result = answers(serving(slowly), *lines)
    assert {number: text_of(answer) for number, answer in result.items()} == {
        number: str(number) for number in range(1, 20)
    }


def test_nothing_is_written_after_the_client_has_left_also_with_a_call_open():
    lines = [called("endless", 1), called("slowly", 2, text="x"), called("echo", 3, text="x")]
    result = answers(serving(endless, echo, slowly), *lines, unanswered=1)
    assert result.keys() == {2, 3}
    lines = [called("late", number, text="x") for number in range(1, 9)]
    assert answers(serving(late), *lines, unanswered=8) == {}


def test_a_call_that_was_given_up_is_not_answered():
    given_up = said("notifications/cancelled", {"requestId": 1})
    assert heard(serving(endless), called("endless", 1), given_up, unanswered=1) == []


def test_a_client_that_does_not_listen_any_more_has_left():
    hears, writing = os.pipe()
    os.close(hears)
    never, speaks = os.pipe()
    with (
        open(never, "rb") as stdin,
        open(speaks, "wb", buffering=0) as client,
        open(writing, "wb") as stdout,
    ):
        client.write(b"".join(greeting()))
        run(asyncio.wait_for(serve_stdio(serving(echo).server, stdin, stdout), PATIENCE))


class Deaf(io.RawIOBase):
    """The stream to a client that does not read."""

    def __init__(self):
        self.is_full, self.is_read = threading.Event(), threading.Event()

    def writable(self):
        return True

    def write(self, data):
        self.is_full.set()
        self.is_read.wait()
        return len(data)


def test_it_ends_and_its_stream_can_be_flushed_while_the_client_does_not_read():
    client = Deaf()

    def lines():
        yield from greeting()
        client.is_read.wait(PATIENCE)  # it stays

    async def end():
        task = asyncio.create_task(serve_stdio(serving(echo).server, reading(lines()), stdout))
        assert await asyncio.to_thread(client.is_full.wait, PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with io.BufferedWriter(client) as stdout:
        run(asyncio.wait_for(end(), PATIENCE))
        flushing = threading.Thread(target=stdout.flush, daemon=True)
        flushing.start()
        flushing.join(PATIENCE)
        is_flushed = not flushing.is_alive()
        client.is_read.set()
    assert is_flushed


def test_it_can_be_ended_while_a_message_is_handed_on():
    parked, taken = threading.Event(), threading.Event()

    def lines():
        yield from (said("initialize", HELLO, 0), said("ping", {}, 1))
        taken.set()  # the second is on its way, while the first is looked at
        parked.wait()

    async def parking(ctx, call_next):
        await asyncio.Event().wait()

    async def end():
        server = serving(echo)
        server.server.middleware.insert(0, parking)
        task = asyncio.create_task(serve_stdio(server.server, reading(lines()), io.BytesIO()))
        await asyncio.to_thread(taken.wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        parked.set()
        return None if task.cancelled() else task.exception()

    assert run(end()) is None


@pytest.mark.parametrize("error", [ValueError("readline of closed file"), ConnectionResetError()])
def test_a_stream_that_cannot_be_read_any_more_is_the_end(error):
    def lines():
        yield said("initialize", HELLO, 0)
        raise error

    serve = serve_stdio(serving(echo).server, reading(lines()), io.BytesIO())
    assert run(asyncio.wait_for(serve, PATIENCE)) is None
