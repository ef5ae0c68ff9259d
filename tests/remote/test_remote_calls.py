"""Calls run on workers that have the same version of the plugin, with every rule still held."""

import asyncio
import gc
import json
import shutil
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import pytest

from satchel import DefinitionError, Satchel, ToolCall, ToolChunk, ToolContext

pytest.importorskip("docket", reason="pydocket is not installed")

from satchel.remote import CatalogPublisher, RemoteRunner, ToolWorker
from satchel.remote.docket_json import json_only, open_docket
from satchel.remote.remote_keys import TASK, RemoteKeys, queue_name_for
from satchel.remote.sealed_envelope import EnvelopeError, as_text, mark_of, seal
from satchel.tools.runner import Runner

KEY = "0123456789abcdef0123456789abcdef"
TOOLS = """
import asyncio
from pathlib import Path
from satchel import ToolContext, ToolError, tool

RUNS, NOW, MOST = [], [], []

@tool
async def where() -> int:
    "Say in which process it runs."
    RUNS.append(1)
    return len(RUNS)

@tool
async def count(n: int):
    "Count."
    for i in range(n):
        yield f"{i} "

@tool
async def remember(word: str, context: ToolContext) -> str:
    "Remember."
    context.state["word"] = word
    return context.metadata.get("user", "nobody")

@tool
async def refuse() -> str:
    "Refuse."
    raise ToolError("Give a number.")

@tool
async def sleep(path: str) -> str:
    "Sleep."
    try:
        Path(path).write_text("started")
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        Path(path).write_text("cancelled")
        raise
    return "slept"

@tool
async def tidy(path: str) -> str:
    "Clean up slowly."
    try:
        Path(path).write_text("started")
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.5)
        Path(path).write_text("tidy")

@tool
async def look(path: str) -> str:
    "Read."
    return Path(path).read_text()

@tool(group="gpu")
async def draw() -> int:
    "Say how many run at once."
    NOW.append(1)
    MOST.append(len(NOW))
    await asyncio.sleep(0.05)
    NOW.pop()
    return max(MOST)
"""


def mark(digest, group="acme"):
    """Return the mark of the queue for the tools of a group; without one, of the plugin's own."""
    return mark_of(KEY.encode(), queue_name_for(digest, [group]))


@pytest.fixture
def folder(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme", tools=TOOLS)
    return tmp_path / "plugins"


@pytest.fixture
def url():
    return f"memory://{uuid4().hex}"


@asynccontextmanager
async def serving(folder, url, key=KEY, **options):
    with Satchel(plugins=[folder]) as app:
        worker = ToolWorker(app, url, key=key, **options)
        task = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(60):
                await worker.ready.wait()
            yield worker
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def hosting(folder, url, **options):
    options = {"otherwise": "refuse", **options}
    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, **options)
        app.register_runner(runner)
        try:
            yield app.session()
        finally:
            await runner.aclose()


def test_a_call_runs_on_a_worker_and_not_here(folder, url):
    async def main():
        async with serving(folder, url), hosting(folder, url) as session:
            first, second = await session.call("where"), await session.call("where")
            assert (first.text, second.text) == ("1", "2"), "the worker's own counter"

    asyncio.run(main())


def test_chunks_come_in_order_and_the_result_has_them_all(folder, url):
    async def main():
        async with serving(folder, url), hosting(folder, url) as session:
            items = [item async for item in session.stream("count", {"n": 30})]
            chunks = [item.text for item in items if isinstance(item, ToolChunk)]
            assert chunks == [f"{n} " for n in range(30)]
            assert items[-1].text.split() == [str(n) for n in range(30)]

    asyncio.run(main())


def test_the_state_goes_there_and_comes_back_and_metadata_goes(folder, url):
    async def main():
        async with serving(folder, url), hosting(folder, url) as session:
            context = ToolContext(metadata={"user": "ann", "socket": object()})
            result = await session.call("remember", {"word": "tree"}, context=context)
            assert result.text == "ann"
            assert session.state == {"word": "tree"}

    asyncio.run(main())


