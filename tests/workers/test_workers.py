import asyncio
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import venv
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from satchel import (
    IsolatedToolError,
    Limits,
    Satchel,
    Settings,
    ToolCall,
    ToolContext,
    ToolError,
)
from satchel.catalog.catalog_entries import Status
from satchel.contracts.contract_description import contract_json
from satchel.runtime.call_task import prepare_call

pytestmark = pytest.mark.usefixtures("quick_starts")
fresh = pytest.mark.usefixtures("fresh_starts")

ENOUGH = 120
"""Seconds after which a test gives up; nothing waits that long that goes well."""

MANIFEST = "name: demo\nactive: true\nnotes: Mind.\ngroups: {more: {}}\nisolation: process\n"
TOOLS = '''
import os
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from satchel import ToolError, tool

VERSION = 1


@tool
def pid() -> int:
    """Tell the process."""
    return os.getpid()


@tool
def version() -> int:
    """Tell the version."""
    return VERSION


@tool(group="more", timeout=7, idempotent=True, examples=[{"name": "you", "how": "loud"}])
def greet(name: str, times: int = 2, how: Literal["loud", "soft"] = "soft") -> dict:
    """Greet.

    Args:
        name: Whom.
    """
    print("noise")
    if name == "nobody":
        raise ToolError("Name somebody.")
    return {"text": f"Hello {name}" * times}


@tool
def die() -> None:
    """End the process."""
    os._exit(3)
'''


@pytest.fixture
def plugin(tmp_path):
    """Write a plugin, and return its folder."""

    def write(tools=TOOLS, manifest=MANIFEST, **files):
        folder = tmp_path / "plugins" / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toolkit.yaml").write_text(manifest)
        (folder / "tools.py").write_text(tools)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        return folder

    return write


@pytest.fixture
def carried(tmp_path):
    """Carry the plugin; all is closed in the end."""
    created = []

    def make(limits=None, **options):
        settings = Settings(limits=limits or Limits(), config_folder=str(tmp_path / "config"))
        created.append(Satchel(plugins=[tmp_path / "plugins"], settings=settings, **options))
        return created[-1]

    yield make
    for app in created:
        app.close()


def called(app, name, /, **arguments):
    session = app.session()
    for group in app.catalog.tools[name].groups:
        session.activate(group)
    return asyncio.run(session.call(name, arguments))


def codes(app):
    result = (item.code for item in app.catalog.diagnostics)
    return [code for code in result if code not in {"plugin-not-enabled", "tool-undescribed"}]


