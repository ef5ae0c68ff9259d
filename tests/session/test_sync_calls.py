"""Calls of hosts without an event loop."""

import asyncio
import contextvars
import gc
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from satchel import ConflictError, Satchel, SatchelError, ToolCall, ToolError

PATIENCE = 60
USER = contextvars.ContextVar("user", default="nobody")


@pytest.fixture
def app():
    with Satchel() as app:
        yield app


def test_a_result_comes_without_an_event_loop(app):
    @app.register_tool
    async def add(a: int, b: int) -> int:
        """Add."""
        await asyncio.sleep(0)
        return a + b

    @app.register_tool
    def fail() -> str:
        """Fail."""
        raise ToolError("Not today.")

    session = app.session()
    assert session.call_sync("add", {"a": 1, "b": 2}).text == "3"
    assert session.call_sync("add", '{"a": 1, "b": 3}', call_id="7").call_id == "7"
    assert session.step().call_sync("fail").text == "Not today."
    calls = [ToolCall(name="add", arguments={"a": n, "b": n}) for n in range(20)]
    assert [result.text for result in session.execute_sync(calls)] == [
        str(2 * n) for n in range(20)
    ]


def test_threads_share_what_belongs_to_one_loop(app):
    lock, running = asyncio.Lock(), []

    @app.register_tool
    async def alone(n: int) -> int:
        """Work alone."""
        async with lock:
            running.append(n)
            await asyncio.sleep(0)
            assert running == [n]
            running.clear()
        return n

    session = app.session()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: session.call_sync("alone", {"n": n}), range(64)))
    assert [result.text for result in results] == [str(n) for n in range(64)]


def test_the_context_of_the_caller_reaches_the_tool(app):
    @app.register_tool
    async def who() -> str:
        """Say who."""
        return USER.get()

    @app.register_tool
    def who_blocks() -> str:
        """Say who."""
        return USER.get()

    def ask(name):
        USER.set(name)
        session = app.session()
        return session.call_sync("who").text, session.call_sync("who_blocks").text

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, "ab")) == [("a", "a"), ("b", "b")]


def test_chunks_come_as_they_are_made(app):
    first_seen = threading.Event()

    @app.register_tool
    async def count():
        """Count."""
        yield "one"
        await asyncio.to_thread(first_seen.wait, PATIENCE)
        yield "two"

    items = app.session().stream_sync("count")
    assert next(items).text == "one"
    first_seen.set()
    rest = list(items)
    assert rest[0].text == "two"
    assert rest[-1].text == "onetwo"


def test_a_stream_that_is_not_read_starts_nothing(app):
    started = []

    @app.register_tool
    async def count():
        """Count."""
        started.append(1)
        yield "one"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.session().stream_sync("count")
        gc.collect()
    assert started == []


def test_leaving_a_stream_early_ends_the_tool(app):
    ended = threading.Event()

    @app.register_tool
    async def forever():
        """Never end."""
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            ended.set()

    items = app.session().stream_sync("forever")
    next(items)
    items.close()
    assert ended.wait(PATIENCE)


def test_waiting_where_a_loop_runs_is_refused_at_once(app):
    @app.register_tool
    def nested() -> str:
        """Call from inside."""
        return "fine"

    @app.register_tool
    async def caller() -> str:
        """Wait inside of the loop."""
        app.session().call_sync("nested")
        return "never"

    async def inside():
        with pytest.raises(ConflictError, match="an event loop runs in this thread"):
            app.session().call_sync("nested")
        with pytest.raises(ConflictError, match="an event loop runs in this thread"):
            app.session().stream_sync("nested")

    asyncio.run(inside())
    result = app.session().call_sync("caller")
    assert result.is_error


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.call_sync("forever"),
        lambda session: session.execute_sync([ToolCall(name="forever")]),
        lambda session: session.step().plan([ToolCall(name="forever")]).run_sync(0),
        lambda session: list(session.stream_sync("forever")),
    ],
    ids=["call", "execute", "plan", "stream"],
)
def test_closing_the_satchel_ends_what_still_runs_with_an_error_that_says_so(ask):
    started = threading.Event()
    app = Satchel()

    @app.register_tool
    async def forever() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, app.session())
        assert started.wait(PATIENCE)
        app.close()
        with pytest.raises(SatchelError, match="the satchel was closed while the call ran"):
            asked.result(PATIENCE)


def test_one_loop_is_used_however_many_sessions_there_are(app):
    @app.register_tool
    async def where() -> str:
        """Say in which thread."""
        return threading.current_thread().name

    before = set(threading.enumerate())
    names = {app.session().call_sync("where").text for _ in range(20)}
    assert names == {"satchel-calls"}
    new = {thread.name for thread in set(threading.enumerate()) - before}
    assert new <= {"satchel-calls", "satchel-loop-watch"}


def test_a_key_gives_one_step_until_the_next_key(tmp_path, write_skill):
    with Satchel(skills=tmp_path) as app:
        session = app.session()
        first = session.step(key=1)
        write_skill(tmp_path, "late")
        app.refresh()
        assert session.step(key=1) is first
        assert "late" not in session.step(key=1).prompt()
        second = session.step(key=2)
        assert second is not first
        assert "late" in {change.name for change in second.changes}
        assert session.step(key=2).changes == second.changes
        assert session.step() is not second
        session.load_state_dict(session.state_dict())
        assert session.step(key=2) is not second


def test_interrupting_the_wait_cancels_the_call(app):
    cancelled, started = threading.Event(), threading.Event()

    @app.register_tool
    async def forever() -> str:
        """Never end."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    session = app.session()
    thread = threading.Thread(target=lambda: session.call_sync("forever"), daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while not session.interrupt() and time.monotonic() < deadline:
        pass
    assert cancelled.wait(PATIENCE)
    thread.join(PATIENCE)
    assert not thread.is_alive()