def test_a_worker_of_some_groups_gets_no_calls_of_others(folder, url):
    async def main():
        async with serving(folder, url, groups=["gpu"]), hosting(folder, url) as session:
            session.activate("gpu")
            assert (await session.call("draw")).text == "1"
            assert (await session.call("where")).error_code == "no_worker"
            async with serving(folder, url):
                calls = [session.call("where") for _ in range(10)]
                assert not any(result.is_error for result in await asyncio.gather(*calls))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([("later", {"word": "a"}), ("later", {"word": "b"})], "another call changed word"),
        ([("keep_object", {})], "JSON cannot represent thing"),
    ],
)
def test_a_change_of_the_state_that_is_lost_is_reported(folder, url, calls, reason, write_plugin):
    tools = """
        import asyncio
        from satchel import ToolContext, tool

        HERE = []

        @tool
        async def later(word: str, context: ToolContext) -> None:
            "Remember once two calls are here."
            HERE.append(word)
            while len(HERE) < 2:
                await asyncio.sleep(0.001)
            context.state["word"] = word

        @tool
        async def keep_object(context: ToolContext) -> None:
            "Keep."
            context.state["thing"] = object()
    """
    write_plugin(folder, "acme", tools=tools)

    async def main():
        async with serving(folder, url):
            with Satchel(plugins=[folder]) as app:
                runner = RemoteRunner(url, key=KEY, otherwise="refuse")
                app.register_runner(runner)
                session = app.session()
                await asyncio.gather(*(session.call(name, arguments) for name, arguments in calls))
                (diagnostic,) = runner.diagnostics
                assert (diagnostic.code, reason in diagnostic.message) == (
                    "remote-state-lost",
                    True,
                )
                await runner.aclose()

    asyncio.run(main())


def test_errors_reach_the_model_as_those_of_a_local_call(folder, url):
    async def main():
        async with serving(folder, url), hosting(folder, url) as session:
            refused = await session.call("refuse")
            assert (refused.is_error, refused.text) == (True, "Give a number.")
            wrong = await session.call("count", {"n": "many"})
            assert wrong.error_code == "invalid_arguments"

    asyncio.run(main())


def test_a_cancelled_call_is_cancelled_on_the_worker(folder, url, tmp_path):
    path = tmp_path / "mark"

    async def until(text):
        async with asyncio.timeout(60):
            while not path.exists() or path.read_text() != text:
                await asyncio.sleep(0.01)

    async def main():
        async with serving(folder, url), hosting(folder, url) as session:
            task = asyncio.create_task(session.call("sleep", {"path": str(path)}))
            await until("started")
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await until("cancelled")

    asyncio.run(main())


def test_the_place_of_a_cancelled_call_is_free_once_its_tool_has_cleaned_up(folder, url, tmp_path):
    path = tmp_path / "mark"

    async def main():
        async with serving(folder, url, concurrency=1), hosting(folder, url) as session:
            task = asyncio.create_task(session.call("tidy", {"path": str(path)}))
            async with asyncio.timeout(60):
                while not path.exists():
                    await asyncio.sleep(0.01)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert (await session.call("look", {"path": str(path)})).text == "tidy"

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize(("otherwise", "text"), [("here", "1"), ("refuse", "no worker can run")])
def test_a_call_does_not_wait_for_workers_that_have_just_left(folder, url, otherwise, text):
    async def main():
        async with hosting(folder, url, otherwise=otherwise, wait=600) as session:
            async with serving(folder, url):
                assert (await session.call("look", {"path": str(folder / "acme/tools.py")})).text
            # So many that some are sent, and some wait for their turn.
            async with asyncio.timeout(120):
                results = await asyncio.gather(*(session.call("where") for _ in range(50)))
            assert text in "\n".join(result.text for result in results)
            assert all(result.is_error == (otherwise == "refuse") for result in results)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("otherwise", "text"),
    [("here", "1"), ("refuse", "no worker can run"), ("wait", "no worker began")],
)
def test_workers_with_another_key_count_as_none_and_the_host_says_why(
    folder, url, otherwise, text, caplog
):
    async def main():
        with Satchel(plugins=[folder]) as app:
            runner = RemoteRunner(url, key=KEY, otherwise=otherwise, wait=1)
            app.register_runner(runner)
            async with serving(folder, url, key="another key of 16 characters"):
                result = await app.session().call("where")
                assert text in result.text
                assert result.error_code == (None if otherwise == "here" else "no_worker")
                (diagnostic,) = runner.diagnostics
                assert diagnostic.code == "remote-no-worker"
                assert "another key" in diagnostic.message
            await runner.aclose()

    asyncio.run(main())
    assert "was refused" not in caplog.text