def ended(process, within=ENOUGH):
    """Tell whether a process that nobody here started ends in time."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within)[0])
    finally:
        os.close(handle)


def until(app, name):
    """Look again until something is true."""
    end = time.monotonic() + ENOUGH
    while not name():
        assert time.monotonic() < end, codes(app)
        app.refresh()


@fresh
def test_a_plugin_that_asks_for_it_runs_in_a_process_of_its_own(plugin, carried):
    plugin()
    app = carried()
    process = called(app, "pid").structured
    assert process not in {os.getpid(), None}
    assert called(app, "pid").structured == process
    for odd in ("\ud800", object(), float("nan")):
        assert called(app, "greet", name=odd).is_error
    assert called(app, "pid").structured == process
    assert codes(app) == []
    assert app.catalog.plugins["demo"].state is Status.OK


def test_its_tools_are_what_they_would_be_in_this_process(plugin, carried):
    folder = plugin()
    apart = carried()
    plugin(manifest=MANIFEST.replace("process", "none"))
    here = carried()
    assert folder.exists()
    for name in here.catalog.tools:
        one, other = apart.catalog.tools[name], here.catalog.tools[name]
        assert (one.name, one.description, one.groups, one.path) == (
            other.name,
            other.description,
            other.groups,
            other.path,
        )
        for part in ("parameters", "output", "annotations", "examples", "timeout", "idempotent"):
            assert getattr(one.tool, part) == getattr(other.tool, part)
        assert one.version == other.version
    assert apart.session().prompt() == here.session().prompt()
    for dialect in ("openai", "mcp", "anthropic"):
        assert apart.session().schemas(dialect) == here.session().schemas(dialect)


def test_its_calls_answer_as_they_would_in_this_process(plugin, carried):
    plugin()
    apart = carried()
    plugin(manifest=MANIFEST.replace("process", "none"))
    here = carried()
    for arguments in (
        {"name": "you"},
        {"name": "you", "times": "3"},
        {"name": "nobody"},
        {"name": "you", "how": "wild"},
        {},
        {"name": "you", "other": 1},
    ):
        result, expected = (called(app, "greet", **arguments) for app in (apart, here))
        for field in ("text", "structured", "is_error", "error_code", "metadata"):
            assert getattr(result, field) == getattr(expected, field), arguments


@fresh
def test_no_file_of_the_current_folder_takes_the_place_of_a_module(
    plugin, carried, tmp_path, monkeypatch
):
    (tmp_path / "json.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    plugin()
    assert called(carried(), "version").structured == 1


@fresh
def test_its_values_reach_it_and_no_list_of_processes_shows_them(plugin, carried, tmp_path):
    plugin(
        "import os\n"
        "from satchel import tool\n\n"
        '@tool(state=["api_key"])\n'
        "def key(api_key: str) -> list:\n"
        '    """Tell the key."""\n'
        "    return [api_key, os.getpid()]\n"
    )
    app = carried(config={"demo": {"api_key": "s3cret-value"}})
    value, process = called(app, "key").structured
    assert value == "s3cret-value"
    assert "api_key" not in str(app.session().schemas())
    for name in ("cmdline", "environ"):
        assert b"s3cret" not in Path(f"/proc/{process}/{name}").read_bytes()
    assert "s3cret" not in repr(app.catalog.plugins["demo"])


@pytest.mark.slow
def test_another_value_is_another_process(plugin, carried, tmp_path):
    plugin(
        "from satchel import tool\n\n"
        '@tool(state=["key"])\n'
        'def tell(key: str) -> str:\n    """Tell."""\n    return key\n'
    )
    app = carried()
    assert "tell" not in app.catalog.tools
    assert "tool-state-missing" in codes(app)
    env = tmp_path / "config" / "plugins" / "demo.env"
    env.parent.mkdir(parents=True)
    for value in ("one", "two"):
        env.write_text(f"KEY={value}\n")
        app.refresh()
        assert called(app, "tell").text == value


def test_one_that_dies_comes_back_by_itself(plugin, carried):
    plugin()
    app = carried()
    before = called(app, "pid").structured
    assert called(app, "die").is_error
    after = called(app, "pid").structured
    assert after not in {before, None}
    until(app, lambda: codes(app) == [])


def test_while_it_is_down_that_is_reported_and_its_calls_wait(plugin, carried, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    first = tmp_path / "first"
    first.touch()
    # The first one starts at once, the second once somebody opens the gate.
    plugin(
        TOOLS
        + f"first = Path({str(first)!r})\nif first.exists():\n    first.unlink()\n"
        + f"else:\n    open({str(gate)!r}).close()\n"
    )
    app = carried()
    assert called(app, "die").is_error
    until(app, lambda: "plugin-worker-down" in codes(app))
    assert "pid" in app.catalog.tools

    async def wait():
        session = app.session()
        call = asyncio.create_task(session.call("pid", {}))
        await asyncio.to_thread(lambda: open(gate, "w").close())
        return await call

    assert not asyncio.run(wait()).is_error
    until(app, lambda: codes(app) == [])


SLOW = (
    TOOLS
    + '''

@tool
async def hold(started: str, gate: str) -> int:
    """Wait at a gate."""
    import asyncio

    await asyncio.to_thread(lambda: open(started, "w").close())
    await asyncio.to_thread(lambda: open(gate).close())
    return VERSION
'''
)


def test_a_call_ends_on_the_process_that_it_began_on_and_then_that_ends(plugin, carried, tmp_path):
    started, gate = tmp_path / "started", tmp_path / "gate"
    os.mkfifo(started)
    os.mkfifo(gate)
    plugin(SLOW)
    app = carried(Limits(drain=0.1))  # for what was removed, and not for what somebody uses
    old = called(app, "pid").structured

    async def reload():
        call = asyncio.create_task(
            app.session().call("hold", {"started": str(started), "gate": str(gate)})
        )
        await asyncio.to_thread(lambda: open(started).close())
        plugin(SLOW.replace("VERSION = 1", "VERSION = 2"))
        await asyncio.to_thread(app.refresh)
        now = await app.session().call("version", {})
        assert now.structured == 2
        assert (await app.session().call("pid", {})).structured != old
        assert not (await asyncio.wait([call], timeout=0.5))[0]
        await asyncio.to_thread(lambda: open(gate, "w").close())
        return (await call).structured

    assert asyncio.run(reload()) == 1
    assert ended(old)


def test_a_call_that_is_interrupted_ends_there_too(plugin, carried, tmp_path):
    started, ended_there = tmp_path / "started", tmp_path / "ended"
    os.mkfifo(started)
    os.mkfifo(ended_there)
    plugin(
        TOOLS
        + "\nimport asyncio\n\n@tool\nasync def hang() -> None:\n"
        + '    """Hang."""\n    try:\n'
        + f"        await asyncio.to_thread(lambda: open({str(started)!r}, 'w').close())\n"
        + "        await asyncio.Event().wait()\n    finally:\n"
        + f"        open({str(ended_there)!r}, 'w').close()\n"
    )
    app = carried()

    async def interrupt():
        call = asyncio.create_task(app.session().call("hang", {}))
        await asyncio.to_thread(lambda: open(started).close())
        call.cancel()
        await asyncio.wait([call])
        await asyncio.to_thread(lambda: open(ended_there).close())

    asyncio.run(asyncio.wait_for(interrupt(), ENOUGH))
    assert called(app, "version").structured == 1


@pytest.mark.slow
def test_a_watch_swaps_it_while_everything_continues(plugin, carried):
    plugin()
    app = carried()

    async def edit():
        async with app.watch() as changes:
            plugin(TOOLS.replace("VERSION = 1", "VERSION = 2"))
            answers = []
            async for change in changes:
                answers.append((await app.session().call("version", {})).structured)
                if change.name == "demo":
                    break
            return answers[-1]

    assert asyncio.run(asyncio.wait_for(edit(), ENOUGH)) == 2


@pytest.mark.slow
def test_a_broken_edit_leaves_the_old_process_even_when_that_dies(plugin, carried):
    plugin()
    app = carried()
    old = called(app, "pid").structured
    plugin(TOOLS.replace("VERSION = 1", "VERSION = 1 / 0"))
    app.refresh()
    assert app.catalog.plugins["demo"].state is Status.STALE
    assert "plugin-import-failed" in codes(app)
    assert called(app, "pid").structured == old
    os.kill(old, signal.SIGKILL)
    assert ended(old)
    until(app, lambda: not called(app, "version").is_error)
    assert called(app, "version").structured == 1
    plugin(TOOLS.replace("VERSION = 1", "VERSION = 3"))
    app.refresh()
    assert called(app, "version").structured == 3
    assert codes(app) == []


@pytest.mark.slow
def test_a_broken_edit_that_ends_its_process_is_reported_with_its_reason(plugin, carried):
    plugin()
    app = carried()
    old = called(app, "pid").structured
    plugin("import os, sys\nsys.stderr.write('no licence')\nos._exit(4)\n" + TOOLS)
    for _ in range(2):
        app.refresh()
        assert app.catalog.plugins["demo"].state is Status.STALE
        (messages,) = (i for i in app.catalog.diagnostics if i.code == "plugin-worker-down")
        assert "no licence" in messages.message
    assert called(app, "pid").structured == old
    os.kill(old, signal.SIGKILL)
    until(app, lambda: called(app, "pid").structured not in {old, None})
    until(app, lambda: codes(app).count("plugin-worker-down") == 1)
    plugin()
    app.refresh()
    assert codes(app) == []


def test_one_that_cannot_run_at_all_is_reported(plugin, carried):
    plugin("import os\nos._exit(3)\n")
    app = carried()
    assert codes(app) == ["plugin-worker-down"]
    states = {entry.name: entry.state for entry in app.catalog.all_plugins}
    assert states["demo"] is Status.FAILED


@fresh
def test_what_it_takes_more_than_its_memory_harms_nothing_else(plugin, carried):
    plugin(
        TOOLS
        + '\n@tool\ndef fill(size: int) -> int:\n    """Fill."""\n    return len(bytearray(size))\n'
    )
    app = carried(Limits(worker_memory=512 * 1024 * 1024))
    assert called(app, "fill", size=1024).structured == 1024
    before = called(app, "pid").structured
    assert called(app, "fill", size=1024 * 1024 * 1024).is_error
    assert called(app, "pid").structured == before


def test_closing_ends_it_and_it_shuts_down(plugin, carried, tmp_path):
    done = tmp_path / "done"
    plugin(
        TOOLS
        + "\nimport satchel\n\n@satchel.hookimpl\ndef satchel_startup(config):\n    pass\n\n"
        + f"@satchel.hookimpl\ndef satchel_shutdown():\n    Path({str(done)!r}).touch()\n"
    )
    app = carried()
    process = called(app, "pid").structured
    app.close()
    assert ended(process)
    assert done.exists()


MANY = """
import asyncio
import os
import subprocess
import sys

