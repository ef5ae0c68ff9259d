"""What a call on a worker costs, beside a task of bare docket on the same redis.

Run it with `python benchmarks/remote_calls.py`; it needs redis-server and `satchel[remote]`.
"""

import asyncio
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from docket import Docket

from satchel import Satchel, Session, ToolChunk
from satchel.remote import RemoteRunner

KEY = "0123456789abcdef0123456789abcdef"
MOST_MEMORY = 100
TOOLS = """
import asyncio
import time
from satchel import tool

@tool
async def work() -> str:
    "Work for a millisecond."
    await asyncio.sleep(0.001)
    return "done"

@tool
async def tick():
    "Say what time it is, again and again."
    for _ in range(100):
        await asyncio.sleep(0.01)
        yield repr(time.time())

@tool
async def nap() -> str:
    "Sleep."
    await asyncio.sleep(600)
    return "done"
"""
BARE = """
import asyncio, sys
from datetime import timedelta
from docket import Docket, Worker

async def work() -> str:
    await asyncio.sleep(0.001)
    return "done"

async def main():
    async with Docket(name="bare", url=sys.argv[1]) as docket:
        docket.register(work)
        interval = timedelta(milliseconds=20)
        async with Worker(docket, concurrency=10, minimum_check_interval=interval) as worker:
            print("ready", flush=True)
            await worker.run_forever()

asyncio.run(main())
"""


async def latencies(*calls: Callable[[], Awaitable[object]]) -> list[list[float]]:
    """Return the milliseconds of each call: the fastest tenth, and the median; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(200):
        for call, taken in zip(calls, times, strict=True):
            began = time.perf_counter()
            await call()
            taken.append((time.perf_counter() - began) * 1_000)
    return [[statistics.quantiles(taken, n=10)[0], statistics.median(taken)] for taken in times]


async def throughputs(
    calls: Sequence[Callable[[], Awaitable[object]]], processes: Sequence[int]
) -> list[list[float]]:
    """Return how many calls a second end with 500 at once, and their milliseconds of processor.

    They are medians, and the calls take turns. The milliseconds are those of this process and of
    the processes; unlike the others they hardly depend on the load of the machine.
    """
    rates: list[list[float]] = [[] for _ in calls]
    costs: list[list[float]] = [[] for _ in calls]
    for _ in range(7):
        for call, taken, cost in zip(calls, rates, costs, strict=True):
            began, spent = time.perf_counter(), processor_seconds(processes)
            await asyncio.gather(*(call() for _ in range(500)))
            taken.append(500 / (time.perf_counter() - began))
            cost.append((processor_seconds(processes) - spent) * 2)
    return [[*map(statistics.median, kind)] for kind in (rates, costs)]


def processor_seconds(processes: Sequence[int]) -> float:
    """Return the processor time of this process and of others."""
    ticks = 0
    for number in processes:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        ticks += sum(map(int, text.split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


async def chunk_latency(session: Session) -> float:
    """Return the median milliseconds from a worker's `yield` to the host."""
    return statistics.median(
        [
            (time.time() - float(item.text)) * 1_000
            async for item in session.stream("tick")
            if isinstance(item, ToolChunk)
        ]
    )


async def redis_latency(docket: Docket) -> float:
    """Return the median milliseconds from an entry in a stream to who waits for it."""
    taken = []
    async with docket.redis() as redis:
        last = "0"
        for _ in range(100):
            reading = asyncio.create_task(redis.xread({"bench": last}, 1, 1_000))
            await asyncio.sleep(0.01)
            began = time.perf_counter()
            await redis.xadd("bench", {"item": b"x"})
            ((_, ((entry, _),)),) = await reading
            taken.append((time.perf_counter() - began) * 1_000)
            last = entry.decode()
    return statistics.median(taken)