def test_workers_with_another_key_take_no_calls_from_hosts_of_this_key(folder, url, caplog):
    async def main():
        theirs, ours = (
            serving(folder, url, key="another key of 16 characters"),
            serving(folder, url),
        )
        async with theirs, ours, hosting(folder, url) as session:
            path = str(folder / "acme/tools.py")
            calls = [session.call("look", {"path": path}) for _ in range(20)]
            assert not any(result.is_error for result in await asyncio.gather(*calls))

    asyncio.run(main())
    assert "was refused" not in caplog.text


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"otherwise": "zz"}, "otherwise is 'zz'"),
        ({"queue": 0}, "queue is 0"),
        ({"limits": {"gpu": 0}}, "the limit of 'gpu' is 0"),
        ({"wait": -1}, "wait is -1"),
    ],
)
def test_an_option_that_would_refuse_every_call_is_refused(url, option, text):
    with pytest.raises(DefinitionError, match=text):
        RemoteRunner(url, key=KEY, **option)


def test_a_runner_that_is_dropped_closes_by_itself(folder, url, caplog):
    def readers():
        return [it for it in asyncio.all_tasks() if "HostConnection._read" in repr(it.get_coro())]

    async def main():
        async with serving(folder, url):
            async with asyncio.timeout(60):
                with Satchel(plugins=[folder]) as app:
                    app.register_runner(RemoteRunner(url, key=KEY))
                    await app.session().call("where")
                    assert readers()
                del app
                while readers():
                    gc.collect()
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    gc.collect()
    assert "Task was destroyed" not in caplog.text
    assert "Traceback" not in caplog.text


def test_a_limit_of_a_group_holds_for_all_hosts(folder, url):
    async def main():
        limits = {"gpu": 2}
        async with (
            serving(folder, url),
            hosting(folder, url, limits=limits) as one,
            hosting(folder, url, limits=limits) as other,
        ):
            one.activate("gpu")
            other.activate("gpu")
            calls = [session.call("draw") for _ in range(8) for session in (one, other)]
            results = await asyncio.gather(*calls)
            assert max(int(result.text) for result in results) == 2

    asyncio.run(main())


def test_a_limit_of_a_group_holds_for_all_plugins_of_a_worker(folder, url, write_plugin):
    other = TOOLS.replace("async def draw", "async def paint")
    shared = "import sys\nNOW, MOST = sys.modules.setdefault('shared-by-two', ([], []))\n"
    write_plugin(folder, "acme", tools=f"{TOOLS}\n{shared}")
    only = other[other.index('@tool(group="gpu")') :]
    write_plugin(
        folder, "paints", tools=f"import asyncio\nfrom satchel import tool\n{shared}\n{only}"
    )

    async def main():
        async with (
            serving(folder, url, group_limits={"gpu": 2}),
            hosting(folder, url) as session,
        ):
            session.activate("gpu")
            calls = [session.call(name) for _ in range(8) for name in ("draw", "paint")]
            results = await asyncio.gather(*calls)
            assert max(int(result.text) for result in results) == 2

    asyncio.run(main())