import satchel
from satchel import Image, Text, ToolContext, ToolError, ToolResult, tool


@tool
async def counts(to: int):
    "Count."
    for number in range(to):
        yield f"  {number}\\n"


@tool
async def breaks(at: int):
    "Break."
    for number in range(at):
        yield f"{number} "
    raise ToolError("Broken.")


@tool
def structured() -> dict:
    "Tell."
    return {"a": [1, 2.5, None, True], "b": {"c": "\u00e9"}}


@tool
def pictures() -> list:
    "Show."
    return ["Look:", Image(b"PNG"), Text("there")]


@tool
def whole() -> ToolResult:
    "Tell all."
    told = (Text("done"),)
    return ToolResult(content=told, structured={"x": 1}, is_error=True, error_code="busy",
        metadata={"a": {"b": [1]}})


@tool
def long() -> str:
    "Tell much."
    return "word " * 200_000


@tool
def fails() -> None:
    "Fail."
    raise ValueError("secret")


@tool
def noisy() -> str:
    "Be noisy."
    print("noise")
    sys.stderr.write("noise")
    os.write(1, b"{noise\\n")
    subprocess.run([sys.executable, "-c", "print('noise'); input()"], check=False)
    return "quiet"


@tool
def counted(context: ToolContext) -> list:
    "Count in the state."
    context.state.setdefault("seen", []).append(1)
    context.state.pop("old", None)
    told = context.get_metadata("user"), context.tool, context.call_id
    return [len(context.state["seen"]), *told]


@tool
async def scattered():
    "Tell of everything."
    yield Text("a")
    yield {"n": 1}
    yield {"n": 2}
    yield Image(b"x")


