"""Measure what a reload leaves behind (memory, threads, handles, modules, caches) and its time.

    python benchmarks/reloading.py [RELOADS] [VARIANT ...]

Each variant runs in its own process. It is reloaded a hundred times first, to fill all caches. The
output is the growth after that and after a garbage collection: the memory of the process, and what
Python counts. `blocks` are Python's allocations, `lines` the files in `linecache`, `caches` the
entries of every `lru_cache`, and `classes` the direct subclasses of `object`.
"""

import abc
import asyncio
import functools
import gc
import linecache
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import typing
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from satchel import Satchel, Session, Settings, WatchTimings

RELOADS = 1_000
WARM = 100

FUNCTION = '''
from satchel import tool

@tool
def act(text: str, times: int = {number}) -> str:
    """Repeat a text."""
    return "{number}"
'''

CLASS = """
from collections.abc import Mapping
from typing import Any
from satchel import Tool, ToolContext

class Act(Tool):
    name = "act"
    description = "Number {number}."
    parameters = {{"type": "object", "properties": {{"text": {{"type": "string"}}}}}}

    async def execute(self, **arguments: Any) -> str:
        return "{number}"

act = Act()
"""

MODELS = '''
from __future__ import annotations
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Optional
from pydantic import BaseModel
from typing_extensions import TypedDict
from satchel import tool

class Colour(Enum):
    RED = "red"

class Point(NamedTuple):
    x: int = {number}

class Options(TypedDict, total=False):
    colour: Colour

@dataclass
class Box:
    points: list[Point]

class Order(BaseModel):
    box: Box | None = None
    options: Optional[Options] = None

@tool
def act(text: str, order: Order | None = None, box: Optional[Box] = None) -> str | dict[str, Box]:
    """Take an order."""
    return "{number}"
'''

HELPERS = '''
from satchel import tool
import words
from .pack import deep
from .pack.deep import NUMBER

@tool
def act(text: str) -> str:
    """Speak."""
    from . import late
    return late.echo(words.WORD)
'''

STATE = '''
from satchel import tool

@tool(state=["key", "limit"])
def act(text: str, key: str, limit: int = {number}) -> str:
    """Speak, with a key."""
    return "{number}"
'''

PACKAGE = '''
from satchel import hookimpl

def act(text: str) -> str:
    """Speak."""
    return "{number}"

@hookimpl
def satchel_tools():
    return [act]
'''


@dataclass
class Bench:
    """A `Satchel` with one plugin in its own folder, and methods to edit, reload and call it."""

    folder: Path
    source: str
    stack: ExitStack
    files: dict[str, str] = field(default_factory=dict)
    manifest: str = ""
    arguments: dict[str, object] = field(default_factory=dict)
    session: Session | None = None
    watched: bool = False
    package: bool = False

    def __post_init__(self) -> None:
        self.write(0)
        self.changed = threading.Event()
        if self.package:
            sys.path.insert(0, str(self.folder))
            self.app = Satchel(entry_points=["acme"])
        else:
            pace = WatchTimings(step=0.005, quiet=0.01)
            settings = Settings(pace=pace)
            self.app = Satchel(plugins=[self.folder], settings=settings, **self.arguments)  # type: ignore[arg-type]
        self.app.subscribe(lambda change: self.changed.set() if change.kind == "plugin" else None)
        if self.watched:
            self.stack.enter_context(self.app.watching())

    def write(self, number: int) -> None:
        """Write version `number`; each file is replaced at once."""
        if self.package:
            self._install(number)
            return
        files = {"toolkit.yaml": f"name: demo\nactive: true\n{self.manifest}"}
        files |= {name: text.format(number=number) for name, text in self.files.items()}
        files["tools.py"] = self.source.format(number=number) + f"# {number}\n"
        for name, text in files.items():
            path = self.folder / "demo" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text() != text:
                staged = self.folder / "staged"
                staged.write_text(text)
                staged.replace(path)

    def _install(self, number: int) -> None:
        (self.folder / "acme_module.py").write_text(self.source.format(number=number))
        info = self.folder / "acme-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme\nVersion: {number}\n")
        (info / "entry_points.txt").write_text("[satchel.plugins]\nacme = acme_module\n")
        (info / "RECORD").write_text(f"acme_module.py,sha256={number},\n")
        # A replaced file changes the time of its folder.
        os.utime(self.folder)

    def reload(self, number: int) -> None:
        """Write a version, and wait until it is loaded."""
        self.changed.clear()
        self.write(number)
        if self.watched:
            if not self.changed.wait(20):
                raise TimeoutError("the watch missed an edit")
        else:
            self.app.refresh()
        if self.session is not None:
            self.session.step().prompt()

    def call(self, session: Session) -> str:
        """Call the tool."""
        session.activate("demo" if not self.package else "acme")
        return asyncio.run(session.call("act", {"text": "x"})).text


