"""Programs in processes of their own that begin with Satchel imported.

A fork of a process that imported everything costs a tenth of a new interpreter.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SERVER = """
import asyncio, gc, json, os, sys, warnings

import satchel, satchel.cli.main, satchel.mcp.stdio_server, satchel.mcp_servers.remote_client
for name in satchel.__all__:
    getattr(satchel, name)
gc.freeze()

# The parent stays in this loop, and prints how each child ended. A child leaves it.
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()

# In the child: become the program.
for number, path in enumerate((os.devnull, job["out"], job["err"])):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
os.chdir(job["folder"])
os.environ.clear()
os.environ.update(job["env"])
sys.argv[1:] = job["arguments"]
sys.path.insert(0, job["folder"])
if job["is_strict"]:
    warnings.simplefilter("error")
exec(compile(job["code"], job["name"], "exec"), {"__name__": "__main__", "__file__": job["name"]})
"""
COMMAND = "from satchel.cli.main import main; main()"


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str


class ForkedPrograms:
    """Runs programs one after the other; the process that they are forked from starts once."""

    def __init__(self, folder: Path) -> None:
        self._out, self._err = folder / "out", folder / "err"
        self._server: subprocess.Popen[str] | None = None

    def satchel(self, *arguments: str, folder: Path, env: dict[str, str] | None = None) -> Ended:
        """Run a command of `satchel` in a folder until it ends."""
        return self.run(COMMAND, *arguments, folder=folder, env=env, is_strict=False)

    def run(
        self,
        code: str,
        *arguments: str,
        folder: Path,
        env: dict[str, str] | None = None,
        name: str = "<program>",
        is_strict: bool = True,
    ) -> Ended:
        """Run a program in a folder until it ends; if strict, its warnings are errors."""
        if self._server is None:
            line = [sys.executable, "-c", SERVER]
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True)
        job = {"code": code, "arguments": arguments, "folder": str(folder), "name": name}
        job["is_strict"] = is_strict
        paths = {"out": str(self._out), "err": str(self._err)}
        print(json.dumps(job | paths | {"env": env or dict(os.environ)}), file=self._server.stdin)
        self._server.stdin.flush()
        ended = int(self._server.stdout.readline())
        return Ended(ended, self._out.read_text("utf-8"), self._err.read_text("utf-8"))

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()