@satchel.hookimpl
def satchel_middleware():
    async def shout(call, next):
        async for item in next(call):
            yield item
        if call.name == "structured":
            yield ToolResult(content=(Text("LOUD"),))

    return [shout]
"""

CALLS = [
    ("counts", {"to": 5}),
    ("counts", {"to": 0}),
    ("breaks", {"at": 3}),
    ("structured", {}),
    ("pictures", {}),
    ("whole", {}),
    ("long", {}),
    ("noisy", {}),
    ("counted", {}),
    ("counted", {}),
    ("scattered", {}),
    ("counts", {"to": "many"}),
]


async def reported(app):
    """Return all that calls tell, and what is in the state then."""
    session, items = app.session(), []
    session.state["old"] = 1
    for name, arguments in CALLS:
        context = ToolContext(metadata={"user": "you", "object": object()})
        stream = session.stream(name, arguments, call_id=f"c{len(items)}", context=context)
        items.append([item async for item in stream])
    return items, dict(session.state)


def test_all_that_its_tools_answer_is_what_they_would_answer_in_this_process(plugin, carried):
    plugin(MANY)
    apart = carried()
    process = apart.catalog.plugins["demo"].contribution.code
    items, state = asyncio.run(reported(apart))
    plugin(MANY, MANIFEST.replace("process", "none"))
    expected, expected_state = asyncio.run(reported(carried()))
    for mine, own in zip(items, expected, strict=True):
        assert mine == own
    assert state == expected_state == {"seen": [1, 1]}
    assert called(apart, "fails").error_code == "tool_failed"
    assert process.outage is None


def test_chunks_come_while_the_tool_continues(plugin, carried, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    plugin(
        "from satchel import tool\n\n@tool\nasync def steps():\n"
        "    'Go step by step.'\n    import asyncio\n    yield 'first'\n"
        f"    await asyncio.to_thread(lambda: open({str(gate)!r}).close())\n    yield 'last'\n"
    )
    app = carried()

    async def follow():
        seen = []
        async for item in app.session().stream("steps", {}):
            seen.append(item.text)
            if len(seen) == 1:
                await asyncio.to_thread(lambda: open(gate, "w").close())
        return seen

    assert asyncio.run(asyncio.wait_for(follow(), ENOUGH)) == ["first", "last", "firstlast"]


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples"


def test_a_contract_holds_as_it_would_in_this_process(plugin, carried):
    contracts = (EXAMPLE / "retrieval" / "contracts.py").read_text()
    files = {"contracts": re.sub(r"(?ms)^    invariants=\(.*?^    \),\n", "", contracts)}
    tools = (EXAMPLE / "retrieval" / "tools.py").read_text()
    manifest = (EXAMPLE / "retrieval" / "toolkit.yaml").read_text()
    manifest = manifest.replace("name: retrieval", "name: demo")
    plans = json.loads((EXAMPLE / "plans.json").read_text())

    async def run(app):
        outcomes = []
        for config in ({}, {"limit": "1"}):
            for plan in plans.values():
                session = app.session()
                session.state["library"] = "handbook"
                calls = [ToolCall(**call) for call in plan]
                results = await session.execute(calls, context=ToolContext(config=config))
                outcomes.append([(one.text, one.error_code) for one in results])
                outcomes.append((dict(session.state), session.prompt()))
        call = ToolCall(name="retrieve", arguments={"query": "tide"})
        (refused,) = await app.session().execute([call], context=ToolContext(config={"limit": "x"}))
        assert refused.is_error
        session = app.session()
        return outcomes, session.tool_guide(), session.schemas(), app.catalog.tools["retrieve"]

    plugin(tools, f"{manifest}\nisolation: process\n", **files)
    apart = carried()
    assert codes(apart) == []
    *mine, tool = asyncio.run(run(apart))
    plugin(tools, manifest, **files)
    *own, same = asyncio.run(run(carried()))
    assert mine == own
    assert tool.version == same.version
    encoded, expected = contract_json(tool.contract), contract_json(same.contract)
    expected["config"][0]["normalized"] = False  # its normalizer stays in the process
    assert encoded == expected


RULED = """
import satchel
from satchel import ToolConfigParam, ToolContract, ToolInvariant, tool

KINDS = {"x": "int - a number"}


@tool
def ruled(x: int) -> int:
    "Tell."
    return x


@tool
def odd(x: int, part=None) -> int:
    "Tell."
    return x


@tool
def free(x: int) -> int:
    "Tell."
    return x


@satchel.hookimpl
def satchel_contracts():
    rule = ToolInvariant(id="rule", rule="Keep it.", check=lambda call, state, config: True)
    odd = ToolConfigParam("part", default={1})
    return [
        ToolContract(name="ruled", schema=KINDS, description="Told.", invariants=[rule]),
        ToolContract(name="odd", schema=KINDS, description="Odd.", config_params=[odd]),
        ToolContract(name="free", schema=KINDS, description="Free."),
    ]
