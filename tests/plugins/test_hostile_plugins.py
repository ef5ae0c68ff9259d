"""Plugins that misbehave, each beside a healthy one in a host of its own."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("quick_starts")

# These end or exhaust the process itself; only a process of their own could hold them.
UNSURVIVABLE = {"segfault", "os-exit", "eats-memory"}

# The plugins that are refused; whatever else misbehaves does so later, or not at all.
REFUSED = {
    "sys-exit": "plugin-import-failed",
    "base-exception": "plugin-import-failed",
    "cancelled": "plugin-import-failed",
    "bad-str": "plugin-import-failed",
    "recursion": "plugin-import-failed",
    "hang-sleep": "plugin-import-timeout",
    "signal": "plugin-import-failed",
}

HOST = """
import asyncio, builtins, gc, json, os, signal, sys, threading
import satchel

def picture():
    return [
        dict(vars(builtins)), sys.modules["json"], sys.modules["satchel"], id(sys.modules),
        [id(item) for item in sys.meta_path if type(item).__name__ != "_SnapshotFinder"],
        sys.stdin, sys.stdout, sys.stderr, sys.excepthook,
        sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), threading.excepthook,
        threading.gettrace(), dict(os.environ), sys.dont_write_bytecode,
    ]

cwd, path, dumps = os.getcwd(), list(sys.path), json.dumps
interrupt = signal.getsignal(signal.SIGINT)
out = os.fdopen(os.dup(1), "w")
satchel.Satchel()
limits = satchel.Limits(plugin_import=1, tool_call=5, cancel_grace=1)
for folder in sys.argv[1:]:
    before = picture()
    app = satchel.Satchel(plugins=[folder], settings=satchel.Settings(limits=limits))
    after = picture()
    session = app.session()
    session.activate("healthy")
    answer = asyncio.run(session.call("hello", {"name": "you"}))
    called = {}
    if "call" in app.catalog.tools:
        session.activate("hostile")
        result = asyncio.run(session.call("call", {}))
        called = {"is_error": result.is_error, "code": result.error_code, "size": len(result.text)}
    hostile = app.catalog.plugin("hostile")
    print("\\n" + dumps({
        "answer": answer.text,
        "state": hostile.state,
        "codes": [item.code for item in hostile.diagnostics if item.code != "plugin-unused"],
        "messages": [str(item) for item in app.catalog.diagnostics],
        "cwd": os.getcwd() == cwd,
        "path": sys.path == path,
        "interrupt": signal.getsignal(signal.SIGINT) is interrupt,
        "json": json.__file__,
        "changed": [at for at, pair in enumerate(zip(before, after)) if pair[0] != pair[1]],
        "called": called,
    }), file=out, flush=True)
"""


@pytest.fixture(scope="module")
def plugins(shared):
    spec = importlib.util.spec_from_file_location("hostile_plugins", shared / "hostile/plugins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PLUGINS


def run(folder, *options, program=HOST, timeout=120):
    """Run a host in a process of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-c", program, str(folder), *map(str, options)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        cwd=folder.parent,
        check=False,
    )


def reported_by(ended):
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture
def host(tmp_path, write_plugin, tool_source):
    def host(source, manifest="active: true\n", **modules):
        write_plugin(tmp_path / "plugins", "healthy", tools=tool_source)
        write_plugin(tmp_path / "plugins", "hostile", manifest, tools=source, **modules)
        return reported_by(run(tmp_path / "plugins"))

    return host


HEALTHY = """
from satchel import hookimpl

def hello(name: str) -> str:
    return "Hello " + name

@hookimpl
def satchel_tools():
    return [hello]
"""


INSTALLED = """
import asyncio, json, os, signal, sys
import satchel
from satchel.loader import plugin_loader
plugin_loader._PATIENCE = 60  # On a busy machine, too, each is imported alone.
interrupt = signal.getsignal(signal.SIGINT)
cwd, path = os.getcwd(), [sys.argv[1], *sys.path]
sys.path.insert(0, sys.argv[1])
out, dumps = os.fdopen(os.dup(1), "w"), json.dumps
limits = satchel.Limits(plugin_import=1)
app = satchel.Satchel(entry_points="all", settings=satchel.Settings(limits=limits))
session = app.session()
session.activate("healthy")
answer = asyncio.run(session.call("hello", {"name": "you"}))
found = {
    item.name: [str(item.state), [problem.code for problem in item.diagnostics]]
    for item in app.catalog.all_plugins
}
kept = os.getcwd() == cwd, sys.path == path
kept = *kept, signal.getsignal(signal.SIGINT) is interrupt
print("\\n" + dumps([answer.text, kept, found]), file=out, flush=True)
"""


NAMES = [
    "base-exception",
    "bad-str",
    "call-swallows-cancel",
    "call-sys-exit",
    "cancelled",
    "chdir",
    "evil-eq",
    "evil-schema",
    "hang-import-lock",
    "hang-sleep",
    "logging-reconfig",
    "recursion",
    "returns-100mb",
    "returns-cycle",
    "same-tool-name",
    "shadow-stdlib-file",
    "signal",
    "stdout-fd",
    "sys-exit",
    "syspath-clear",
    "thread-nondaemon",
]