def test_nothing_that_a_call_contains_can_be_read_in_redis(folder, url):
    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            session.state["token"] = "TOKEN-7788"
            await session.call("remember", {"word": "WORD-7788"})
            (digest,) = worker.digests
            async with (
                open_docket(url, "satchel", mark(digest)) as queue,
                queue.redis() as redis,
            ):
                kept = [
                    await redis.get(key)
                    async for key in redis.scan_iter(match="satchel:satchel:result:*")
                ]
            assert kept
            assert all(value.startswith(b"satchel/4 ") for value in kept)
            assert not any(b"7788" in value for value in kept)

    asyncio.run(main())


@pytest.mark.slow
def test_the_place_of_a_host_that_is_gone_is_free_again(folder, url):
    async def main():
        slots = RemoteKeys("satchel").slots("gpu")
        async with serving(folder, url) as worker, hosting(folder, url, limits={"gpu": 1}) as host:
            host.activate("gpu")
            now = asyncio.get_running_loop().time()
            async with (
                open_docket(url, "satchel", mark(worker.digests[0])) as queue,
                queue.redis() as redis,
            ):
                await redis.zadd(slots, {"of a host that was killed": now})
                call = asyncio.create_task(host.call("draw"))
                async with asyncio.timeout(60):
                    assert (await call).text == "1"
                    while await redis.zcard(slots):
                        await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() > now + 4

    asyncio.run(main())


def test_a_call_that_gets_no_place_in_its_group_is_refused(folder, url):
    async def main():
        options = {"limits": {"gpu": 1}, "wait": 0.5}
        async with serving(folder, url) as worker, hosting(folder, url, **options) as session:
            session.activate("gpu")
            async with (
                open_docket(url, "satchel", mark(worker.digests[0])) as queue,
                queue.redis() as redis,
            ):
                now = asyncio.get_running_loop().time()
                await redis.zadd(RemoteKeys("satchel").slots("gpu"), {"of another host": now})
                assert (await session.call("draw")).error_code == "busy"

    asyncio.run(main())


def test_only_workers_with_the_same_version_get_a_call(folder, url, tmp_path, write_plugin):
    other = tmp_path / "other"
    write_plugin(other, "acme", tools=TOOLS + "\n# another version\n")

    async def main():
        async with serving(other, url), hosting(folder, url) as session:
            result = await session.call("where")
            assert result.error_code == "no_worker"
        async with serving(other, url), hosting(folder, url, otherwise="here") as session:
            assert (await session.call("where")).text == "1"

    asyncio.run(main())


def test_an_edit_reaches_the_worker_and_the_host(folder, url):
    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            (before,) = worker.digests
            file = folder / "acme" / "tools.py"
            file.write_text(file.read_text().replace("len(RUNS)", "len(RUNS) + 40"))
            async with asyncio.timeout(60):
                while worker.digests in {(before,), ()}:
                    await asyncio.sleep(0.01)
            # In a thread: the loop sends the heartbeats of the worker.
            with await asyncio.to_thread(Satchel, plugins=[folder]) as app:
                runner = RemoteRunner(url, key=KEY, otherwise="refuse")
                app.register_runner(runner)
                assert (await app.session().call("where")).text == "41"
                await runner.aclose()
            assert (await session.call("where")).error_code == "no_worker"

    asyncio.run(main())


def test_a_runner_may_be_for_one_tool_or_one_group_only(folder, url):
    async def main():
        with Satchel(plugins=[folder]) as app:
            runner = RemoteRunner(url, key=KEY, otherwise="refuse")
            undo = app.register_runner(runner, tool="where")
            session = app.session()
            assert (await session.call("where")).error_code == "no_worker"
            assert (await session.call("count", {"n": 1})).text.strip() == "0"
            undo()
            assert (await session.call("where")).text == "1"
            await runner.aclose()

    asyncio.run(main())