"""


def test_a_tool_whose_contract_cannot_cross_is_left_out(plugin, carried):
    plugin(RULED)
    app = carried()
    assert list(app.catalog.tools) == ["free"]
    messages = [item for item in app.catalog.diagnostics if item.code == "plugin-not-isolated"]
    assert ["its rule 'rule' is a function" in item.message for item in messages] == [True, False]
    assert "default of 'part'" in messages[1].message
    assert called(app, "free", x=3).structured == 3
    assert called(app, "free", x="many").error_code == "invalid_arguments"


PROVIDING = """
import satchel
from satchel import tool


class Nothing:
    name, watch = "nothing", ()

    def contribute(self, last, changed):
        return satchel.Contribution()


@tool
def free(x: int) -> int:
    "Tell."
    return x


@satchel.hookimpl
def satchel_providers():
    return [Nothing()]
"""


def test_a_provider_of_an_isolated_plugin_is_reported(plugin, carried):
    plugin(PROVIDING)
    app = carried()
    assert list(app.catalog.tools) == ["free"]
    (message,) = (it.message for it in app.catalog.diagnostics if it.code == "plugin-not-isolated")
    assert message == "its providers are left out: they are not supported in a separate process"


def install(site, tools, *, version="1.0"):
    """Install a package with a plugin `acme`, as an installer leaves it."""
    folder = site / "acme"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = MANIFEST.replace("demo", "acme")
    files = {"__init__.py": "", "toolkit.yaml": manifest, "tools.py": tools}
    for name, text in files.items():
        (folder / name).write_text(text)
    # As installers do: a `.pyc` counts as current if second and size of its source match.
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    info = site / f"acme_tools-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: acme-tools\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[satchel.plugins]\nacme = acme\n")
    record = [f"acme/{name},," for name in files]
    (info / "RECORD").write_text("\n".join([*record, f"{info.name}/RECORD,,"]))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Make a folder of packages that the host sees, and no Python of its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.slow
def test_the_plugin_of_a_package_runs_in_a_process_of_its_own_and_is_upgraded(
    site, carried, tmp_path
):
    (tmp_path / "plugins").mkdir()
    install(site, TOOLS)
    app = carried(entry_points=["acme"])
    # The folder of plugins is empty.
    assert (codes(app), sorted(app.catalog.tools)) == (
        ["source-empty"],
        ["die", "greet", "pid", "version"],
    )
    process = called(app, "pid").structured
    assert process != os.getpid()
    assert "acme" not in sys.modules
    install(site, TOOLS.replace("VERSION = 1", "VERSION = 2"), version="1.1")
    app.refresh()
    assert called(app, "version").structured == 2
    assert ended(process)
    assert called(app, "die").is_error
    assert called(app, "version").structured == 2


PATHS = """
import asyncio
import sys

sys.path[:] = sys.argv[3:]
from satchel import Satchel, Settings

with Satchel(plugins=[sys.argv[1]], settings=Settings(config_folder=sys.argv[2])) as app:
    print(asyncio.run(app.session().call("version", {})).text)
"""


@pytest.mark.slow
@fresh
def test_it_finds_satchel_where_the_host_does(plugin, tmp_path):
    plugin()
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    python = bare / ("Scripts" if os.name == "nt" else "bin") / "python"
    folders = [tmp_path / "plugins", tmp_path / "config", *filter(None, sys.path)]
    command = [python, "-c", PATHS, *folders]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


OFFERING = """
import os

import satchel
from satchel import McpPrompt, McpResource, tool


@satchel.hookimpl
def satchel_config_fields():
    return [satchel.ConfigField(name="word", type="secret")]


@satchel.hookimpl
def satchel_startup(config):
    global WORD
    WORD = config["word"]


@tool(state=["word"])
def tell(word: str) -> list:
    "Tell."
    return [word, WORD, sorted(key for key in os.environ if key.startswith("SATCHEL_"))]


def review(topic: str, depth: int = 1):
    "Review something."
    return f"Review {topic}, {depth} deep."


def note(day: str):
    "Read a note."
    return f"{day}: sun"


@satchel.hookimpl
def satchel_mcp():
    return [
        McpPrompt(review, complete=lambda argument, begun: [f"{argument}-{begun}"]),
        McpResource("notes://{day}", note, mime_type="text/plain"),
    ]
"""


@pytest.mark.slow
def test_what_its_hooks_declare_and_offer_reaches_it_and_is_served(
    plugin, carried, tmp_path, monkeypatch
):
    plugin(OFFERING)
    app = carried()
    assert app.catalog.tools == {}
    assert "s3cret" not in str(app.catalog.diagnostics)
    monkeypatch.setenv("SATCHEL_DEMO_WORD", "s3cret-word")
    monkeypatch.setenv("SATCHEL_OTHER_WORD", "of another")
    app.refresh()
    assert codes(app) == []
    assert called(app, "tell").structured == ["s3cret-word", "s3cret-word", []]
    prompt, resource = app.catalog.plugins["demo"].contribution.offers
    assert (prompt.name, prompt.tool.description) == ("review", "Review something.")
    assert prompt.complete("topic", "t") == ["topic-t"]
    asked = ToolCall(name="review", arguments={"topic": "tides", "depth": "2"}, tool=prompt.tool)
    assert (
        asyncio.run(prepare_call(asked, prompt.tool, Limits()).result()).text
        == "Review tides, 2 deep."
    )
    incomplete = ToolCall(name="review", arguments={})
    bad = asyncio.run(prepare_call(incomplete, prompt.tool, Limits()).result())
    assert bad.error_code == "invalid_arguments"
    assert (resource.mime_type, resource.match("notes://today")) == ("text/plain", {"day": "today"})
    read = ToolCall(name="note", arguments={"day": "today"}, tool=resource.tool)
    assert asyncio.run(prepare_call(read, resource.tool, Limits()).result()).text == "today: sun"


MARKING = """
import asyncio
from contextlib import aclosing
from pathlib import Path

