"""What a call on a worker costs, beside a task of bare docket on the same redis.

Run it with `python benchmarks/remote_calls.py`; it needs redis-server and `satchel[remote]`.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from docket import Docket

from satchel import Satchel
from satchel.remote import RemoteRunner

KEY = "0123456789abcdef0123456789abcdef"
TOOLS = """
import asyncio
from satchel import tool

@tool
async def work() -> str:
    "Work for a millisecond."
    await asyncio.sleep(0.001)
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


async def measured(call: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return the median milliseconds of a call, and calls a second with 500 at once."""
    times = []
    for _ in range(100):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1_000)
    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(500)))
    return statistics.median(times), 500 / (time.perf_counter() - began)


async def measure(folder: str, url: str) -> None:
    """Measure both, and print the table."""
    gate = asyncio.Semaphore(50)  # the connections of docket's pool are limited
    async with Docket(name="bare", url=url) as docket:

        async def work() -> str:
            raise NotImplementedError

        docket.register(work)

        async def bare() -> None:
            async with gate:
                execution = await docket.add(work)()
                await execution.get_result(timeout=timedelta(seconds=60))

        await bare()
        floor = await measured(bare)
    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, otherwise="refuse", queue=10_000)
        app.register_runner(runner)
        session = app.session()

        async def remote() -> None:
            result = await session.call("work")
            assert result.text == "done", result.text

        await remote()
        ours = await measured(remote)
        await runner.aclose()
    print(f"{'':30}{'satchel':>10}{'docket':>10}{'ratio':>8}")
    for name, a, b in (
        ("call, median, milliseconds", ours[0], floor[0]),
        ("500 at once, calls a second", ours[1], floor[1]),
    ):
        print(f"{name:30}{a:10.1f}{b:10.1f}{a / b:8.2f}")


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
        started = [
            (redis, "ready to accept connections", {}),
            ([sys.executable, "-c", BARE, url], "ready", {}),
            (worker, "ready", {"SATCHEL_REMOTE_KEY": KEY}),
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
            asyncio.run(measure(plugins, url))
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