def test_a_call_that_ended_is_not_run_again(folder, url):
    async def main():
        context = ToolContext(run_id="turn 7")
        async with serving(folder, url), hosting(folder, url) as session:
            texts = [
                (await session.call("where", call_id="c1", context=context)).text for _ in range(3)
            ]
            assert texts == ["1", "1", "1"]
            assert (await session.call("where", call_id="c1")).text == "2", "no run is named"

    asyncio.run(main())


def test_a_copy_of_a_call_whose_mark_was_removed_from_redis_is_not_run(folder, url):
    async def main():
        context = ToolContext(run_id="turn 7")
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            assert (await session.call("where", call_id="c1", context=context)).text == "1"
            (digest,) = worker.digests
            async with open_docket(url, "satchel", mark(digest)) as queue, queue.redis() as redis:
                for kept in ("started", "result", "tries"):
                    await redis.delete(*await redis.keys(f"satchel:satchel:{kept}:*"))
            result = await session.call("where", call_id="c1", context=context)
            assert result.error_code == "may_have_run"

    asyncio.run(main())


def test_a_call_whose_worker_was_lost_may_have_run(folder, url):
    """A worker has begun it, as its mark says, and another one gets it again."""

    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            (digest,) = worker.digests
            from satchel.remote.sent_call import id_of

            context = ToolContext(run_id="r")
            call = ToolCall(name="where", arguments={}, id="c", context=context)
            call_id = id_of(call.changed(plugin_digest=digest))
            async with (
                open_docket(url, "satchel", mark(digest)) as queue,
                queue.redis() as redis,
            ):
                await redis.set(RemoteKeys("satchel").started(call_id), "1")
            result = await session.call("where", call_id="c", context=context)
            assert result.error_code == "may_have_run"
            assert "may have run" in result.text

    asyncio.run(main())


@pytest.mark.parametrize("is_ours", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "message",
    [
        "not json",
        "[]",
        "",
        "satchel/4",
        json.dumps({"v": 1, "kind": "call", "body": "{}", "sign": ""}),
        "satchel/2 " + "0" * 64 + " {}",
        "satchel/4 " + "0" * 64,
        "satchel/4 0",
        "satchel/4 é",
        as_text(seal(KEY.encode(), "item", {})),
        as_text(seal(KEY.encode(), "call", {})),
        as_text(seal(KEY.encode(), "call", {"call": {"name": "where"}, "context": [], "id": 1})),
    ],
    ids=range(12),  # since a sealed message differs each time
)
def test_a_worker_refuses_what_is_not_encrypted_with_its_key_and_lives_on(
    folder, url, message, is_ours, caplog
):
    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            (digest,) = worker.digests
            with json_only():
                queue = open_docket(url, "satchel", mark(digest))
            async with queue:
                with json_only(is_ours=is_ours):
                    await queue.add(TASK, key="evil")(message)
                async with asyncio.timeout(60):
                    while "a call was refused" not in caplog.text:
                        await asyncio.sleep(0.01)
            assert (await session.call("where")).text == "1"

    asyncio.run(main())


