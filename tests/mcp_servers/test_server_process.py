import asyncio
import os
import subprocess

import pytest

from satchel.mcp_servers.server_process import run_process


async def test_a_process_ends_though_whoever_ends_it_is_cancelled(plain, tmp_path):
    os.mkfifo(held := tmp_path / "held")
    server = plain(how=("stays", "child"), env={"HELD": str(held)})
    begun, is_closing = asyncio.Event(), asyncio.Event()

    async def run():
        async with run_process(server, subprocess.DEVNULL, 1_000):
            await begun.wait()
            is_closing.set()

    task = asyncio.create_task(run())
    with await asyncio.to_thread(held.open) as told:
        assert await asyncio.to_thread(told.readline) == "begun\n"
        begun.set()
        await is_closing.wait()
        await asyncio.sleep(0.1)  # the process stays for seconds
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended = asyncio.to_thread(told.read)
        assert await asyncio.wait_for(ended, 20) == ""
