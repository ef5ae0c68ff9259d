"""Running a setup: whatever it does ends in one clear message."""

import asyncio
import os
import sys

import pytest

from satchel.errors import SatchelError
from satchel.formats.config_fields import ConfigField
from satchel.settings import Limits
from satchel.setup.setup_hook import find_setup_hook
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root


@pytest.fixture
def hook(tmp_path, write_plugin):
    """Return the hook of a plugin with this setup.py."""

    def hook(source, manifest="", **modules):
        folder = write_plugin(tmp_path, "demo", manifest, setup=source, **modules)
        (finding,) = scan_plugins(search_root(folder, RootKind.PLUGINS), Limits()).findings.values()
        return find_setup_hook(finding)

    return hook


@pytest.fixture
def run(person):
    return lambda hook, limit=10.0: hook.run("demo", (), person, limit)


def test_a_setup_is_run_with_the_folder_of_its_plugin(hook, run, person, tmp_path, data):
    run(hook("def setup(ctx):\n    ctx.say(f'{ctx.plugin} {ctx.folder} {ctx.data}')\n"))
    assert person.told == [f"demo {tmp_path / 'demo'} {data}"]


def test_a_setup_may_be_async_and_import_what_lies_beside_it(hook, run, person):
    source = "from helper import WORD\nasync def setup(ctx, more=1):\n    ctx.say(WORD)\n"
    run(hook(source, helper="WORD = 'hi'\n"))
    assert person.told == ["hi"]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_a_manifest_may_name_another_module(hook, run, person):
    result = hook("raise SystemExit", "setup: code.prepare\n")
    assert result is None  # what it names is not there
    source = "def setup(ctx):\n    ctx.say('other')\n"
    run(hook("raise SystemExit", "setup: prepare.py\n", prepare=source))
    assert person.told == ["other"]


@pytest.mark.parametrize(
    ("source", "has_setup"),
    [
        ("def setup(ctx): ...", True),
        ("async def setup(ctx, /): ...", True),
        ("def setup(*args): ...", True),
        ("if True:\n    def setup(ctx, x=1, *, y=2): ...", True),
        ("from setuptools import setup\nsetup(name='x')", False),
        ("def setup(): ...", False),
        ("def setup(ctx, more): ...", False),
        ("def setup(ctx, *, more): ...", False),
        ("def setup(*, ctx): ...", False),
        ("def setup(ctx): ...\ndef setup(): ...", False),
        ("class A:\n    def setup(ctx): ...", False),
        ("setup = print", False),
    ],
)
def test_only_a_function_of_one_parameter_is_a_setup(hook, source, has_setup):
    assert hook(source).has_setup is has_setup


BAD = {
    "raises": ("raise ValueError('no\\nluck')", "ValueError: no\nluck"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "has no words": ("class E(Exception):\n  __str__ = None\nraise E", "cannot be shown"),
    "asks for nobody": ("ctx.ask('Key?')", r"cannot ask 'Key\?' without a terminal"),
    "sets nonsense": ("ctx.set('a b', 1)", "'a b' is not a valid key"),
    "is cancelled": ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_whatever_it_raises_is_reported_with_file_and_line(hook, run, line, message, tmp_path):
    body = line.replace("\n", "\n    ")
    with pytest.raises(SatchelError, match=message) as caught:
        run(hook(f"def setup(ctx):\n    {body}\n"))
    assert caught.value.where.startswith(f"{tmp_path / 'demo/setup.py'}:")
    assert "_satchel_plugin" not in str(caught.value)


def test_a_secret_is_never_shown(hook, run, person, someone, monkeypatch):
    manifest = "config:\n  token: {type: secret}\n  region: {default: west}\n"
    monkeypatch.setenv("SATCHEL_DEMO_TOKEN", "canary1")
    monkeypatch.setenv("SATCHEL_DEMO_OTHER", "canary2")
    monkeypatch.setenv("SATCHEL_DEMO_REGION", "north")
    source = """
        def setup(ctx):
            asked = ctx.ask("Key?", secret=True)
            name = ctx.ask("Name?")
            ctx.set("token", "canary4")
            values = [ctx.get(key) for key in ("token", "other", "region")]
            raise ValueError(f"{values} {asked} canary4 {name}")
    """
    someone("canary3", "Ada Lovelace")
    result = hook(source, manifest)
    fields = (
        ConfigField(name="token", type="secret"),
        ConfigField(name="region"),
        ConfigField(name="other", type="secret"),
    )
    monkeypatch.delenv("SATCHEL_DEMO_TOKEN")
    with pytest.raises(SatchelError) as caught:
        result.run("demo", fields, person, 10.0)
    assert "canary" not in str(caught.value)
    assert "'north'" in str(caught.value)
    assert str(caught.value).endswith("Ada Lovelace")


def test_what_is_not_declared_is_kept_secret_too(hook, run, monkeypatch):
    monkeypatch.setenv("SATCHEL_DEMO_PIN", "canary")
    with pytest.raises(SatchelError, match=r"ValueError: \[redacted\]") as caught:
        run(hook("def setup(ctx):\n    raise ValueError(ctx.get('pin'))\n"))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("line", ["setup = 1", "del setup"])
def test_a_setup_that_is_no_function_in_the_end_is_reported(hook, run, line):
    with pytest.raises(
        SatchelError, match=r"setup\.py: its 'setup' is not a function setup\(ctx\)"
    ):
        run(hook(f"def setup(ctx): ...\n{line}\n"))


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_who_interrupts_a_setup_is_informed(hook, run, kind):
    with pytest.raises(SatchelError, match=r"setup\.py: was interrupted"):
        run(hook(f"{kind} setup(ctx):\n    raise KeyboardInterrupt\n"))


def test_an_import_has_its_limit_and_its_message(hook, run):
    with pytest.raises(SatchelError, match=r"took longer than 2\.4 s"):
        run(hook("import threading; threading.Event().wait(5)\ndef setup(ctx): ..."), 0.2)
    with pytest.raises(SatchelError, match=r"setup.py:1: .*No module named 'nowhere'"):
        run(hook("from .nowhere import x\ndef setup(ctx): ..."))


def test_nothing_of_a_setup_lingers(hook, run, tmp_path):
    here, path = os.getcwd(), list(sys.path)
    source = "import os, sys\ndef setup(ctx):\n    os.chdir('/')\n    sys.path.clear()\n"
    run(hook(source))
    assert (os.getcwd(), sys.path) == (here, path)
    assert not [name for name in sys.modules if name.startswith("_satchel_plugin_demo")]


def test_loading_a_plugin_never_imports_its_setup(tmp_path, write_plugin):
    import satchel

    source = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    write_plugin(tmp_path, "demo", setup=f"{source}def setup(ctx): ...\n", tools="")
    app = satchel.Satchel(plugins=[tmp_path])
    assert app.catalog.plugins["demo"].is_served
    assert not (tmp_path / "demo/ran").exists()