def test_a_pickle_in_redis_is_never_loaded(folder, url, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "owned"), "w"))

    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            (digest,) = worker.digests
            async with (
                open_docket(url, "satchel", mark(digest)) as queue,
                queue.redis() as redis,
            ):
                fields = {
                    "key": "evil",
                    "when": "2026-01-01T00:00:00+00:00",
                    "function": TASK,
                    "args": pickle.dumps((Evil(),)),
                    "kwargs": pickle.dumps({}),
                    "attempt": "1",
                    "generation": "1",
                }
                await redis.xadd(queue.stream_key, fields)
            assert (await session.call("where")).text == "1"
        assert not (tmp_path / "owned").exists()

    asyncio.run(main())


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "evil", "function": None, "args": None, "kwargs": None},
        *({"function": name, "args": "[600]"} for name in ("sleep", "trace", "fail", "os.system")),
        {"when": "yesterday"},
        {"attempt": "many"},
        {"generation": "x"},
        {"key": b"\xff"},
        {"args": "[[[["},
    ],
    ids=str,
)
def test_a_worker_outlives_records_that_docket_cannot_read(folder, url, fields, caplog):
    whole = {
        "key": "evil",
        "when": "2026-01-01T00:00:00+00:00",
        "function": TASK,
        "args": "[]",
        "kwargs": "{}",
        "attempt": "1",
    }
    record = {key: value for key, value in {**whole, **fields}.items() if value is not None}
    caplog.set_level("WARNING", "docket")  # `satchel worker` makes it quieter

    async def main():
        async with serving(folder, url) as worker, hosting(folder, url) as session:
            (digest,) = worker.digests
            async with (
                open_docket(url, "satchel", mark(digest)) as queue,
                queue.redis() as redis,
            ):
                await redis.xadd(queue.stream_key, record)
            async with asyncio.timeout(60):
                while not any(word in caplog.text for word in ("a call was refused", "dropping")):
                    await asyncio.sleep(0.01)
            assert (await session.call("where")).text == "1"

    asyncio.run(main())


def test_tools_of_the_host_and_of_the_session_run_here(folder, url):
    async def main():
        with Satchel(plugins=[folder]) as app:
            runner = RemoteRunner(url, key=KEY, otherwise="refuse")
            app.register_runner(runner)

            def mine() -> str:
                """Mine."""
                return "here"

            app.register_tool(mine)
            assert (await app.session().call("mine")).text == "here"
            await runner.aclose()

    asyncio.run(main())


NAMED = """
from satchel import tool

@tool(runner="gpu")
async def own() -> str:
    "Own."
    return "here"

@tool(group="drawing")
async def grouped() -> str:
    "Grouped."
    return "here"

@tool(group="other")
async def plain() -> str:
    "Plain."
    return "here"
"""


class Elsewhere(Runner):
    async def run(self, call):
        return "elsewhere"


@pytest.fixture
def named(tmp_path, write_plugin):
    def write(manifest=""):
        write_plugin(
            tmp_path / "named",
            "acme",
            manifest=f"{manifest}groups:\n  drawing:\n    runner: remote\n  other: {{}}\n",
            tools=NAMED,
        )
        return Satchel(plugins=[tmp_path / "named"])

    return write


def texts_of(app):
    session = app.session()

    async def main():
        return {name: (await session.call(name)).text for name in ("own", "grouped", "plain")}

    session.activate("drawing", "other")
    return asyncio.run(main())


def test_tools_groups_and_plugins_name_the_runner_that_they_need(named):
    with named() as app:
        app.register_runner(Elsewhere(), name="gpu")
        undo = app.register_runner(Elsewhere(), name="remote")
        assert texts_of(app) == {"own": "elsewhere", "grouped": "elsewhere", "plain": "here"}
        undo()
        assert texts_of(app) == {"own": "elsewhere", "grouped": "here", "plain": "here"}
    with named("runner: far\n") as app:
        app.register_runner(Elsewhere(), name="far")
        assert texts_of(app) == {"own": "here", "grouped": "here", "plain": "elsewhere"}


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_the_manifest_names_the_runner_of_a_single_tool(named, isolation):
    listed = "tools:\n- name: own\n- name: grouped\n  runner: far\n- plain\n"
    with named(f"isolation: {isolation}\n{listed}") as app:
        app.register_runner(Elsewhere(), name="far")
        app.register_runner(Elsewhere(), name="gpu")
        assert texts_of(app) == {"own": "elsewhere", "grouped": "elsewhere", "plain": "here"}


def test_a_runner_that_is_not_registered_is_reported_once_and_the_call_runs_here(named, caplog):
    with named() as app:
        assert set(texts_of(app).values()) == {"here"}
        texts_of(app)
    assert caplog.text.count("runner-unknown") == 2, "one for each name"
    assert "asks for the runner 'gpu', which is not registered" in caplog.text