from satchel import tool

VERSION = 0


@tool
async def mark(number: int, log: str) -> list:
    "Write a number down, once."
    with open(log, "a") as file:
        file.write(f"{number}\\n")
    await asyncio.sleep(number % 7 / 50)
    return [number, VERSION]
"""

EDITS = 20


@pytest.mark.slow
def test_no_call_is_lost_and_none_runs_twice_while_the_plugin_is_edited_again_and_again(
    plugin, carried, tmp_path
):
    log = tmp_path / "log"
    plugin(MARKING)
    app = carried()
    numbers, answers, edited = itertools.count(), {}, asyncio.Event()

    async def call():
        session = app.session()
        while not edited.is_set():
            number = next(numbers)
            answers[number] = await session.call("mark", {"number": number, "log": str(log)})

    async def edit():
        try:
            for version in range(1, EDITS + 1):
                plugin(MARKING.replace("VERSION = 0", f"VERSION = {version}"))
                await asyncio.to_thread(app.refresh)
        finally:
            edited.set()

    async def both():
        await asyncio.gather(edit(), *(call() for _ in range(8)))

    asyncio.run(both())
    assert [one.text for one in answers.values() if one.is_error] == []
    assert all(one.structured[0] == number for number, one in answers.items())
    assert {one.structured[1] for one in answers.values()} >= {0, EDITS - 1}
    assert sorted(map(int, log.read_text().split())) == sorted(answers)
    assert called(app, "mark", number=0, log=str(log)).structured == [0, EDITS]


@pytest.mark.slow
def test_closing_gives_the_shutdown_as_long_as_any_hook(plugin, carried, tmp_path):
    done = tmp_path / "done"
    plugin(
        TOOLS
        + "\nimport time\nimport satchel\n\n@satchel.hookimpl\ndef satchel_startup(config):\n"
        + "    pass\n\n@satchel.hookimpl\ndef satchel_shutdown():\n"
        + f"    time.sleep(3)\n    Path({str(done)!r}).touch()\n"
    )
    carried().close()
    assert done.exists()


@pytest.mark.slow
def test_one_that_dies_in_each_call_is_started_ever_less_often(plugin, carried, tmp_path):
    starts = tmp_path / "starts"
    plugin(TOOLS + f"\nwith open({str(starts)!r}, 'a') as file:\n    file.write('x')\n")
    app = carried(Limits(tool_call=8))
    before = time.monotonic()
    for _ in range(4):
        assert called(app, "die").is_error
    assert len(starts.read_text()) <= 5
    assert time.monotonic() - before > 0.1 / 2 * (1 + 2 + 4)


@pytest.mark.slow
def test_one_that_hangs_is_replaced(plugin, carried):
    plugin(
        TOOLS + "\n@tool(timeout=0.5)\nasync def spin() -> None:\n    'Spin.'\n"
        "    while True:\n        pass\n"
    )
    app = carried(Limits(plugin_import=1, hook=0.5))
    before = called(app, "pid").structured
    assert called(app, "spin").error_code == "timeout"
    assert ended(before)
    until(app, lambda: codes(app) == [])
    assert called(app, "pid").structured not in {before, None}


def test_a_result_that_is_too_large_is_an_error_and_ends_nothing(plugin, carried):
    plugin(
        TOOLS + "\nfrom satchel import ToolContext\n\n@tool\n"
        "def large(size: int) -> dict:\n    'Tell much.'\n"
        "    return {'x': 'x' * size}\n\n@tool\nasync def stream(size: int):\n    'Tell much.'\n"
        "    yield {'x': 'x' * size}\n\n@tool\n"
        "def noted(size: int, context: ToolContext) -> dict:\n    'Tell much.'\n"
        "    context.state['noted'] = True\n    return {'x': 'x' * size}\n"
    )
    app = carried(Limits(mcp_message=1024 * 1024))
    process = called(app, "pid").structured
    assert len(called(app, "large", size=500_000).structured["x"]) == 500_000
    for name in ("large", "stream"):
        result = called(app, name, size=2_000_000)
        assert result.error_code == "invalid_result"
        assert "mcp_message, 1024 KiB" in result.text
    session = app.session()
    assert asyncio.run(session.call("noted", {"size": 2_000_000})).is_error
    assert session.state == {"noted": True}
    assert called(app, "pid").structured == process


def test_a_state_that_is_too_large_to_send_is_an_error_and_ends_nothing(plugin, carried):
    plugin(
        TOOLS + "\nfrom satchel import ToolContext\n\n@tool\n"
        "def fill(context: ToolContext) -> str:\n    'Keep much.'\n"
        "    context.state['x'] = 'x' * 2_000_000\n    return 'ok'\n"
    )
    app = carried(Limits(mcp_message=1024 * 1024))
    process = called(app, "pid").structured
    result = called(app, "fill")
    assert (result.error_code, "state" in result.text) == ("invalid_result", True)
    assert called(app, "pid").structured == process


def test_what_it_prints_and_why_a_tool_failed_stand_in_the_log_of_the_host(plugin, carried, caplog):
    plugin(TOOLS + "\n@tool\ndef broken() -> None:\n    'Break.'\n    raise ValueError('why')\n")
    app = carried()
    called(app, "greet", name="Ada")
    result = called(app, "broken")
    messages = result.text.partition("(id ")[2].partition(")")[0]
    parts = ("demo: noise", f"(id {messages})", "ValueError: why")
    deadline = time.monotonic() + ENOUGH
    while not all(words in caplog.text for words in parts):
        assert time.monotonic() < deadline, caplog.text
        time.sleep(0.02)


def test_what_it_forks_neither_joins_the_talk_nor_holds_it_up(plugin, carried):
    plugin(
        TOOLS + "\n@tool\ndef fork() -> None:\n    'Fork, and die.'\n    import time\n"
        "    if os.fork():\n        os._exit(1)\n    time.sleep(600)\n"
    )
    app = carried()
    before = time.monotonic()
    assert "disconnected during the call" in called(app, "fork").text
    assert time.monotonic() - before < ENOUGH / 2
    assert called(app, "pid").structured is not None


BLOCKING = """
import asyncio
import sys

