"""Plugins with hooks, as a host and its users see them."""

import asyncio
import builtins
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from satchel import ConflictError, Limits, Satchel, Settings
from satchel.cli.main import cli

TOOLS = '''
from satchel import ConfigField, Group, ScopedMiddleware, hookimpl, tool
import builtins

LOG = builtins.satchel_test_log
VERSION = {version!r}

@tool
def hello(name: str) -> str:
    """Say hello."""
    return f"{{VERSION}}: hello {{name}}"
'''


@pytest.fixture(scope="module")
def shared_log() -> Iterator[list]:
    """One list for all tests, since undoing the changes of a plugin would restore an older list."""
    builtins.satchel_test_log = []
    yield builtins.satchel_test_log
    del builtins.satchel_test_log


@pytest.fixture
def log(shared_log) -> list:
    """The events of the plugins under test, in order."""
    gc.collect()
    wait_for_ends()
    shared_log.clear()
    return shared_log


@pytest.fixture
def write(tmp_path, write_plugin):
    """Write the plugin `demo` with these hooks."""

    def write(hooks: str, version: str = "one", manifest: str = "active: true\n") -> None:
        source = TOOLS.format(version=version) + hooks
        write_plugin(tmp_path, "demo", manifest, tools=source)

    return write


def codes(app) -> list[str]:
    return [item.code for item in problems(app)]


def problems(app) -> list:
    """Return the problems, without those of packages that are not enabled."""
    return [item for item in app.catalog.diagnostics if item.code != "plugin-not-enabled"]


def called(app, name="hello", **arguments):
    return asyncio.run(app.session().call(name, arguments or {"name": "Ada"})).text


LIFE = """
@hookimpl
def satchel_startup(config):
    LOG.append((VERSION, "startup", dict(config)))

@hookimpl
def satchel_shutdown():
    LOG.append((VERSION, "shutdown"))
"""


def ended(log, event, seconds=5.0) -> bool:
    """Wait for the threads that end a version."""
    gc.collect()
    wait_for_ends(seconds)
    return event in log


def wait_for_ends(seconds=60.0) -> None:
    last = time.monotonic() + seconds
    while any(thread.name == "satchel-plugin-end" for thread in threading.enumerate()):
        assert time.monotonic() < last
        time.sleep(0.001)


def test_a_version_starts_before_it_serves_and_ends_after_the_next_has_taken_over(
    log, write, tmp_path
):
    write(LIFE)
    with Satchel(plugins=tmp_path, config={"demo": {"key": "v"}}) as app:
        assert log == [("one", "startup", {"key": "v"})]
        app.refresh()
        write(LIFE, "two")
        app.refresh()
        assert called(app) == "two: hello Ada"
        assert ended(log, ("one", "shutdown"))
        assert log[1:] == [("two", "startup", {"key": "v"}), ("one", "shutdown")]
    assert log[3:] == [("two", "shutdown")]


def test_a_version_does_not_end_while_a_call_on_it_is_running(log, write, tmp_path):
    slow = """
@tool
async def slow() -> str:
    "Wait."
    begun, may_end = LOG[0]
    begun.set()
    await may_end.wait()
    return VERSION
"""
    write(LIFE + slow)

    async def scenario():
        begun, may_end = asyncio.Event(), asyncio.Event()
        log.append((begun, may_end))
        app = Satchel(plugins=tmp_path)
        call = asyncio.ensure_future(app.session().call("slow", {}))
        await begun.wait()
        write(LIFE + slow, "two")
        app.refresh()
        assert not ended(log, ("one", "shutdown"))
        may_end.set()
        result = await call
        del call
        assert await asyncio.to_thread(ended, log, ("one", "shutdown"))
        app.close()
        return result.text

    assert asyncio.run(scenario()) == "one"