def test_a_runner_of_the_host_for_a_tool_comes_before_one_that_the_tool_names(named):
    class Host(Runner):
        async def run(self, call):
            return "host"

    with named() as app:
        app.register_runner(Host(), tool="own")
        app.register_runner(Elsewhere(), name="gpu")
        assert texts_of(app)["own"] == "host"


def test_hosts_and_workers_agree_on_a_published_catalog(folder, url, tmp_path):
    """The steps of a rolling reload."""
    newer = tmp_path / "newer"
    shutil.copytree(folder, newer)
    (newer / "acme" / "tools.py").write_text(TOOLS.replace("len(RUNS)", "len(RUNS) + 40"))

    async def main():
        async with CatalogPublisher(url, key=KEY) as publisher, serving(folder, url):
            assert await publisher.published() is None
            with Satchel(plugins=[folder]) as old, Satchel(plugins=[newer]) as new:
                first = await publisher.publish(old.catalog)
                assert await publisher.publish(old.catalog) == first
                assert await publisher.slots(first) == {"acme": 10}
                second = await publisher.publish(new.catalog)
                assert (first.generation, second.generation) == (1, 2)
                assert await publisher.published() == second
                assert await publisher.slots(second) == {"acme": 0}
                async with publisher.announcing(old), serving(newer, url):
                    assert await publisher.slots(second) == {"acme": 10}
                    async with asyncio.timeout(60):
                        while await publisher.hosts() != {first.digest: 1}:
                            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_published_catalog_of_others_is_refused(url):
    async def main():
        async with CatalogPublisher(url, key=KEY) as publisher:
            async with publisher._queue.redis() as redis:
                await redis.set(RemoteKeys("satchel").catalog, "satchel/4 0 {}")
            with pytest.raises(EnvelopeError, match="not encrypted"):
                await publisher.published()

    asyncio.run(main())


def digest_in(folder):
    with Satchel(plugins=[folder]) as app:
        return app.catalog.plugin("acme").contribution.digest


@pytest.fixture
def newer(folder, tmp_path, write_plugin):
    manifest = f"active: true\ncompatible-with: [{digest_in(folder)}]\n"
    tools = TOOLS.replace("(RUNS)", "(RUNS) + 40")
    write_plugin(tmp_path / "newer", "acme", manifest=manifest, tools=tools)
    return tmp_path / "newer"


def test_a_worker_answers_for_versions_that_its_own_is_compatible_with(folder, newer, url):
    async def main():
        async with serving(newer, url) as worker, hosting(folder, url) as session:
            assert set(worker.digests) == {digest_in(folder), digest_in(newer)}
            assert (await session.call("where")).text == "41"
            async with hosting(newer, url) as new_session:
                assert (await new_session.call("where")).text == "42"

    asyncio.run(main())


def test_an_edit_also_replaces_what_answers_for_a_compatible_version(folder, newer, url):
    async def main():
        async with serving(newer, url) as worker, hosting(folder, url) as session:
            before = set(worker.digests)
            file = newer / "acme" / "tools.py"
            file.write_text(TOOLS.replace("(RUNS)", "(RUNS) + 70"))
            async with asyncio.timeout(60):
                while len(worker.digests) < 2 or set(worker.digests) == before:
                    await asyncio.sleep(0.01)
                while (await session.call("where")).text[0] != "7":
                    await asyncio.sleep(0.01)
            file.parent.joinpath("toolkit.yaml").write_text("name: acme\nactive: true\n")
            async with asyncio.timeout(60):
                while digest_in(folder) in worker.digests:
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_the_version_of_a_plugin_with_warnings_is_the_same_in_every_folder(tmp_path, write_plugin):
    for name in ("here", "there"):
        write_plugin(tmp_path / name, "acme", manifest="unknown: 1\n", tools=TOOLS)
    assert digest_in(tmp_path / "here") == digest_in(tmp_path / "there")