from satchel import Satchel, Settings

with Satchel(plugins=[sys.argv[1]], settings=Settings(config_folder=sys.argv[2])) as app:
    print(asyncio.run(app.session().call("pid", {})).text, flush=True)
    asyncio.run(app.session().call("spin", {}))
"""


@pytest.mark.slow
@fresh
def test_one_that_hangs_ends_although_its_host_was_killed(plugin, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    plugin(
        TOOLS + "\n@tool\nasync def spin() -> None:\n    'Spin.'\n"
        f"    open({str(gate)!r}, 'w').close()\n    while True:\n        pass\n"
    )
    command = [sys.executable, "-c", BLOCKING, tmp_path / "plugins", tmp_path / "config"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        process = int(host.stdout.readline())
        open(gate).close()
        host.kill()
    assert ended(process)


FORKING = """
import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

from satchel import Satchel, Settings

folder = Path(sys.argv[1])
with Satchel(plugins=[folder], settings=Settings(config_folder=sys.argv[2])) as app:
    print(asyncio.run(app.session().call("version", {})).text)
    sys.stdout.flush()
    if not (child := os.fork()):
        print(asyncio.run(app.session().call("version", {})).text)
        tools = folder / "demo" / "tools.py"
        tools.write_text(tools.read_text().replace("VERSION = 1", "VERSION = 2"))
        app.refresh()
        print([item.message for item in app.catalog.diagnostics])
        sys.exit()
    os.waitpid(child, 0)
    print(asyncio.run(app.session().call("version", {})).text)