def test_a_version_that_does_not_start_leaves_the_last_one_serving(log, write, tmp_path):
    write(LIFE)
    with Satchel(plugins=tmp_path) as app:
        write("@hookimpl\ndef satchel_startup():\n    raise SystemExit\n", "two")
        app.refresh()
        assert called(app) == "one: hello Ada"
        assert codes(app) == ["plugin-startup-failed", "last-good"]
        assert ("one", "shutdown") not in log
        write(LIFE, "three")
        app.refresh()
        assert (called(app), codes(app)) == ("three: hello Ada", [])


FIELD = "active: true\nconfig:\n  key: {type: secret}\n"


def test_a_plugin_waits_for_a_required_value_and_restarts_when_it_changes(
    log, write, tmp_path, monkeypatch
):
    write(LIFE, manifest=FIELD)
    monkeypatch.setenv("SATCHEL_DEMO_KEY", "")
    with Satchel(plugins=tmp_path) as app:
        assert log == []
        assert "plugin-startup-failed" in codes(app)
        assert app.catalog.plugin("demo").is_served
        assert "hello" not in app.catalog.tools
        for value in ("a", "b"):
            monkeypatch.setenv("SATCHEL_DEMO_KEY", value)
            app.refresh()
            assert ("one", "startup", {"key": value}) in log
            assert (called(app), codes(app)) == ("one: hello Ada", [])
        assert ended(log, ("one", "shutdown"))
        assert [entry[1] for entry in log].count("startup") == 2


def test_without_a_close_the_shutdown_runs_when_the_interpreter_ends(tmp_path, write, log):
    write(
        "@hookimpl\nasync def satchel_startup():\n    pass\n"
        "@hookimpl\nasync def satchel_shutdown():\n    print('ended', flush=True)\n"
    )
    host = (
        "import builtins, satchel; builtins.satchel_test_log = []\n"
        f"app = satchel.Satchel(plugins={str(tmp_path)!r})\n"
    )
    command = [sys.executable, "-W", "error", "-c", host]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("ended\n", "", 0)


def test_a_closed_satchel_is_empty_and_refuses_additions(log, write, tmp_path):
    write("")
    app = Satchel(plugins=tmp_path)
    app.close()
    app.close()
    assert (app.catalog.entries, app.catalog.generation) == ((), 3)
    with pytest.raises(Exception, match="this satchel is closed"):
        app.create_group("maps")


def test_middleware_of_a_plugin_applies_to_all_tools_or_one(log, write, tmp_path):
    write("""
async def note(call, next):
    LOG.append((VERSION, call.name))
    async for item in next(call):
        yield item

@tool
def other() -> str:
    "Do nothing."
    return ""

@hookimpl
def satchel_middleware():
    return [note, ScopedMiddleware(note, tool="other")]
""")
    with Satchel(plugins=tmp_path) as app:
        called(app)
        assert log == [("one", "hello")]
        asyncio.run(app.session().call("other", {}))
        assert log[1:] == [("one", "other")] * 2
    assert called(app).startswith("There is no tool")


def test_sections_end_the_prompt_until_their_plugin_goes(log, write, tmp_path):
    write("@hookimpl\ndef satchel_prompt_sections():\n    return ['Be \\u202ebrief.', ' ']\n")
    with Satchel(plugins=tmp_path) as app:
        session = app.session()
        app.create_group("notes", notes="Mind.", active=True)
        prompt = session.prompt()
        assert prompt.endswith("Mind.\n\nBe brief.")
        assert session.prompt_sections() == "Be brief."
        write("")
        app.refresh()
        assert session.prompt_sections() == ""


def test_fields_of_the_manifest_win_over_those_of_hooks(log, write, tmp_path):
    write(
        "@hookimpl\ndef satchel_config_fields():\n"
        "    return [ConfigField(name='key', type='integer'),"
        " ConfigField(name='more', default='x')]\n",
        manifest=FIELD,
    )
    with Satchel(plugins=tmp_path) as app:
        fields = app.catalog.plugin("demo").contribution.config
        assert [(item.name, item.type) for item in fields] == [
            ("key", "secret"),
            ("more", "string"),
        ]


