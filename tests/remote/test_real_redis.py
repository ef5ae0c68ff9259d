"""Calls survive what happens to real workers on a real redis."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from satchel import Satchel

pytest.importorskip("docket", reason="pydocket is not installed")
if not shutil.which("redis-server"):
    pytest.skip("redis-server is not installed", allow_module_level=True)

from satchel.remote import RemoteRunner

pytestmark = pytest.mark.slow

KEY = "0123456789abcdef0123456789abcdef"
TOOLS = """
import asyncio
import os
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
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    folder = tmp_path_factory.mktemp("redis")
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "s", "--save", ""],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "ready to accept connections" in line.lower():
            break
    yield f"unix://{folder}/s"
    process.terminate()
    process.wait(60)
    process.stdout.close()


@pytest.fixture
def folder(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme", tools=TOOLS)
    return tmp_path / "plugins"


def start_worker(folder, url, name):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "satchel", "worker", "--plugins", str(folder)),
            *("--redis", url, "--name", name),
        ],
        env={**os.environ, "SATCHEL_REMOTE_KEY": KEY},
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.startswith("ready: 1 plugin"):
            return process
    raise AssertionError("the worker has ended")


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait(60)
    process.stderr.close()


@asynccontextmanager
async def hosting(folder, url, name):
    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, name=name, otherwise="refuse")
        app.register_runner(runner)
        try:
            yield app.session()
        finally:
            await runner.aclose()


async def started(path):
    async with asyncio.timeout(60):
        while not path.exists() or not path.read_text():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("tool", ["once", "again"])
def test_a_killed_worker_loses_no_call_and_runs_none_twice_unasked(folder, redis, tmp_path, tool):
    name = f"killed-{tool}"
    workers = [start_worker(folder, redis, name)]

    async def main():
        async with hosting(folder, redis, name) as session:
            arguments = {"folder": str(tmp_path), "name": "runs", "seconds": 2.0}
            task = asyncio.create_task(session.call(tool, arguments))
            await started(tmp_path / "runs")
            workers[0].send_signal(signal.SIGKILL)
            workers.append(await asyncio.to_thread(start_worker, folder, redis, name))
            async with asyncio.timeout(120):
                return await task

    try:
        result = asyncio.run(main())
    finally:
        for worker in workers:
            end(worker)
    runs = (tmp_path / "runs").read_text().split()
    if tool == "again":
        assert (result.is_error, len(runs)) == (False, 2)
        assert result.text == f"done by {workers[1].pid}"
    else:
        assert (result.error_code, len(runs)) == ("may_have_run", 1)


def test_a_paused_worker_that_comes_back_changes_no_answer(folder, redis, tmp_path):
    workers = [start_worker(folder, redis, "paused")]

    async def main():
        async with hosting(folder, redis, "paused") as session:
            arguments = {"folder": str(tmp_path), "name": "runs", "seconds": 0.5}
            task = asyncio.create_task(session.call("again", arguments))
            await started(tmp_path / "runs")
            workers[0].send_signal(signal.SIGSTOP)
            workers.append(await asyncio.to_thread(start_worker, folder, redis, "paused"))
            async with asyncio.timeout(120):
                first = await task
            workers[0].send_signal(signal.SIGCONT)
            return first

    try:
        result = asyncio.run(main())
    finally:
        for worker in workers:
            end(worker)
    assert result.text == f"done by {workers[1].pid}"


def test_many_calls_on_two_workers_end_once_each_while_one_is_replaced(folder, redis, tmp_path):
    workers = [start_worker(folder, redis, "many") for _ in range(2)]

    async def main():
        async with hosting(folder, redis, "many") as session:
            tasks = [
                asyncio.create_task(
                    session.call(
                        "once", {"folder": str(tmp_path), "name": f"r{n}", "seconds": 0.05}
                    )
                )
                for n in range(200)
            ]
            await started(tmp_path / "r20")
            workers[0].send_signal(signal.SIGKILL)
            async with asyncio.timeout(240):
                return await asyncio.gather(*tasks)

    try:
        results = asyncio.run(main())
    finally:
        for worker in workers:
            end(worker)
    for number, result in enumerate(results):
        mark = tmp_path / f"r{number}"
        runs = mark.read_text().split() if mark.exists() else []
        assert len(runs) <= 1, "none ran twice"
        assert not result.is_error or result.error_code == "may_have_run", result.text
        assert result.is_error or len(runs) == 1
    assert sum(result.is_error for result in results) <= 10


def test_a_worker_that_is_asked_to_stop_ends_its_calls_first(folder, redis, tmp_path):
    worker = start_worker(folder, redis, "stopped")

    async def main():
        async with hosting(folder, redis, "stopped") as session:
            arguments = {"folder": str(tmp_path), "name": "runs", "seconds": 1.0}
            task = asyncio.create_task(session.call("once", arguments))
            await started(tmp_path / "runs")
            worker.send_signal(signal.SIGTERM)
            async with asyncio.timeout(120):
                return await task

    try:
        result = asyncio.run(main())
        assert worker.wait(60) == 0
    finally:
        end(worker)
    assert result.text == f"done by {worker.pid}"
