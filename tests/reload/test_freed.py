"""Old versions are really freed: of a thousand reloads, one version is left."""

import asyncio
import gc
import json
import subprocess
import sys
from pathlib import Path
from weakref import WeakSet

import pytest

from satchel import Satchel

# All that an author may write, and that caches of Python and of pydantic hold on to.
SOURCE = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Optional
from satchel import Tool, tool
from . import words
import words as same

@dataclass
class Box:
    size: int = 0

@tool
def greet(name: str, box: Optional[Box] = None) -> str:
    """Greet somebody."""
    return f"{words.WORD} {name}"

class Wave(Tool):
    name, description, parameters = "wave", "Waves.", {"type": "object", "properties": {}}

    async def execute(self):
        return words.WORD

wave = Wave()
'''

PROCESS = """
import asyncio, gc, json, os, resource, sys, threading
from pathlib import Path
from weakref import WeakSet
from satchel import Satchel

folder, reloads, leak = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "leak"
versions, kept = WeakSet(), []
app = Satchel(plugins=[folder])
session = app.session()
loop = asyncio.new_event_loop()

def reload(number):
    (folder / "demo" / "words.py").write_text(f"WORD = 'w{number}'\\n")
    app.refresh()
    step = session.step()
    step.prompt()
    assert loop.run_until_complete(step.call("wave")).text == f"w{number}"
    module = sys.modules[type(app.catalog.tools["wave"].tool).__module__]
    for thing in (module, module.words, module.Box, module.Wave, module.greet):
        versions.add(thing)
    if leak:
        kept.append(module.greet)

def state():
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(5)  # The thread that loaded may still be on its way out.
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory": pages * resource.getpagesize(),
        "threads": threading.active_count(),
        "handles": len(os.listdir("/proc/self/fd")),
        "modules": len(sys.modules),
    }

for number in range(100):
    reload(number)
state()
before = state()
for number in range(100, 100 + reloads):
    reload(number)
after = state()
grown = {key: after[key] - before[key] for key in after}
print(json.dumps(grown | {"alive": len(versions)}))
"""

A_VERSION = 5
"""What the process keeps an eye on in each version."""


def grown(tmp_path: Path, write_plugin, reloads: int, *, leak: bool = False) -> dict[str, int]:
    """Reload a small plugin in a process of its own; return what has grown, and what is alive."""
    write_plugin(tmp_path / "plugins", "demo", tools=SOURCE, words="WORD = 'w'\n")
    mode = "leak" if leak else ""
    ended = subprocess.run(
        [sys.executable, "-c", PROCESS, str(tmp_path / "plugins"), str(reloads), mode],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    records: dict[str, int] = json.loads(ended.stdout)
    return records


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks as Linux tells")


@pytest.mark.slow
@needs_proc
def test_a_thousand_reloads_leave_one_version(tmp_path, write_plugin):
    result = grown(tmp_path, write_plugin, 1_000)
    memory = result.pop("memory")
    assert result == {"threads": 0, "handles": 0, "modules": 0, "alive": A_VERSION}
    assert memory < 5 * 1024 * 1024


@pytest.mark.slow
@needs_proc
def test_a_host_that_keeps_a_function_of_each_version_keeps_the_versions(tmp_path, write_plugin):
    """So the test above can fail."""
    result = grown(tmp_path, write_plugin, 20, leak=True)
    assert result["alive"] > 100 * A_VERSION / 2
    assert result["modules"] == 0, "but nobody can import them any more"


@pytest.fixture
def uncollected():
    """Let no cycle be collected meanwhile: what goes, goes because nobody holds it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def names_of(plugin: str) -> set[str]:
    names = {name.partition(".")[0] for name in sys.modules}
    return {name for name in names if name.startswith(f"_satchel_plugin_{plugin}_")}


@pytest.mark.usefixtures("uncollected")
def test_an_old_version_goes_at_once_and_not_with_the_next_collection(tmp_path, write_plugin):
    source = 'from satchel import tool\n@tool\ndef greet() -> str:\n    return "{word}"\n'
    write_plugin(tmp_path, "prompt_end", tools=source.replace("{word}", "first"))
    app = Satchel(plugins=[tmp_path])
    session = app.session()
    for word in ("second", "third"):
        step = session.step()
        assert step.prompt() == ""
        assert step.schemas()
        assert asyncio.run(step.call("no_such_tool")).is_error
        assert not asyncio.run(session.call("greet")).is_error
        write_plugin(tmp_path, "prompt_end", tools=source.replace("{word}", word))
        app.refresh()
        assert len(names_of("prompt_end")) == 2, "a step still holds the old one"
        assert asyncio.run(step.call("greet")).text != word
        del step
        assert len(names_of("prompt_end")) == 1


@pytest.mark.usefixtures("uncollected")
def test_a_version_that_fails_goes_at_once(tmp_path, write_plugin):
    write_plugin(tmp_path, "failing", tools="from . import words\n1 / 0\n", words="")
    for _ in range(3):
        app = Satchel(plugins=[tmp_path])
        assert app.catalog.plugin("failing").state == "failed"
        assert names_of("failing") == set()


def test_what_typing_remembers_holds_no_old_version(tmp_path, write_plugin):
    """Its caches would hold the last hundred and more classes."""
    source = """
        from typing import List, Optional
        from satchel import tool

        class Thing: ...

        KINDS = [Optional[Thing], List[Thing]]

        @tool
        def greet() -> str:
            return "{word}"
    """
    things: WeakSet[type] = WeakSet()
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    for word in ("one", "two", "three"):
        things.add(app.catalog.tools["greet"].tool.fn.__globals__["Thing"])
        write_plugin(tmp_path, "demo", tools=source.replace("{word}", word))
        app.refresh()
        gc.collect()
        assert len(things) == 0