def test_tools_and_groups_of_hooks_join_those_of_the_module(log, write, tmp_path):
    write("""
def plain() -> str:
    "Say nothing."
    return ""

@hookimpl
def satchel_tools():
    return [hello, plain]

@hookimpl
def satchel_groups():
    return [Group(name="quiet", tools=("plain",)), Group(name="demo", description="Not this one.")]
""")
    with Satchel(plugins=tmp_path) as app:
        groups = {name: entry.groups for name, entry in app.catalog.tools.items()}
        assert groups == {"hello": ("demo",), "plain": ("quiet",)}
        assert app.catalog.group("demo").description != "Not this one."
        assert codes(app) == []


def test_a_version_gets_each_catalog_that_serves_it(log, write, tmp_path):
    write(
        "@hookimpl\ndef satchel_catalog_built(catalog):\n"
        "    LOG.append((VERSION, catalog.generation, 'hello' in catalog.tools))\n"
    )
    with Satchel(plugins=tmp_path) as app:
        app.refresh()
        app.create_group("maps")
        assert log == [("one", 1, True), ("one", 2, True)]


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("def satchel_tool(): return []", "satchel_tool"),
        ("def satchel_config_fields(): return [ConfigField(name='a b')]", "name that is not valid"),
        (
            "def satchel_config_fields(): return [ConfigField(name='a', type='text')]",
            "not one of string",
        ),
        (
            "def satchel_config_fields(): return [ConfigField(name='a', type='choice')]",
            "without options",
        ),
        (
            "def satchel_config_fields():\n"  # noqa: ISC004 - one source text in two lines
            "    return [ConfigField(name='a', type='integer', default='x')]",
            "default that is not a whole number",
        ),
        (
            "def satchel_config_fields(): return [ConfigField(name='a'), ConfigField(name='A')]",
            "two items",
        ),
        ("def satchel_middleware(): return [7]", "returned int"),
        ("def satchel_prompt_sections(): return 'text'", "must return a list"),
        ("def satchel_commands(): return [print]", "not a click command"),
        ("def satchel_mcp(): return [print]", "returned builtin_function_or_method"),
    ],
)
def test_an_invalid_hook_result_is_reported_and_the_host_continues(
    log, write, tmp_path, hook, message
):
    write(f"@hookimpl\n{hook}\n")
    with Satchel(plugins=tmp_path) as app:
        (problem,) = problems(app)
        assert problem.code == "plugin-hook-failed"
        assert message in problem.message


