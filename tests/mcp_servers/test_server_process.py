import asyncio
import os
from contextlib import suppress
from dataclasses import replace

import anyio
import pytest
from mcp.client import stdio

from satchel.mcp_servers import server_process
from satchel.mcp_servers.server_addresses import StdioServer, is_nested, nesting
from satchel.mcp_servers.server_declarations import user_server
from satchel.mcp_servers.server_process import StderrBuffer, run_process


async def test_a_process_ends_though_the_task_that_ends_it_is_cancelled(plain, tmp_path):
    os.mkfifo(held := tmp_path / "held")
    server = plain(how=("stays", "child"), env={"HELD": str(held)})
    begun, is_closing = asyncio.Event(), asyncio.Event()

    async def run():
        async with run_process(server, StderrBuffer(), 1_000):
            await begun.wait()
            is_closing.set()

    task = asyncio.create_task(run())
    with await asyncio.to_thread(held.open) as messages:
        assert await asyncio.to_thread(messages.readline) == "begun\n"
        begun.set()
        await is_closing.wait()
        await asyncio.sleep(0.1)  # the process stays for seconds
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended = asyncio.to_thread(messages.read)
        assert await asyncio.wait_for(ended, 20) == ""


def test_a_satchel_starts_servers_unless_one_above_it_has_its_configuration(monkeypatch, tmp_path):
    above, own = str(tmp_path / "above"), str(tmp_path / "own")
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", above)
    assert not is_nested()
    for name, value in nesting().items():
        monkeypatch.setenv(name, value)
    assert is_nested()
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", own)
    assert not is_nested()
    for name, value in nesting().items():
        monkeypatch.setenv(name, value)
    for folder in (above, own):
        monkeypatch.setenv("SATCHEL_CONFIG_DIR", folder)
        assert is_nested()


def test_a_server_that_ignores_its_end_does_not_delay_serve_beyond_what_clients_wait():
    assert server_process._PATIENCE < stdio.PROCESS_TERMINATION_TIMEOUT


@pytest.mark.parametrize(
    ("args", "files", "is_outside"),
    [
        (("-y", "box", "."), (), True),
        (("-y", "box"), ("package.json",), False),
        (("./box",), (), False),
    ],
)
async def test_npx_takes_no_program_of_a_folder_above_that_of_its_server(
    monkeypatch, tmp_path, args, files, is_outside
):
    folder, own = tmp_path / "clone/it's", tmp_path / "cache/npx"
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("{}")
    # As npx does: it runs the program with a shell.
    script = """#!/bin/sh
pwd > ../outer; printf '%s ' "$@" > ../args
case "$1" in --script-shell=*) exec "${1#*=}" -c 'pwd > ../inner';; esac
pwd > ../inner
"""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/npx").write_text(script)
    (tmp_path / "bin/npx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SATCHEL_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):  # the second start uses the files of the first one
        server = StdioServer(command="npx", args=args, env={"A": "b"}, cwd=str(folder))
        async with run_process(server, StderrBuffer(), 1_000) as (read, _):
            with suppress(anyio.EndOfStream):
                await read.receive()
    outer = own if is_outside else folder
    options = [f"--script-shell={own}/sh"] if is_outside else []
    assert (outer.parent / "outer").read_text() == f"{outer}\n"
    assert (outer.parent / "args").read_text().split() == [*options, *args]
    assert (folder.parent / "inner").read_text() == f"{folder}\n"


@pytest.mark.parametrize("is_checked", [True, False])
async def test_uv_makes_no_environment_in_a_trusted_project(monkeypatch, tmp_path, is_checked):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/uv").write_text('#!/bin/sh\necho "$UV_PROJECT_ENVIRONMENT" > environment\n')
    (tmp_path / "bin/uv").chmod(0o755)
    monkeypatch.setenv("SATCHEL_CACHE_DIR", str(tmp_path / "cache"))
    check = (lambda: None) if is_checked else None
    command = str(tmp_path / "bin/uv")
    server = StdioServer(command=command, args=("run", "x"), cwd=str(tmp_path), check=check)
    async with run_process(server, StderrBuffer(), 1_000) as (read, _):
        with suppress(anyio.EndOfStream):
            await read.receive()
    environment = (tmp_path / "environment").read_text().strip()
    assert environment.startswith(str(tmp_path / "cache/uv")) is is_checked


async def test_two_servers_of_uv_have_an_environment_each(monkeypatch, tmp_path):
    (tmp_path / "uv").write_text('#!/bin/sh\necho "$UV_PROJECT_ENVIRONMENT" >> environments\n')
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("SATCHEL_CACHE_DIR", str(tmp_path / "cache"))
    server = StdioServer(command=str(tmp_path / "uv"), cwd=str(tmp_path), check=lambda: None)
    for folder in ("a", "b", "a"):
        one = replace(server, args=("--directory", folder, "run", "x"))
        async with run_process(one, StderrBuffer(), 1_000) as (read, _):
            with suppress(anyio.EndOfStream):
                await read.receive()
    first, second, third = (tmp_path / "environments").read_text().split()
    assert first == third != second


async def test_a_server_gets_the_variables_that_its_file_has_after_the_check(tmp_path):
    (tmp_path / "my.env").write_text("MODE=early\nGONE=1\n")
    table = {"command": "sh", "args": ["-c", 'echo "$MODE $GONE $OWN" > seen'], "cwd": "."}
    table |= {"env-file": "my.env", "env": {"OWN": "own"}}
    config = user_server("box", table, str(tmp_path / "satchel.toml"), {})

    def check():
        (tmp_path / "my.env").write_text("MODE=compared\nOWN=lost\n")

    server = config.checked(check).server
    async with run_process(server, StderrBuffer(), 1_000) as (read, _):
        with suppress(anyio.EndOfStream):
            await read.receive()
    assert (tmp_path / "seen").read_text().split() == ["compared", "own"]
    assert {"early", "compared"} <= {*server.secrets}
