"""The command line, run in the same process or in one of its own."""

import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from satchel.cli.main import cli

PATIENCE = 120.0
"""Seconds after which something that should come counts as never coming."""


@pytest.fixture(autouse=True)
def an_empty_world(tmp_path, monkeypatch):
    """A current folder and a home in which nothing is, and a plain screen."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def here(an_empty_world) -> Path:
    return Path.cwd()


@pytest.fixture
def run():
    """Run a command in this process; an unexpected fault fails the test."""

    def run(*args: object, **options: object):
        result = CliRunner().invoke(cli, [str(arg) for arg in args], **options)
        assert "unexpected" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def toolkit(here, write_plugin) -> Path:
    """A folder with one plugin, `demo`, whose group is active, and which marks that it was run."""
    write_plugin(
        here / "plugins",
        "demo",
        "description: Shows how.\nnotes: Be kind.\nactive: true\n",
        tools="""
            from pathlib import Path
            from typing import Optional
            from satchel import ToolError, tool

            Path(__file__).with_name("was-run").touch()

            @tool
            def echo(text: str, times: int = 1, hint: Optional[str] = None) -> str:
                "Say it again."
                if times < 0:
                    raise ToolError("times must not be negative")
                return f"{text}{hint or ''}" * times

            @tool
            def kinds(value: list[int], deep: bool = False) -> dict:
                "Tell what came."
                return {"value": value, "deep": deep}
        """,
    )
    return here / "plugins"


@pytest.fixture
def was_run(toolkit):
    """Tell whether the plugin's code was run."""
    return (toolkit / "demo" / "was-run").exists


class Process:
    """A real `satchel`, whose lines are read as they come."""

    def __init__(self, python, args, env) -> None:
        self.process = subprocess.Popen(
            [python, "-m", "satchel", *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        self.lines = {"stdout": queue.Queue(), "stderr": queue.Queue()}
        self.threads = [threading.Thread(target=self._read, args=(name,)) for name in self.lines]
        for thread in self.threads:
            thread.start()

    def _read(self, name: str) -> None:
        for text in getattr(self.process, name):
            self.lines[name].put(text.rstrip("\n"))

    def until(self, pattern: str, stream: str = "stdout") -> str:
        """Read lines until one matches."""
        seen = []
        while True:
            try:
                line = self.lines[stream].get(timeout=PATIENCE)
            except queue.Empty:
                pytest.fail(f"{pattern!r} did not come on {stream} after {seen}")
            seen.append(line)
            if re.search(pattern, line):
                return line

    def rest(self, stream: str = "stdout") -> list[str]:
        """Wait for the end, and return what was not read yet."""
        self.process.wait(PATIENCE)
        for thread in self.threads:
            thread.join(PATIENCE)
        return [self.lines[stream].get() for _ in range(self.lines[stream].qsize())]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for thread in self.threads:
            thread.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def start(forked_python):
    """Start a real process; it is ended with the test."""
    started = []

    def start(*args: object, **env: str) -> Process:
        process = Process(forked_python, args, {**os.environ, "PYTHONUNBUFFERED": "", **env})
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


@pytest.fixture
def execute(forked_python):
    """Run a real process to its end; a shell runs a `script`, with a new Python as $SATCHEL."""

    def execute(*args: object, script: str | None = None, **env: str) -> SimpleNamespace:
        command = [forked_python, "-m", "satchel", *map(str, args)]
        if script is not None:
            env["SATCHEL"] = f"{sys.executable} -m satchel"
            command = ["bash", "-c", script]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            env={**os.environ, **env},
        )
        return SimpleNamespace(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    return execute
