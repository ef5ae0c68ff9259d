"""Calls of the system fail, or kill the process, by strace: also those that Python makes itself."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture_trial import Tally, write_skill

CALLS = (
    *("openat", "read", "getdents64", "newfstatat", "readlink", "lseek", "ioctl"),
    *("write", "fsync", "rename", "mkdir", "unlink", "flock", "fchmod", "close"),
)
FAULTS = ("error=EMFILE", "error=ENOSPC", "error=EACCES", "error=EIO", "signal=SIGKILL")
_DRIVER = """
import os, signal, sys
from satchel.cli.main import cli
from satchel.errors import SatchelError
from satchel.files.atomic_write import write_atomic
from satchel.configuration.projects import TrustLevel
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.trust.name_owners import NameOwners
from satchel.trust.trust_record import TrustStore, new_record
folder = sys.argv[1]
state = folder + "/state"
def change(word):
    lock = f'version = 1\\n\\n[[skill]]\\nname = "{word}"\\npath = "s"\\n'
    level = TrustLevel.DATA if word == "new" else TrustLevel.CODE
    tool = ToolDefinition(name="a", description=word)
    origin = ServerOrigin("", "box", "x")
    for write in (
        lambda: write_atomic(folder + "/satchel.lock", lock.encode()),
        lambda: write_atomic(folder + "/satchel.toml", f'disable = ["{word}"]\\n'.encode()),
        lambda: TrustStore(state).write(new_record(folder + "/skills", level, {}, ())),
        lambda: PinStore(state, "box", origin).approve((tool,)),
        lambda: NameOwners(state).record([("tool", "a", word)]),
    ):
        try:
            write()
        except (SatchelError, OSError):
            pass
def show():
    try:
        cli(["list", "--skills", folder + "/skills"])
    except SystemExit:
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
change("old"); show()  # all is imported now: a failing import is Python's own
for _ in sys.stdin:
    change("old")
    said = os.open(folder + "/said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    child = os.fork()
    if not child:
        os.dup2(said, 1); os.dup2(said, 2)
        signal.alarm(120)  # a hanging child ends by this
        signal.sigwait({signal.SIGUSR1})
        change("new"); show()
        os._exit(0)
    os.close(said)
    print("child", child, flush=True)
    print("ended", os.waitpid(child, 0)[1], flush=True)
"""


def failing_calls(count: int, folder: Path) -> Tally:
    """Let each call of a kind fail, up to `count`: no traceback; each record is old or new."""
    tally = Tally()
    write_skill(folder / "skills", "a")
    with _driver(folder) as driver:
        for call in CALLS:
            for fault in FAULTS:
                for nth in range(1, count + 1):
                    problem, was_reached = _fail(driver, folder, f"{call}:{fault}:when={nth}")
                    if not was_reached:
                        break
                    problem = problem or _record_fault(folder)
                    tally.expect(not problem, f"{fault} at {call} {nth}: {problem}")
                    tally.done += 1
    return tally


@contextmanager
def _driver(folder: Path) -> Iterator[subprocess.Popen]:
    """Start a process that has imported everything and makes a child for each case."""
    own = {f"SATCHEL_{it}_DIR": f"{folder}/{it.lower()}" for it in ("CONFIG", "STATE", "CACHE")}
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **own},
    ) as driver:  # fmt: skip
        yield driver


def _fail(driver: subprocess.Popen, folder: Path, injection: str) -> tuple[str, bool]:
    """Return what goes wrong in a child with one failing call, and whether it makes this call."""
    print(file=driver.stdin, flush=True)
    for line in driver.stdout:
        if line.startswith("child"):
            break
    child = int(line.split()[1])
    log = folder / "strace.log"
    call = injection.partition(":")[0]
    with subprocess.Popen(
        ["strace", "-f", "-o", log, "-e", f"trace={call}", "-e", f"inject={injection}",
         "-p", str(child)],
        stderr=subprocess.PIPE, text=True,
    ) as tracer:  # fmt: skip
        attached = tracer.stderr.readline()
        os.kill(child, signal.SIGUSR1)
        ended = driver.stdout.readline()
    if "attached" not in attached:
        return f"no tracer: {attached}", True
    message = (folder / "said").read_text()
    expected = {"ended 0\n", "ended 9\n"} if "SIGKILL" in injection else {"ended 0\n"}
    is_right = ended in expected and "Traceback" not in message
    was_reached = "INJECTED" in log.read_text() or ended == "ended 9\n"
    return "" if is_right else f"{ended}{message[-2000:]}", was_reached


def _record_fault(folder: Path) -> str:
    """Return what is wrong with a record after the child."""
    try:
        tomllib.loads((folder / "satchel.lock").read_text())["skill"]
        tomllib.loads((folder / "satchel.toml").read_text())["disable"]
        (record,) = (folder / "state/trust").glob("*.json")
        json.loads(record.read_text())["level"]
        for path in (folder / "state").rglob("*.json"):
            json.loads(path.read_text())
    except (ValueError, KeyError, OSError) as problem:
        return f"a record is not whole: {problem!r}"
    return ""
