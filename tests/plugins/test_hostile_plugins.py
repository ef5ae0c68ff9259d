"""Plugins that misbehave, each beside a healthy one in a host of its own."""

import importlib.util
import json
import subprocess
import sys

import pytest

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
import asyncio, json, os, signal, sys
import satchel
folder, cwd, path = sys.argv[1], os.getcwd(), list(sys.path)
out = os.fdopen(os.dup(1), "w")
bag = satchel.Satchel(
    plugins=[folder], settings=satchel.Settings(limits=satchel.Limits(plugin_import=1))
)
answer = asyncio.run(bag.session().call("hello", {"name": "you"}))
hostile = bag.catalog.plugin("hostile")
print("\\n" + json.dumps({
    "answer": answer.text,
    "state": hostile.state,
    "codes": [item.code for item in hostile.diagnostics],
    "messages": [str(item) for item in bag.catalog.diagnostics],
    "cwd": os.getcwd() == cwd,
    "path": sys.path == path,
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "json": json.__file__,
}), file=out, flush=True)
"""


@pytest.fixture(scope="module")
def plugins(shared):
    spec = importlib.util.spec_from_file_location("hostile_plugins", shared / "hostile/plugins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PLUGINS


@pytest.fixture
def host(tmp_path, write_plugin, tool_source):
    def host(source, **more):
        write_plugin(tmp_path / "plugins", "healthy", tools=tool_source)
        write_plugin(tmp_path / "plugins", "hostile", tools=source, **more)
        ended = subprocess.run(
            [sys.executable, "-c", HOST, str(tmp_path / "plugins")],
            capture_output=True,
            text=True,
            timeout=20,
            cwd=tmp_path,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    return host


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
    more = {"json": "raise SystemExit"} if name == "shadow-stdlib-file" else {}
    told = host(plugins[name][0], **more)
    assert told["answer"] == "Hello you"
    assert (told["cwd"], told["path"], told["interrupt"]) == (True, True, True)
    assert "plugins" not in told["json"]
    if name in REFUSED:
        assert (told["state"], told["codes"]) == ("failed", [REFUSED[name]])
    else:
        assert told["state"] == "ok"
    if name in {"chdir", "syspath-clear"}:
        assert told["codes"] == ["plugin-meddled"]