COMMAND = """
import click

@click.command({name!r})
@click.argument("word")
def shout(word):
    "Shout."
    click.echo(word.upper())

@hookimpl
def satchel_commands():
    return [shout]

@hookimpl
def satchel_shutdown():
    LOG.append("shutdown")
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with plugins that the command line reads by default."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home / ".satchel" / "plugins"


def test_a_plugin_adds_a_command_to_the_command_line(log, home, write_plugin):
    source = TOOLS.format(version="one")
    write_plugin(home, "demo", tools=source + COMMAND.format(name="shout"))
    ran = CliRunner().invoke(cli, ["shout", "oh"])
    assert (ran.output, ran.exit_code, log) == ("OH\n", 0, ["shutdown"])
    near = CliRunner().invoke(cli, ["shuot", "oh"])
    assert "Did you mean shout, show?" in near.output
    write_plugin(home, "other", tools=source + COMMAND.format(name="shout"))
    both = CliRunner().invoke(cli, ["shout", "oh"])
    assert "'shout' is a command of demo and other" in both.output
    assert both.exit_code == 2


def test_no_plugin_replaces_a_command_of_satchel(log, home, write_plugin):
    write_plugin(home, "demo", tools=TOOLS.format(version="1") + COMMAND.format(name="list"))
    assert "Shout" not in CliRunner().invoke(cli, ["list", "--help"]).output


# ---- what a second reader broke -----------------------------------------------------------


def test_an_old_version_ends_at_once_after_an_import_that_was_slow(log, write, tmp_path):
    write(LIFE)
    gc.collect()
    gc.disable()
    try:
        app = Satchel(plugins=tmp_path)
        with app.watching():
            changed = threading.Event()
            app.subscribe(lambda _: changed.set())
            write("import time\ntime.sleep(0.6)\n" + LIFE, "two")
            assert changed.wait(120)
            wait_for_ends()
        assert ("one", "shutdown") in log
    finally:
        gc.enable()
        app.close()


def test_errors_of_a_startup_are_reported_without_its_values(log, write, tmp_path, caplog):
    raising = "\n    raise ConnectionError('login with ' + config['key'] + ' refused')\n"
    write("@hookimpl\ndef satchel_startup(config):" + raising)
    with Satchel(plugins=tmp_path, config={"demo": {"key": "sk-SECRET"}}) as app:
        (problem,) = problems(app)
        assert problem.message == "ConnectionError: login with [redacted] refused"
    hooks = "@hookimpl\ndef satchel_startup(config):\n    VALUES.update(config)\n"
    hooks += "VALUES = {}\n@hookimpl\ndef satchel_shutdown():\n    config = VALUES"
    write(hooks + raising)
    Satchel(plugins=tmp_path, config={"demo": {"key": "sk-SECRET"}}).close()
    assert "login with [redacted] refused" in caplog.text
    assert "sk-SECRET" not in caplog.text


def test_removing_a_value_ends_the_version_that_used_it(log, write, tmp_path, monkeypatch):
    write(LIFE, manifest=FIELD)
    monkeypatch.setenv("SATCHEL_DEMO_KEY", "a")
    with Satchel(plugins=tmp_path) as app:
        monkeypatch.setenv("SATCHEL_DEMO_KEY", "")
        app.refresh()
        assert (app.catalog.plugin("demo").state, "hello" in app.catalog.tools) == (
            "degraded",
            False,
        )
        assert ended(log, ("one", "shutdown"))


def test_an_invalid_value_keeps_the_started_version(log, write, tmp_path, monkeypatch):
    write(LIFE, manifest="config:\n  size: {type: integer, default: 3, max: 5}\nactive: true\n")
    with Satchel(plugins=tmp_path) as app:
        monkeypatch.setenv("SATCHEL_DEMO_SIZE", "99")
        app.refresh()
        assert (app.catalog.plugin("demo").state, called(app)) == ("stale", "one: hello Ada")
        assert log == [("one", "startup", {"size": 3})]
        monkeypatch.setenv("SATCHEL_DEMO_SIZE", "4")
        app.refresh()
        assert log[1] == ("one", "startup", {"size": 4})


def test_a_catalog_that_a_plugin_keeps_keeps_no_version_alive(log, write, tmp_path):
    keeping = LIFE + "KEPT = []\n@hookimpl\ndef satchel_catalog_built(catalog):\n"
    keeping += "    KEPT.append(catalog)\n"
    write(keeping)
    with Satchel(plugins=tmp_path) as app:
        write(keeping, "two")
        app.refresh()
        assert ended(log, ("one", "shutdown"))
        assert called(app) == "two: hello Ada"


def test_a_slow_catalog_hook_is_not_called_again(log, write, tmp_path):
    write(
        "import threading\n@hookimpl\ndef satchel_catalog_built(catalog):\n"
        "    LOG.append(catalog.generation)\n    threading.Event().wait()\n"
    )
    with Satchel(plugins=tmp_path, settings=Settings(limits=Limits(hook=0.2))) as app:
        app.create_group("maps")
    assert log == [1]


@pytest.mark.slow
def test_a_shutdown_that_hangs_does_not_keep_the_interpreter(tmp_path, write, log):
    host = (
        "import builtins, satchel; builtins.satchel_test_log = []\n"
        "limits = satchel.Limits(hook=4)\n"
        f"app = satchel.Satchel(plugins={str(tmp_path)!r}, "
        "settings=satchel.Settings(limits=limits))\n"
    )
    for kind, wait in (("", "time.sleep(600)"), ("async ", "await asyncio.sleep(600)")):
        write(f"import asyncio, time\n@hookimpl\n{kind}def satchel_shutdown():\n    {wait}\n")
        ran = subprocess.run(
            [sys.executable, "-c", host], capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0
        assert "took longer than 4 s" in ran.stderr


def test_functions_that_two_modules_share_are_called_once(log, tmp_path, write_plugin):
    manifest = "active: true\ntools: [{function: 'tools:hello'}, {function: 'more:other'}]\n"
    module = "from .tools import *\ndef other() -> str:\n    'Do nothing.'\n    return ''\n"
    write_plugin(tmp_path, "demo", manifest, tools=TOOLS.format(version="one") + LIFE, more=module)
    with Satchel(plugins=tmp_path):
        assert log == [("one", "startup", {})]
    assert log[1:] == [("one", "shutdown")]


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("def satchel_startup(): pass", "satchel_startup is not marked"),
        ("@hookimpl\nasync def satchel_tools(): return []", "must not be a coroutine"),
        ("import itertools\n@hookimpl\ndef satchel_tools(): return itertools.repeat(1)", "10,000"),
        ("@hookimpl\ndef satchel_prompt_sections(): return ['x' * 300_000]", "300,000 characters"),
    ],
)
def test_hooks_that_are_silently_wrong_are_refused(log, write, tmp_path, hook, message):
    write(hook)
    with Satchel(plugins=tmp_path) as app:
        (problem,) = problems(app)
        assert message in problem.message


def test_changes_of_the_process_by_hooks_are_reported(log, write, tmp_path):
    write("import os\n@hookimpl\ndef satchel_tools():\n    os.chdir('/')\n    return []\n")
    with Satchel(plugins=tmp_path) as app:
        assert codes(app) == ["plugin-meddled"]


def test_a_closed_satchel_is_not_watched(log, write, tmp_path):
    app = Satchel(plugins=tmp_path)
    app.close()
    with pytest.raises(ConflictError, match="closed"), app.watching():
        pass


def test_output_of_a_shutdown_goes_to_stderr(log, home, write_plugin):
    noisy = "@hookimpl\ndef satchel_shutdown():\n    print('NOISE')\n"
    write_plugin(home, "demo", tools=TOOLS.format(version="1") + noisy)
    ran = CliRunner().invoke(cli, ["list", "plugins", "--run", "--json"])
    assert "NOISE" not in ran.stdout
    assert "NOISE" in ran.stderr


def test_errors_of_a_plugins_command_are_one_line_without_secrets(
    log, home, write_plugin, monkeypatch
):
    monkeypatch.setenv("SATCHEL_DEMO_KEY", "hunter2")
    source = COMMAND.format(name="shout").replace(
        "click.echo(word.upper())", "raise RuntimeError('no login with hunter2')"
    )
    write_plugin(home, "demo", FIELD, tools=TOOLS.format(version="one") + source)
    ran = CliRunner().invoke(cli, ["shout", "oh"])
    assert (ran.exit_code, ran.output) == (1, "Error: RuntimeError: no login with [redacted]\n")


def test_a_shutdown_may_run_in_any_thread(tmp_path, write, log):
    write("@hookimpl\ndef satchel_shutdown():\n    print('ended', flush=True)\n")
    host = (
        "import builtins, satchel, threading; builtins.satchel_test_log = []\n"
        f"app = satchel.Satchel(plugins={str(tmp_path)!r})\n"
        "def late():\n    threading.main_thread().join()\n    app.close()\n"
        "threading.Thread(target=late).start()\n"
    )
    command = [sys.executable, "-W", "error", "-c", host]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr) == ("ended\n", "")