def helpers() -> dict[str, str]:
    """Return the modules that the tools import."""
    return {
        "words.py": "WORD = '{number}'\n",
        "late.py": "from .words import WORD\n\ndef echo(word):\n    return word\n",
        "pack/__init__.py": "from .deep import NUMBER\n",
        "pack/deep.py": "from ..words import WORD\nNUMBER = {number}\n",
    }


VARIANTS: dict[str, dict[str, object]] = {
    "function": {"source": FUNCTION},
    "class": {"source": CLASS},
    "models": {"source": MODELS},
    "helpers": {"source": HELPERS, "files": helpers()},
    "state": {"source": STATE, "arguments": {"config": {"demo": {"key": "k"}}}},
    "session": {"source": MODELS},
    "watch": {"source": FUNCTION, "watched": True},
    "package": {"source": PACKAGE, "package": True},
}
"""The variants; `session` calls each version in one session that lives all the time."""


@dataclass(frozen=True)
class State:
    """Counts of one process at one moment."""

    memory: int
    blocks: int
    objects: int
    threads: int
    handles: int
    modules: int
    lines: int
    cached: int
    subclasses: int

    @classmethod
    def now(cls) -> "State":
        """Return the counts after a garbage collection."""
        for _ in range(3):
            gc.collect()
        return cls(
            memory=resident(),
            blocks=sys.getallocatedblocks(),
            objects=len(gc.get_objects()),
            threads=threading.active_count(),
            handles=len(os.listdir("/proc/self/fd")),
            modules=len(sys.modules),
            lines=len(linecache.cache),
            cached=sum(item.cache_info().currsize for item in caches()),
            subclasses=len(abc.ABC.__subclasses__()) + len(object.__subclasses__()),
        )

    def since(self, before: "State") -> list[int]:
        """Return the growth of each count."""
        return [
            now - then for now, then in zip(vars(self).values(), vars(before).values(), strict=True)
        ]


def caches() -> list[typing.Any]:
    """Return every `lru_cache` of the process; those of `typing` hold classes of plugins."""
    kind = type(functools.cache(int))
    return [item for item in gc.get_objects() if type(item) is kind]


def resident() -> int:
    """Return the resident memory of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure(name: str, reloads: int) -> None:
    """Reload one variant in this process, and print its line."""
    options = dict(VARIANTS[name])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack=stack, **options)  # type: ignore[arg-type]
        bench.session = bench.app.session() if name == "session" else None

        def run(start: int, count: int) -> None:
            for number in range(start, start + count):
                bench.reload(number)
                text = bench.call(bench.session or bench.app.session())
                if text != str(number):
                    raise AssertionError(text, number)

        run(1, WARM)
        State.now()  # The first count itself uses memory.
        before, start = State.now(), time.perf_counter()
        run(WARM + 1, reloads)
        seconds = (time.perf_counter() - start) / reloads
        memory, *counts = State.now().since(before)
    numbers = "".join(f"{count:9,}" for count in counts)
    print(f"{name:10}{memory / 2**20:9.2f}{numbers}{seconds * 1e3:9.2f}")


TITLES = ["MiB", "blocks", "objects", "threads", "handles", "modules", "lines", "caches", "classes"]


def main() -> None:
    """Print a table."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--here"]:
        measure(arguments[1], int(arguments[2]))
        return
    reloads = int(arguments[0]) if arguments else RELOADS
    print(f"growth by {reloads:,} reloads")
    print(f"{'':10}" + "".join(f"{title:>9}" for title in [*TITLES, "ms each"]), flush=True)
    for name in arguments[1:] or VARIANTS:
        command = [sys.executable, __file__, "--here", name, str(reloads)]
        subprocess.run(command, check=True)  # noqa: S603 - itself


if __name__ == "__main__":
    main()