"""


@pytest.mark.slow
@fresh
def test_a_host_that_forks_gets_an_error_at_once_and_continues(plugin, tmp_path):
    plugin()
    command = [sys.executable, "-c", FORKING, tmp_path / "plugins", tmp_path / "config"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=ENOUGH, check=True)
    first, in_child, messages, last = ran.stdout.splitlines()
    assert (first, last) == ("1", "1")
    for words in (in_child, messages):
        assert "make a Satchel in each process" in words
    assert ran.stderr == ""


@pytest.mark.slow
@fresh
def test_one_that_leaks_is_reported_and_replaced(plugin, carried):
    plugin(
        TOOLS
        + "\nleaked = []\n\n@tool\ndef leak() -> None:\n    'Leak.'\n"
        + "    while True:\n        leaked.append(bytearray(8_000_000))\n"
    )
    app = carried(Limits(worker_memory=256 * 1024 * 1024))
    before = called(app, "pid").structured
    assert called(app, "leak").is_error
    until(app, lambda: "limit worker_memory" in str(app.catalog.diagnostics))
    assert ended(before)
    assert called(app, "pid").structured not in {before, None}
    until(app, lambda: codes(app) == [])


@pytest.mark.slow
@fresh
def test_one_whose_memory_is_almost_full_outlives_what_its_tools_refuse(plugin, carried):
    plugin(
        TOOLS + "\nheld = []\n\n@tool\ndef hold(part: float) -> int:\n    'Hold.'\n"
        "    import resource\n    from satchel.mcp.worker_main import _used_memory\n"
        "    most = resource.getrlimit(resource.RLIMIT_DATA)[0]\n"
        "    held.append(bytearray(int(most * part) - _used_memory()))\n    return os.getpid()\n"
    )
    app = carried(Limits(worker_memory=512 * 1024 * 1024))
    process = called(app, "hold", part=0.93).structured
    assert process is not None
    assert called(app, "greet", name="nobody").error_code == "tool_error"
    assert called(app, "greet").error_code == "invalid_arguments"
    assert not ended(process, within=2)


def test_what_of_the_state_cannot_be_sent_is_reported(plugin, carried, caplog):
    plugin(
        TOOLS + "\nfrom satchel import ToolContext\n\n@tool\n"
        "def keep(context: ToolContext) -> str:\n    'Keep.'\n"
        "    context.state.update(n=1, odd=object())\n    return 'ok'\n"
    )
    app = carried()
    session = app.session()
    assert asyncio.run(session.call("keep", {})).text == "ok"
    assert session.state == {"n": 1}
    deadline = time.monotonic() + ENOUGH
    while "'odd'" not in caplog.text:
        assert time.monotonic() < deadline, caplog.text
        time.sleep(0.02)


WHEEL = "helper-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Offer a package to install, and have nothing else looked at."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("helper.py", "WORD = 'helped'\n")
        about = "helper-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: helper\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


HELPED = (
    "import helper\nfrom satchel import tool\n\n@tool\n"
    'def word() -> str:\n    """Tell."""\n    return helper.WORD\n'
)


@pytest.mark.slow
@fresh
def test_what_it_depends_on_is_installed_for_it_alone_and_once(plugin, carried, index):
    plugin(HELPED, MANIFEST + "dependencies: [helper>=1]\n")
    assert called(carried(), "word").text == "helped"
    assert find_spec("helper") is None
    (index / WHEEL).unlink()
    assert called(carried(), "word").text == "helped"


@pytest.mark.slow
@fresh
def test_what_cannot_be_installed_is_reported_and_tried_again(plugin, carried, index):
    (index / WHEEL).rename(index / "away")
    plugin(HELPED, MANIFEST + "dependencies: [helper>=1]\n")
    app = carried()
    assert (codes(app), list(app.catalog.tools)) == (["plugin-install-failed"], [])
    (index / "away").rename(index / WHEEL)
    app.refresh()
    assert called(app, "word").text == "helped"


@fresh
def test_its_process_imports_nothing_of_what_only_a_host_does():
    code = "import sys, satchel.mcp.worker_main; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    of_hosts = {"satchel.satchel", "satchel.session", "satchel.loader", "satchel.mcp.call_handler"}
    assert not of_hosts & set(loaded)


def test_reading_it_starts_nothing(plugin, carried):
    plugin(TOOLS + "\nraise SystemExit\n")
    app = carried(run_code=False)
    assert sorted(app.catalog.tools) == ["die", "greet", "pid", "version"]
    assert codes(app) == []


FAILS_IN_THREE_WAYS = """
from satchel import ToolError, tool


class Silent(Exception):
    def __str__(self):
        raise ValueError


@tool(state=["key"])
def fail(how: str, key: str) -> str:
    \"\"\"Fail.\"\"\"
    raise {"key": KeyError(f"no door for {key}"), "tool": ToolError("ask again"),
           "silent": Silent()}[how]
"""


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ("summary", r"tool failed \(id \w+\)"),
        ("message", r"tool failed \(id \w+\): KeyError: 'no door for \[redacted\]'"),
        (lambda name, problem: f"{name} broke: {problem}", r"fail broke: KeyError: 'no door .*'"),
    ],
)
def test_middleware_sees_what_a_tool_of_the_process_raised_and_the_host_chooses_what_is_read(
    plugin, carried, errors, expected
):
    seen = []

    async def watching(call, next):  # noqa: A002
        async with aclosing(next(call)) as items:
            async for item in items:
                seen.append(item.exception)
                yield item

    plugin(FAILS_IN_THREE_WAYS, "name: demo\nactive: true\nisolation: process\n")
    app = carried(config={"demo": {"key": "hunter2-hunter2"}}, errors=errors)
    app.register_middleware(watching)
    results = [called(app, "fail", how=how) for how in ("key", "tool", "silent")]
    assert [(type(item), str(item)) for item in seen] == [
        (IsolatedToolError, "KeyError: 'no door for [redacted]'"),
        (ToolError, "ask again"),
        (IsolatedToolError, "Silent: its text cannot be read"),
    ]
    assert [result.exception for result in results] == [None] * 3
    assert results[0].error_code == "tool_failed"
    assert re.fullmatch(expected, results[0].text), results[0].text
    assert "hunter2" not in str(results)


def test_an_upgrade_of_the_same_second_and_size_runs_the_new_code(site, carried):
    install(site, TOOLS)
    source = site / "acme" / "tools.py"
    os.utime(source, (1_700_000_000, 1_700_000_000))
    app = carried(entry_points=["acme"])
    assert called(app, "version").structured == 1
    install(site, TOOLS.replace("VERSION = 1", "VERSION = 2"), version="1.1")
    os.utime(source, (1_700_000_000, 1_700_000_000))
    app.refresh()
    assert called(app, "version").structured == 2
