"""A redis of our own that can be stopped, and workers in processes of their own."""

import os
import signal
import subprocess
import sys

import pytest

KEY = "0123456789abcdef0123456789abcdef"


class RedisServer:
    """A redis-server in a folder; what it keeps survives `stop` and `start` if it `persists`."""

    def __init__(self, folder, *, persists):
        self.url = f"unix://{folder}/s"
        self._folder, self._persists, self._process = folder, persists, None

    def start(self):
        keep = ["--appendonly", "yes", "--appendfsync", "always"] if self._persists else []
        self._process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", "s", "--save", "", *keep],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self._process.stdout:
            if "ready to accept connections" in line.lower():
                break

    def send(self, number):
        self._process.send_signal(number)

    def stop(self):
        self.send(signal.SIGCONT)
        self._process.kill()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture
def redis_server(tmp_path):
    servers = []

    def start(*, persists=True):
        folder = tmp_path / f"redis{len(servers)}"
        folder.mkdir()
        servers.append(RedisServer(folder, persists=persists))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def start_worker():
    """Start `satchel worker` and wait until it is ready; `before` is run in its process."""
    processes = []

    def start(folder, url, *options, before="", key=KEY):
        code = f"{before}\nimport sys\nfrom satchel.cli.main import main\nsys.exit(main())"
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", code, "worker"),
                *("--plugins", str(folder), "--redis", url, *options),
            ],
            env={**os.environ, "SATCHEL_REMOTE_KEY": key},
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        for line in process.stderr:
            if line.startswith("ready: "):
                return process
        raise AssertionError("the worker has ended")

    yield start
    for process in processes:
        process.kill()
        process.wait(60)
        process.stderr.close()
