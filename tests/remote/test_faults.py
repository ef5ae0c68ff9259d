"""Nothing is lost and nothing is done twice while redis, workers and clocks fail."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from satchel import Satchel

pytest.importorskip("docket", reason="pydocket is not installed")
if not shutil.which("redis-server"):
    pytest.skip("redis-server is not installed", allow_module_level=True)

from satchel.remote import RemoteRunner
from satchel.remote.docket_json import json_only, open_docket
from satchel.remote.remote_keys import CALL, ITEM, TASK
from satchel.remote.sealed_envelope import as_text, mark_of, seal

pytestmark = pytest.mark.slow

KEY = "0123456789abcdef0123456789abcdef"
TOOLS = """
import asyncio
import os
import time
from pathlib import Path
from satchel import tool

async def work(folder: str, name: str, seconds: float) -> str:
    with (Path(folder) / name).open("a") as file:
        file.write(f"{os.getpid()}\\n")
    await asyncio.sleep(seconds)
    return f"done by {os.getpid()}"

@tool
async def once(folder: str, name: str, seconds: float = 0.0) -> str:
    "Work."
    return await work(folder, name, seconds)

@tool(idempotent=True)
async def again(folder: str, name: str, seconds: float = 0.0) -> str:
    "Work that may be done again."
    return await work(folder, name, seconds)

@tool
async def block(folder: str, name: str, seconds: float = 0.0) -> str:
    "Block the event loop."
    time.sleep(seconds)
    return await work(folder, name, 0)

@tool(timeout=1.0)
async def brief(folder: str, name: str, seconds: float = 0.0) -> str:
    "Work for a second at most."
    return await work(folder, name, seconds)

@tool(timeout=1.0)
async def stuck(folder: str, name: str, seconds: float = 0.0) -> str:
    "Block the event loop, and be limited."
    time.sleep(seconds)
    return await work(folder, name, 0)

@tool(idempotent=True)
async def die(folder: str, name: str, seconds: float = 0.0) -> str:
    "End the process."
    await work(folder, name, seconds)
    os._exit(9)

@tool
async def large(size: int) -> str:
    "Return a large text."
    return "x" * size
