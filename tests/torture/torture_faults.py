"""The system fails: writers are killed, and calls of a scan raise."""

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture_trial import Tally, write_plugin, write_skill

from satchel import Satchel, Settings

ERRORS = (errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO)
_CALLS = ("open", "scandir", "stat", "lstat", "readlink", "fstat", "listdir", "mkdir", "replace")
_TOOL = 'from satchel import tool\n@tool\ndef hello() -> str:\n    """Greet."""\n    return "hi"\n'

_WRITER = """
import itertools, sys
from pathlib import Path
folder, kind = sys.argv[1:]
from satchel import Satchel, Settings
from satchel.trust.name_owners import NameOwners
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.files.atomic_write import write_atomic
from satchel.trust.code_units import CodeUnit
from satchel.trust.runnable_files import CodeFile
from satchel.configuration.projects import TrustLevel
from satchel.trust.trust_record import TrustStore, new_record
from satchel.formats.lock_file import Lock, LockEntry
pins = PinStore(folder, "box", ServerOrigin("", "box", "x"))
for number in itertools.count():
    if kind == "names":
        NameOwners(folder).record([("tool", f"t{number % 50}", f"{number}" * 50)])
    elif kind == "pins":
        tool = ToolDefinition(name="a", description=str(number) * 500)
        pins.approve((tool,))
    elif kind == "trust":
        files = {f"f{part}.py": CodeFile(str(number), str(number) * 500) for part in range(20)}
        units = {"code": CodeUnit("code", files)}
        TrustStore(folder + "-state").write(new_record(folder, TrustLevel.CODE, units, ()))
    elif kind == "lock":
        digest = {"digest": f"sha256:{number}"}
        entries = [
            LockEntry(kind="skill", place=f"skills/s{part}", name=f"s{part}", values=digest)
            for part in range(200)
        ]
        write_atomic(f"{folder}/satchel.lock", Lock(entries).text.encode())
    elif kind == "config":
        write_atomic(f"{folder}/satchel.toml", f'disable = ["{number}"]\\n'.encode() * 1)
    else:
        root = Path(folder) / "skills" / f"s{number % 20}"
        root.mkdir(parents=True, exist_ok=True)
        text = f"---\\nname: {root.name}\\ndescription: d {number}\\n---\\nx\\n"
        (root / "SKILL.md").write_text(text)
        Satchel(skills=[Path(folder) / "skills"]).close()
    if number == 0:
        print("written", flush=True)
"""
KINDS = ("names", "pins", "config", "cache", "trust", "lock")


def kills(count: int, folder: Path) -> Tally:
    """Kill writers at random moments: each file is whole, and is read and written afterwards."""
    tally, random_ = Tally(), random.Random(19)
    for number in range(count * len(KINDS)):
        kind = KINDS[number % len(KINDS)]
        place = folder / kind
        place.mkdir(exist_ok=True)
        environment = {**os.environ, "SATCHEL_CACHE_DIR": str(place / "cache")}
        command = [sys.executable, "-c", _WRITER, str(place), kind]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
            tally.expect(writer.stdout.readline() == b"written\n", f"{kind}: nothing was written")
            time.sleep(random_.random() * 0.3)  # a random moment is what this is about
            writer.send_signal(signal.SIGKILL)
        tally.expect(writer.returncode == -signal.SIGKILL, f"{kind}: its writer failed itself")
        fault = _fault_of(kind, place)
        tally.expect(not fault, f"{kind}: {fault}")
        tally.done += 1
    return tally


def _fault_of(kind: str, place: Path) -> str:
    import tomllib

    from satchel.formats.lock_file import read_lock
    from satchel.trust.name_owners import NameOwners
    from satchel.trust.trust_record import TrustStore

    files = [path for path in place.rglob("*.json") if "cache" not in path.parts]
    try:
        for path in files:
            json.loads(path.read_text())
        if (place / "satchel.toml").exists():
            tomllib.loads((place / "satchel.toml").read_text())
        if kind == "names":
            NameOwners(str(place)).record([("tool", "after", "me")])
            assert NameOwners(str(place)).of("tool", "after")
        if kind == "trust":
            store = TrustStore(f"{place}-state")
            reading = store.read(str(place))
            assert not reading.diagnostics, reading.diagnostics
            if reading.record is not None:
                files = reading.record.units["code"].files
                assert len({file.digest for file in files.values()}) == 1, "mixed"
            store.revoke(str(place))
        if kind == "lock" and (place / "satchel.lock").exists():
            entries = read_lock((place / "satchel.lock").read_bytes(), "satchel.lock").entries
            assert len(entries) == 200
            assert len({entry.values["digest"] for entry in entries.values()}) == 1, "mixed"
        if kind == "cache":
            os.environ["SATCHEL_CACHE_DIR"] = str(place / "cache")
            with Satchel(skills=[place / "skills"]) as app:
                broken = [it for it in app.catalog.skills.values() if it.state != "ok"]
                # The writer of the skills is no writer of ours: one may be half written.
                assert len(broken) <= 1
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def scan_faults(count: int, folder: Path) -> Tally:
    """Let each call of a scan fail once: nothing raises, and later all is as it was."""
    tally = Tally()
    skills, plugins = folder / "skills", folder / "plugins"
    for name in ("a", "b"):
        write_skill(skills, name)
        (skills / name / "file.md").write_text("x")
    os.symlink("a", skills / "link")
    write_plugin(plugins, "hello", _TOOL)
    settings = Settings(state_folder=str(folder / "state"), mcp_servers=False, cache=False)

    def load() -> Satchel:
        return Satchel(skills=[skills], plugins=[plugins], settings=settings)

    with load() as app:
        expected = _names(app)
        for code in ERRORS:
            for number in range(count):
                with _failing(code, number) as calls:
                    for how, use in (("cold", load), ("hot", app.refresh)):
                        try:
                            created = use()
                            if isinstance(created, Satchel):
                                created.close()
                        except Exception as problem:
                            name = errno.errorcode[code]
                            tally.expect(
                                False, f"{how}, {name} at call {number}: {problem!r}"[:300]
                            )
                app.refresh()
                differs = set(_names(app)) ^ set(expected)
                tally.expect(not differs, f"call {number}: not as before: {sorted(differs)}")
                tally.done += 1
                if calls[0] <= number:
                    break
    return tally


def _names(app: Satchel) -> list[tuple[str, str, str]]:
    catalog = app.catalog
    served = [entry for entry in catalog.entries if entry.is_served]
    return sorted((type(entry).__name__, entry.name, str(entry.state)) for entry in served)


@contextmanager
def _failing(code: int, number: int) -> Iterator[list[int]]:
    """Let one call fail: the `number`-th of those that files in the package make."""
    calls = [0]
    package = f"{os.sep}satchel{os.sep}"

    def wrapped(real):
        def call(*args, **kwargs):
            if package in sys._getframe(1).f_code.co_filename:
                calls[0] += 1
                if calls[0] == number + 1:
                    raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        return call

    import builtins

    originals = [(os, name, getattr(os, name)) for name in _CALLS]
    originals += [(builtins, "open", builtins.open), (io, "open", io.open)]
    for module, name, real in originals:
        setattr(module, name, wrapped(real))
    try:
        yield calls
    finally:
        for module, name, real in originals:
            setattr(module, name, real)
