"""Calls of the system fail, injected by strace: also those that Python makes itself."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

from torture_trial import Tally, write_skill

CALLS = ("openat", "read", "getdents64", "newfstatat", "write", "fsync", "rename")
ERRORS = ("EMFILE", "ENOSPC", "EACCES", "EIO")
_USE = """
import os, signal, sys
from satchel.cli.main import cli
from satchel.errors import SatchelError
from satchel.files.atomic_write import write_atomic
from satchel.configuration.projects import TrustLevel
from satchel.trust.trust_record import TrustStore, new_record
folder = sys.argv[1]
def change(word):
    lock = f'version = 1\\n\\n[[skill]]\\nname = "{word}"\\npath = "s"\\n'
    level = TrustLevel.DATA if word == "new" else TrustLevel.CODE
    for write in (
        lambda: write_atomic(folder + "/satchel.lock", lock.encode()),
        lambda: write_atomic(folder + "/satchel.toml", f'disable = ["{word}"]\\n'.encode()),
        lambda: TrustStore(folder + "/state").write(new_record(folder + "/skills", level, {}, ())),
    ):
        try:
            write()
        except SatchelError:
            pass
def show():
    try:
        cli(["list", "--skills", folder + "/skills"])
    except SystemExit:
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
change("old"); show()  # all is imported now: a failing import is Python's own
print("ready", flush=True)
signal.sigwait({signal.SIGUSR1})
change("new"); show()
os._exit(0)
"""


def failing_calls(count: int, folder: Path) -> Tally:
    """Let the nth call of a kind fail: no traceback, and each record is whole, old or new."""
    tally = Tally()
    write_skill(folder / "skills", "a")
    for number in range(count):
        call, error = CALLS[number % len(CALLS)], ERRORS[number // len(CALLS) % len(ERRORS)]
        nth = 1 + number // (len(CALLS) * len(ERRORS))
        said = _run(folder, f"{call}:error={error}:when={nth}")
        where = f"{error} at {call} {nth}"
        tally.expect("Traceback" not in said, f"{where}: {said[-400:]}")
        try:
            tomllib.loads((folder / "satchel.lock").read_text())["skill"]
            tomllib.loads((folder / "satchel.toml").read_text())["disable"]
            (record,) = (folder / "state/trust").glob("*.json")
            json.loads(record.read_text())["level"]
        except (ValueError, KeyError, OSError) as problem:
            tally.expect(False, f"{where}: a record is not whole: {problem!r}")
        tally.done += 1
    return tally


def _run(folder: Path, injection: str) -> str:
    """Return what a process says on stderr whose calls fail once it has imported everything."""
    own = {f"SATCHEL_{it}_DIR": f"{folder}/{it.lower()}" for it in ("CONFIG", "STATE", "CACHE")}
    with subprocess.Popen(
        [sys.executable, "-c", _USE, str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **own},
    ) as process:  # fmt: skip
        while process.stdout.readline() not in {"ready\n", ""}:
            pass
        with subprocess.Popen(
            ["strace", "-f", "-o", os.devnull, "-e", f"inject={injection}", "-p", str(process.pid)],
            stderr=subprocess.PIPE, text=True,
        ) as tracer:  # fmt: skip
            attached = tracer.stderr.readline()
            process.send_signal(signal.SIGUSR1)
            said = process.communicate(timeout=120)[1]
            return said if "attached" in attached else f"Traceback: no tracer: {attached}"