"""


@pytest.fixture
def folder(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme", tools=TOOLS)
    return tmp_path / "plugins"


@pytest.fixture
def marks(tmp_path):
    path = tmp_path / "marks"
    path.mkdir()
    return path


@asynccontextmanager
async def hosting(folder, url, **options):
    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, **{"otherwise": "refuse", **options})
        app.register_runner(runner)
        try:
            async with asyncio.timeout(240):
                yield app.session(), runner
        finally:
            await runner.aclose()


def codes(runner):
    return {item.code for item in runner.diagnostics}


def runs(path):
    return path.read_text().split() if path.exists() else []


async def until(condition):
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


def begin(session, tool, marks, name, seconds=0.0):
    arguments = {"folder": str(marks), "name": name, "seconds": seconds}
    return asyncio.create_task(session.call(tool, arguments))


@pytest.mark.parametrize("persists", [True, False])
def test_redis_is_stopped_and_comes_back(folder, marks, redis_server, start_worker, persists):
    redis = redis_server(persists=persists)
    start_worker(folder, redis.url, "--concurrency", "2")

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            running = begin(session, "once", marks, "running", 2.0)
            await until(lambda: runs(marks / "running"))
            busy = begin(session, "once", marks, "busy", 4.0)
            await until(lambda: runs(marks / "busy"))
            waiting = [begin(session, "once", marks, f"w{n}") for n in range(3)]
            repeatable = [begin(session, "again", marks, f"a{n}") for n in range(3)]
            await asyncio.sleep(0.3)  # they are in redis now, or will be
            redis.stop()
            await until(lambda: "remote-unreachable" in codes(runner))
            late = begin(session, "again", marks, "late")
            redis.start()
            results = await asyncio.gather(running, busy, *waiting, *repeatable)
            await late
            async with asyncio.timeout(60):
                while (
                    last := await session.call("again", {"folder": str(marks), "name": "z"})
                ).is_error:
                    assert last.error_code == "no_worker"
            return results, codes(runner)

    results, now = asyncio.run(main())
    names = ["running", "busy", "w0", "w1", "w2", "a0", "a1", "a2"]
    for name, result in zip(names, results, strict=True):
        # On a busy machine, one may be sent only after redis is back, and before its worker is.
        codes_of_a_call = {"may_have_run", "no_worker"}
        assert not result.is_error or result.error_code in codes_of_a_call, (name, result.text)
        if not name.startswith("a"):
            most = 0 if result.error_code == "no_worker" else 1
            assert len(runs(marks / name)) <= most, f"{name} was done too often"
    assert not any(result.is_error for result in (*results[:2], *results[5:]))
    if persists:
        assert not any(result.is_error for result in results)
    assert "remote-unreachable" not in now, "it is there again"


def test_redis_is_paused_and_comes_back(folder, marks, redis_server, start_worker):
    redis = redis_server()
    start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            first = begin(session, "once", marks, "first", 1.0)
            await until(lambda: runs(marks / "first"))
            redis.send(signal.SIGSTOP)
            second = begin(session, "once", marks, "second")
            await asyncio.sleep(8)  # longer than a worker may be silent
            assert "remote-unreachable" in codes(runner)
            redis.send(signal.SIGCONT)
            results = await asyncio.gather(first, second)
            assert "remote-unreachable" not in codes(runner)
            return results

    for result, name in zip(asyncio.run(main()), ("first", "second"), strict=True):
        assert not result.is_error, result.text
        assert len(runs(marks / name)) == 1


def test_a_tool_that_blocks_its_event_loop_still_answers(folder, marks, redis_server, start_worker):
    redis = redis_server()
    start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            # Longer than a worker may be silent, and than its calls wait to be delivered again.
            return await begin(session, "block", marks, "blocked", 9.0), codes(runner)

    result, seen = asyncio.run(main())
    assert result.text.startswith("done by")
    assert len(runs(marks / "blocked")) == 1
    assert seen == set()


SKEW = """
import datetime, docket.worker, docket.execution, docket.docket, time
class Skewed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.now(tz) + datetime.timedelta(hours={hours})
for module in (docket.worker, docket.execution, docket.docket):
    module.datetime = Skewed
