"""Show calls on two workers, and what becomes of them when one is killed."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from satchel import Satchel

KEY = os.urandom(16).hex()
TOOLS = """
import asyncio, os
from satchel import tool

@tool
async def once() -> str:
    "Work."
    await asyncio.sleep(2)
    return f"done by worker {os.getpid()}"

@tool(idempotent=True)
async def again() -> str:
    "Work that may be done again."
    await asyncio.sleep(2)
    return f"done by worker {os.getpid()}"
"""


def started(command, is_ready, output, **options):
    process = subprocess.Popen(command, text=True, **{output: subprocess.PIPE}, **options)
    while not is_ready(line := getattr(process, output).readline()):
        if not line:
            raise SystemExit(f"{command[0]} has ended")
    return process


async def show(session, begun=lambda: None):
    names = ["once", "again"] * 3
    since = time.monotonic()
    calls = [asyncio.create_task(session.call(name, {})) for name in names]
    await asyncio.sleep(1)
    begun()
    for name, result in zip(names, await asyncio.gather(*calls), strict=True):
        print(f"  {name}: {result.text}")
    print(f"  after {time.monotonic() - since:.1f} s")


async def main(folder, url, workers):
    from satchel.remote import RemoteRunner

    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, otherwise="wait")
        app.register_runner(runner)
        print("six calls on two workers:")
        await show(app.session())
        print(f"six calls, and worker {workers[0].pid} is killed:")
        await show(app.session(), workers[0].kill)
        print("diagnostics:", *runner.diagnostics, sep="\n  ")
        await runner.aclose()


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        raise SystemExit("the demo needs redis-server, from your system's packages")
    with tempfile.TemporaryDirectory() as name:
        plugin, url = Path(name, "plugins", "demo"), f"unix://{name}/s"
        plugin.mkdir(parents=True)
        (plugin / "toolkit.yaml").write_text("name: demo\nactive: true\n")
        (plugin / "tools.py").write_text(TOOLS)
        redis = ["redis-server", "--port", "0", "--unixsocket", f"{name}/s", "--save", ""]
        worker = [sys.executable, "-m", "satchel", "worker", "--plugins", str(plugin.parent)]
        processes = []
        try:
            is_up = "ready to accept connections"
            processes.append(started(redis, lambda line: is_up in line.lower(), "stdout"))
            keyed = {**os.environ, "SATCHEL_REMOTE_KEY": KEY}
            for command in [[*worker, "--redis", url]] * 2:
                process = started(command, lambda it: it.startswith("ready: "), "stderr", env=keyed)
                processes.append(process)
            asyncio.run(main(plugin.parent, url, processes[1:]))
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait(60)