async def memory_of(session: Session, runner: RemoteRunner, calls: int) -> float:
    """Return the MiB that so many calls in flight add to this process."""
    before = resident()
    tasks = [asyncio.create_task(session.call("nap")) for _ in range(calls)]
    connection = runner._connection()  # noqa: SLF001 - only it knows what redis has
    waiting = connection._calls  # noqa: SLF001
    while sum(sent.queue is not None for many in waiting.values() for sent in many) < calls:
        assert not any(task.done() for task in tasks), "some were refused or had ended"
        await asyncio.sleep(0.1)
    added = resident() - before
    assert not any(task.done() for task in tasks), "some were refused or had ended"
    logging.disable()  # so many cancelled calls end late
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert added < MOST_MEMORY, f"{added:.0f} MiB"
    return added


def resident() -> float:
    """Return the MiB that this process holds in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measure(folder: str, url: str, processes: Sequence[int]) -> None:
    """Measure both, and print the table."""
    semaphore = asyncio.Semaphore(50)  # the connections of docket's pool are limited
    async with Docket(name="bare", url=url) as docket:

        async def work() -> str:
            raise NotImplementedError

        docket.register(work)

        async def bare() -> None:
            async with semaphore:
                execution = await docket.add(work)()
                await execution.get_result(timeout=timedelta(seconds=60))

        with Satchel(plugins=[folder]) as app:
            runner = RemoteRunner(url, key=KEY, otherwise="refuse", queue=10_000)
            app.register_runner(runner)
            session = app.session()

            async def remote() -> None:
                result = await session.call("work")
                assert result.text == "done", result.text

            await bare()
            await remote()
            ours, theirs = await latencies(remote, bare)
            rates, costs = await throughputs((remote, bare), processes)
            chunk, floor = await chunk_latency(session), await redis_latency(docket)
            await runner.aclose()
        with Satchel(plugins=[folder]) as app:
            runner = RemoteRunner(url, key=KEY, name="wide", otherwise="refuse", queue=2_000)
            app.register_runner(runner)
            await app.session().call("work")
            added = await memory_of(app.session(), runner, 1_000)
            await runner.aclose()
    print(f"{'':34}{'satchel':>10}{'docket':>10}{'ratio':>8}")
    for name, a, b in (
        ("call, fastest tenth, milliseconds", ours[0], theirs[0]),
        ("call, median, milliseconds", ours[1], theirs[1]),
        ("500 at once, calls a second", *rates),
        ("processor a call, milliseconds", *costs),
    ):
        print(f"{name:34}{a:10.1f}{b:10.1f}{a / b:8.2f}")
    print(f"{'chunk to the caller, milliseconds':34}{chunk:10.1f}  redis itself {floor:.1f}")
    print(f"{'1,000 calls in flight, MiB':34}{added:10.1f}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def main() -> None:
    """Start redis and a worker of each kind, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder, "plugins", "bench")
        plugin.mkdir(parents=True)
        (plugin / "toolkit.yaml").write_text("name: bench\nactive: true\n")
        (plugin / "tools.py").write_text(TOOLS)
        plugins, url = str(plugin.parent), f"unix://{folder}/s"
        redis = ["redis-server", "--port", "0", "--unixsocket", f"{folder}/s", "--save", ""]
        worker = [sys.executable, "-m", "satchel", "worker", "--plugins", plugins, "--redis", url]
        wide = [*worker, "--name", "wide", "--concurrency", "1000"]
        started = [
            (redis, "ready to accept connections", {}),
            ([sys.executable, "-c", BARE, url], "ready", {}),
            (worker, "ready", {"SATCHEL_REMOTE_KEY": KEY}),
            (wide, "ready", {"SATCHEL_REMOTE_KEY": KEY}),
        ]
        processes = []
        try:
            for command, text, variables in started:
                process = subprocess.Popen(  # noqa: S603
                    command,
                    env={**os.environ, **variables},
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                processes.append(process)
                assert process.stdout is not None
                while text not in process.stdout.readline().lower():
                    pass
            asyncio.run(measure(plugins, url, [process.pid for process in processes]))
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