def test_every_hostile_plugin_that_can_be_survived_is_tried(plugins):
    assert set(plugins) - UNSURVIVABLE == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_healthy_neighbour_serves_and_the_host_lives(plugins, host, name):
    modules = {"json": "raise SystemExit"} if name == "shadow-stdlib-file" else {}
    message = host(plugins[name][0], **modules)
    assert message["answer"] == "Hello you"
    assert (message["cwd"], message["path"], message["interrupt"]) == (True, True, True)
    assert "plugins" not in message["json"]
    if name in REFUSED:
        assert (message["state"], message["codes"]) == ("failed", [REFUSED[name]])
    else:
        assert message["state"] == "ok"
    if name in {"chdir", "syspath-clear"}:
        assert message["codes"] == ["plugin-meddled"]


def install(site, name, source):
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    module = f"hostile_{name.replace('-', '_')}"
    (site / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[satchel.plugins]\n{name} = {module}\n")
    (info / "RECORD").write_text(f"{module}.py,,\n")


def test_installed_plugins_are_held_in_the_same_way(plugins, tmp_path):
    """All beside each other in one host, and one that is healthy."""
    install(tmp_path / "site", "healthy", HEALTHY)
    for name in NAMES:
        install(tmp_path / "site", name, plugins[name][0])
    answer, kept, item = reported_by(run(tmp_path / "site", program=INSTALLED))
    assert (answer, kept) == ("Hello you", [True, True, True])
    for name in NAMES:
        state, codes = item[name]
        if name in REFUSED:
            assert (name, state, codes) == (name, "failed", [REFUSED[name]])
        elif name in {"chdir", "syspath-clear"}:
            assert (name, state, codes) == (name, "ok", ["plugin-meddled"])
        else:
            assert (name, state) == (name, "ok")


@pytest.mark.parametrize(
    ("name", "is_error", "code"),
    [
        ("returns-cycle", True, "invalid_result"),
        ("returns-100mb", False, None),
        ("call-swallows-cancel", True, "timeout"),
        ("call-sys-exit", True, "tool_failed"),
    ],
)
def test_what_misbehaves_when_it_is_called_ends_its_own_call(plugins, host, name, is_error, code):
    message = host(plugins[name][0], "active: true\ntools:\n  - function: call\n")
    assert message["answer"] == "Hello you"
    assert (message["called"]["is_error"], message["called"]["code"]) == (is_error, code)
    assert message["called"]["size"] < 1_000_000


# What else such plugins might do: their sources, what becomes of them, and what is told to be put
# back. Whatever it is, the host is as it was before.
EVIL = "class E:\n __class__ = property(lambda s: 1/0)\n def __eq__(s, o): 1/0\n"
MORE = {
    "replaces-itself": (
        f"import sys\n{EVIL} __getattribute__ = sys.exit\nsys.modules[__name__] = E()\n",
        "failed",
        (),
    ),
    "deletes-itself": ("import sys\ndel sys.modules[__name__]\n", "failed", ()),
    "evil-modules": (
        f"import sys\n{EVIL}sys.modules['stray'] = E()\nsys.modules['json'] = E()\n",
        "ok",
        ("the module 'json'", "the module 'stray'"),
    ),
    "modules-cleared": ("import sys\nsys.modules.clear()\n", "failed", ()),
    "modules-replaced": ("import sys\nsys.modules = {}\n", "failed", ()),
    "modules-deleted": ("import sys, json\ndel sys.modules['json']\n", "ok", ("sys.modules",)),
    "import-hook": (
        f"import sys\n{EVIL} find_spec = sys.exit\nsys.meta_path.insert(0, E())\n",
        "ok",
        ("sys.meta_path",),
    ),
    "no-finders": ("import sys\ndel sys.meta_path\n", "ok", ("sys.meta_path",)),
    "odd-path": (
        "import sys\nclass S(str):\n __eq__, __hash__ = sys.exit, 0\nsys.path.append(S('/x'))\n",
        "ok",
        ("sys.path",),
    ),
    "own-import": (
        "import builtins\nbuiltins.__import__ = lambda *a, **k: 1/0\n",
        "ok",
        ("the built-in '__import__'",),
    ),
    "no-print": ("import builtins\ndel builtins.print\n", "ok", ("the built-in 'print'",)),
    "recursion-limit": (
        "import sys\nsys.setrecursionlimit(99)\n",
        "ok",
        ("the recursion limit",),
    ),
    "trace": (
        "import threading\ndef t(*a): raise SystemExit\nthreading.settrace(t)\n",
        "ok",
        ("threading.settrace",),
    ),
    "excepthooks": (
        "import sys, threading\nthreading.excepthook = sys.excepthook = lambda *a: 1/0\n",
        "ok",
        ("sys.excepthook", "threading.excepthook"),
    ),
    "no-stdout": ("import sys\nsys.stdout = None\n", "ok", ("sys.stdout",)),
    "no-environment": ("import os\nos.environ.clear()\n", "ok", ("the environment",)),
    "no-collector": ("import gc\ngc.disable()\n", "ok", ("the collection of garbage",)),
    "own-loop": ("import asyncio\nasync def f(): ...\nasyncio.run(f())\n", "ok", ()),
    "evil-getattr": ("def __getattr__(n): raise SystemExit(n)\n__all__ = 7\n", "ok", ()),
    "much-output": ("print('x' * 1_000_000)\n", "ok", ()),
    "asks": ("input('? ')\n", "failed", ()),
    "forks": (
        "import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\n",
        "ok",
        (),
    ),
    "thread-exits": (
        "import sys, threading\nt = threading.Thread(target=sys.exit)\nt.start()\nt.join()\n",
        "ok",
        (),
    ),
    "interrupts-itself": ("raise KeyboardInterrupt\n", "failed", ()),
    "at-exit": ("import atexit\natexit.register(lambda: 1/0)\n", "ok", ()),
}


def test_what_else_they_do_is_put_back_and_reported(tmp_path, write_plugin, tool_source):
    """One after the other in one host, so what is left of one would meet the next."""
    folders = [tmp_path / name for name in MORE]
    for folder in folders:
        write_plugin(folder, "healthy", tools=tool_source)
        write_plugin(folder, "hostile", tools=MORE[folder.name][0])
    ended = run(*folders, timeout=120)
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"answer"')]
    for (name, (_, state, put_back)), line in zip(MORE.items(), lines, strict=True):
        reported = json.loads(line)
        assert (name, reported["answer"], reported["changed"]) == (name, "Hello you", [])
        assert (name, reported["state"]) == (name, state)
        assert (reported["cwd"], reported["path"], reported["interrupt"]) == (True, True, True)
        messages = "".join(message for message in reported["messages"] if "hostile" in message)
        for change in put_back:
            assert f"loading it changed {change}; the change was reverted" in messages


WATCHING = """
import asyncio, json, os, sys, threading
import satchel
folder, wanted = os.path.join(sys.argv[1], "demo"), json.loads(sys.argv[2])
out = os.fdopen(os.dup(1), "w")
dumps, session = json.dumps, None
GOOD = "from satchel import tool\\n@tool\\ndef greet() -> str:\\n    return {word!r}\\n"
limits = satchel.Limits(plugin_import=1)
pace = satchel.WatchTimings(
    heartbeat=0.05, settle=0.1, quiet=0.05, safety_scan_active=0.5, poll=0.1
)
news = threading.Event()

def write(text):
    with open(folder + "/aside", "w") as file:
        file.write(text)
    os.replace(folder + "/aside", folder + "/tools.py")

def until(expected):
    # The time is only waited out when something is wrong.
    for _ in range(2000):
        if expected():
            return True
        news.wait(0.05)
        news.clear()
    return False

def say():
    found = asyncio.run(app.session().call("greet"))
    return None if found.is_error else found.text

def state():
    return str(app.catalog.plugin("demo").state)

with satchel.Satchel.watching(app := satchel.Satchel(
    plugins=[sys.argv[1]], settings=satchel.Settings(limits=limits, pace=pace)
)):
    app.subscribe(lambda change: news.set())
    told = {}
    for name, source in wanted.items():
        write(GOOD.format(word=name))
        good = until(lambda: say() == name and state() == "ok")
        write(source + f"\\n# {name}\\n")
        moved = until(lambda: state() == "stale" or say() is None)
        told[name] = [good, moved, state(), say()]
    write(GOOD.format(word="the end"))
    told["the end"] = [until(lambda: say() == "the end"), True, state(), say()]
print("\\n" + dumps(told), file=out, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_under_watch_the_last_good_serves_until_each_is_fixed(plugins, tmp_path, write_plugin):
    """A good plugin is edited into each hostile one, and back."""
    write_plugin(tmp_path / "plugins", "demo", tools="")
    sources = {name: plugins[name][0] for name in NAMES}
    sources |= {name: MORE[name][0] for name in MORE}
    ended = run(tmp_path / "plugins", json.dumps(sources), program=WATCHING, timeout=120)
    messages = reported_by(ended)
    assert messages.pop("the end") == [True, True, "ok", "the end"]
    failing = {*REFUSED, *(name for name, (_, state, _) in MORE.items() if state == "failed")}
    expected = {
        name: [True, True, "stale", name] if name in failing else [True, True, "ok", None]
        for name in sources
    }
    assert messages == expected


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("import os\nos._exit(7)\n", "`os._exit`"),
        ("import ctypes\nctypes.string_at(0)\n", "A crash of the interpreter"),
        ("import _thread\n_thread.interrupt_main()\n", "`interrupt_main`"),
    ],
    ids=["os-exit", "segfault", "interrupt-main"],
)
def test_what_no_process_survives_is_named_in_the_documentation(
    tmp_path, write_plugin, source, named
):
    write_plugin(tmp_path / "plugins", "hostile", tools=source)
    assert run(tmp_path / "plugins").returncode != 0
    page = Path(__file__).parents[2] / "docs" / "reference" / "plugin-format.md"
    _, _, messages = page.read_text().partition("### What one Python process cannot isolate")
    assert named in messages.partition("\n## ")[0]