"""


@pytest.mark.parametrize("hours", [3, -3])
def test_clocks_may_differ(folder, marks, redis_server, start_worker, hours):
    redis = redis_server()
    start_worker(folder, redis.url, before=SKEW.format(hours=hours))
    start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            calls = [begin(session, "once", marks, f"r{n}", 0.2) for n in range(60)]
            return await asyncio.gather(*calls)

    results = asyncio.run(main())
    assert not any(result.is_error for result in results)
    assert all(len(runs(marks / f"r{n}")) == 1 for n in range(60))
    assert len({result.text for result in results}) == 2, "both had calls"


def test_a_result_of_50_megabytes_comes_whole_or_cut_as_a_local_one(
    folder, redis_server, start_worker, config_folder
):
    redis = redis_server()
    start_worker(folder, redis.url)
    config_folder.mkdir(parents=True, exist_ok=True)
    (config_folder / "satchel.toml").write_text(WIDE)
    start_worker(folder, redis.url)
    size = 50 * 2**20

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            short = await session.call("large", {"size": size})
        with Satchel(plugins=[folder]) as app:
            local = await app.session().call("large", {"size": size})
        async with hosting(folder, redis.url, name="wide") as (session, _):
            whole = await session.call("large", {"size": size})
        return short, local, whole

    short, local, whole = asyncio.run(main())
    assert short.text == local.text
    assert len(short.text) < 2**20
    assert whole.text == "x" * size


WIDE = """
[worker]
name = "wide"
limits = { result_text = 104857600 }
"""


def test_a_time_limit_counts_from_the_start_on_the_worker(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    start_worker(folder, redis.url, "--concurrency", "1")

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            first = begin(session, "once", marks, "first", 3.0)
            await until(lambda: runs(marks / "first"))
            second = begin(session, "brief", marks, "second")  # waits longer than its limit
            third = begin(session, "brief", marks, "third", 60.0)
            return await asyncio.gather(first, second, third)

    first, second, third = asyncio.run(main())
    assert not first.is_error
    assert not second.is_error, second.text
    assert third.error_code == "timeout"


def test_a_time_limit_ends_the_wait_for_a_tool_that_blocks_its_worker(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            return await begin(session, "stuck", marks, "stuck", 20.0)

    began = time.monotonic()
    result = asyncio.run(main())
    assert result.error_code == "timeout"
    assert "within 1 s (the tool's own timeout). It may have run" in result.text
    assert time.monotonic() - began < 20


def test_a_call_that_no_worker_begins_in_time_is_refused_and_never_done(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    start_worker(folder, redis.url, "--concurrency", "1")

    async def main():
        async with hosting(folder, redis.url, wait=1.0) as (session, runner):
            first = begin(session, "once", marks, "first", 4.0)
            await until(lambda: runs(marks / "first"))
            second = await begin(session, "once", marks, "second")
            assert not (await first).is_error
            assert not (await begin(session, "once", marks, "third")).is_error
            return second, codes(runner)

    second, now = asyncio.run(main())
    assert second.error_code == "no_worker"
    assert "in time" in second.text
    assert "remote-no-worker" in now
    assert not runs(marks / "second")


def test_two_versions_are_served_by_their_own_workers(
    folder, tmp_path, marks, redis_server, start_worker
):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    (other / "acme" / "tools.py").write_text(TOOLS.replace("done by", "made by"))
    redis = redis_server()
    start_worker(folder, redis.url)
    start_worker(other, redis.url)

    async def main():
        texts = []
        for plugins in (folder, other):
            async with hosting(plugins, redis.url) as (session, _):
                calls = [begin(session, "once", marks, f"{plugins.name}{n}") for n in range(20)]
                texts.append({(await call).text.split(" by ")[0] for call in calls})
        return texts

    assert asyncio.run(main()) == [{"done"}, {"made"}]


def test_a_worker_that_lies_is_not_believed(folder, marks, redis_server, start_worker):
    redis = redis_server()
    start_worker(folder, redis.url)
    lie = {"content": [{"type": "text", "text": "a lie"}]}

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            task = begin(session, "once", marks, "true", 2.0)
            await until(lambda: runs(marks / "true"))
            (connection,) = runner._connections.values()
            (call_id,) = connection._calls
            (queue,) = connection._queues.values()
            digest = _digest(connection)
            item = {"id": call_id, "digest": "another", "result": lie}
            messages = [
                json.dumps(item),
                seal(b"another key of 16 characters", ITEM, {**item, "digest": digest}),
                seal(KEY.encode(), CALL, item),
                seal(KEY.encode(), ITEM, item),  # of another version
                seal(KEY.encode(), ITEM, {**item, "id": "of nobody"}),
                seal(KEY.encode(), ITEM, {}),
                seal(KEY.encode(), ITEM, {"id": call_id, "digest": digest, "chunk": 1}),
            ]
            async with queue.docket.redis() as client:
                for message in messages:
                    await client.xadd(connection._inbox, {"item": message})
                await client.xadd(connection._inbox, {"nothing": b""})
            return await task, codes(runner)

    result, now = asyncio.run(main())
    assert result.text.startswith("done by")
    assert now == {"remote-message-refused"}


def _digest(connection):
    return next(iter(connection._queues))


def test_a_call_for_another_version_or_from_long_ago_is_not_run(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    worker = start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            assert not (await begin(session, "once", marks, "before")).is_error
            (connection,) = runner._connections.values()
            digest = _digest(connection)
            body = {
                "id": "copied",
                "call": {
                    "name": "once",
                    "arguments": {"folder": str(marks), "name": "copied"},
                    "id": "",
                },
                "inbox": "none",
                "wait": 60.0,
                "context": {
                    **{name: {} for name in ("config", "state", "metadata")},
                    **dict.fromkeys(("agent_id", "run_id", "call_id"), ""),
                    "preapproved": [],
                    "iteration": 0,
                },
            }
            with json_only():
                async with open_docket(
                    redis.url, "satchel", mark_of(KEY.encode(), digest)
                ) as queue:
                    for changes in (
                        {"digest": "other", "sent": 9e9},
                        {"digest": digest, "sent": 9.0},
                        # Its host has given up, so it is a copy, and its mark was removed.
                        {"digest": digest, "sent": time.time() - 100},
                    ):
                        message = as_text(seal(KEY.encode(), CALL, {**body, **changes}))
                        await queue.add(TASK, key=f"evil{changes['sent']}")(message)
            assert not (await begin(session, "once", marks, "after")).is_error

    asyncio.run(main())
    worker.send_signal(signal.SIGTERM)
    log = worker.stderr.read()
    assert "for another version" in log
    assert "too old" in log
    assert "once is not run again" in log
    assert not runs(marks / "copied")


@pytest.mark.parametrize("count", [3, 4])
def test_a_call_that_ends_its_workers_is_given_up_after_three(
    folder, marks, redis_server, start_worker, count
):
    redis = redis_server()
    workers = [start_worker(folder, redis.url) for _ in range(count)]

    async def main():
        async with hosting(folder, redis.url, wait=120.0) as (session, runner):
            return await begin(session, "die", marks, "die"), codes(runner)

    result, now = asyncio.run(main())
    assert result.error_code == "may_have_run", result.text
    assert now == {"remote-may-have-run"}
    assert len(runs(marks / "die")) == 3
    assert sum(worker.poll() is None for worker in workers) == count - 3


def test_a_begun_call_of_the_last_worker_is_answered_soon_after_it_is_killed(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    worker = start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, runner):
            call = begin(session, "once", marks, "lone", 50.0)
            await until(lambda: runs(marks / "lone"))
            worker.kill()
            async with asyncio.timeout(40):
                return await call, codes(runner)

    result, now = asyncio.run(main())
    assert result.error_code == "may_have_run", result.text
    assert now == {"remote-may-have-run"}
    assert len(runs(marks / "lone")) == 1


def test_stopping_a_worker_gives_its_waiting_calls_to_another(
    folder, marks, redis_server, start_worker
):
    redis = redis_server()
    workers = [start_worker(folder, redis.url, "--concurrency", "2") for _ in range(2)]

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            calls = [begin(session, "once", marks, f"r{n}", 0.5) for n in range(20)]
            await until(lambda: any(runs(marks / f"r{n}") for n in range(20)))
            workers[0].send_signal(signal.SIGTERM)
            return await asyncio.gather(*calls)

    results = asyncio.run(main())
    assert workers[0].wait(60) == 0
    assert not any(result.is_error for result in results)
    assert all(len(runs(marks / f"r{n}")) == 1 for n in range(20))


def test_a_second_signal_kills_a_worker_that_ends_a_call(folder, marks, redis_server, start_worker):
    redis = redis_server()
    worker = start_worker(folder, redis.url)

    async def main():
        async with hosting(folder, redis.url) as (session, _):
            call = begin(session, "once", marks, "long", 600.0)
            await until(lambda: runs(marks / "long"))
            async with asyncio.timeout(60):
                while worker.poll() is None:
                    worker.send_signal(signal.SIGTERM)
                    await asyncio.sleep(0.1)
            call.cancel()

    asyncio.run(main())
    assert worker.returncode == -signal.SIGTERM


def test_many_calls_end_once_each_while_workers_are_killed():
    program = Path(__file__).parents[2] / "benchmarks" / "killing_workers.py"
    command = [sys.executable, program, "--calls", "300", "--every", "4", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
