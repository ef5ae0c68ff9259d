"""Imports that take too long: everything else is there meanwhile, and they are tried again."""

import queue
import threading
import time

import pytest

from satchel import Limits, Satchel, Settings, watch_thread
from satchel.loader import plugin_loader

PATIENCE = 120.0
QUICK = 'from satchel import tool\n\n@tool\ndef quick() -> str:\n    "Be quick."\n    return "q"\n'


def slow(tmp_path):
    """Return code that takes long until a file is there."""
    return f"""
        import time
        from pathlib import Path
        from satchel import tool

        while not Path({str(tmp_path / "go")!r}).exists():
            time.sleep(0.01)

        @tool
        def slow() -> str:
            "Be slow."
            return "s"
    """


def until(app, name):
    changes = queue.SimpleQueue()
    undo = app.subscribe(changes.put)
    while name not in app.catalog.tools:
        changes.get(timeout=PATIENCE)
    undo()


def test_an_import_that_took_too_long_is_tried_again_by_itself(tmp_path, write_plugin, monkeypatch):
    monkeypatch.setattr(watch_thread, "_FIRST_RETRY", 0.2)
    write_plugin(tmp_path / "plugins", "slow", tools=slow(tmp_path))
    write_plugin(tmp_path / "plugins", "quick", tools=QUICK)
    settings = Settings(limits=Limits(plugin_import=0.1), mcp_servers=False)
    with Satchel(plugins=[tmp_path / "plugins"], settings=settings) as app:
        assert [*app.catalog.tools] == ["quick"]
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "plugin-import-timeout"]
        assert problem.message.startswith("importing plugin 'slow' took longer than 1.2 s")
        with app.watching():
            (tmp_path / "go").touch()
            until(app, "slow")
        assert not [i for i in app.catalog.diagnostics if i.code == "plugin-import-timeout"]


def test_a_start_that_waits_only_so_long_has_the_rest_later(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "slow", tools=slow(tmp_path))
    write_plugin(tmp_path / "plugins", "quick", tools=QUICK)
    settings = Settings(plugin_wait=0.3, mcp_servers=False)
    began = time.monotonic()
    with Satchel(plugins=[tmp_path / "plugins"], settings=settings) as app:
        assert time.monotonic() - began < PATIENCE / 2
        assert "slow" not in app.catalog.tools
        with app.watching():
            until(app, "quick")  # On a busy machine, its import takes longer, too.
            (tmp_path / "go").touch()
            until(app, "slow")


def test_an_import_ends_for_others_only_with_the_catalog_that_has_its_tools(
    tmp_path, write_plugin, monkeypatch
):
    write_plugin(tmp_path / "plugins", "slow", tools=slow(tmp_path))
    states = []
    with Satchel(
        plugins=[tmp_path / "plugins"], settings=Settings(plugin_wait=0.01, mcp_servers=False)
    ) as app:
        publish = app._shared.publish

        def observe(catalog):
            states.append(("slow" in app.catalog.tools, app.is_importing))
            publish(catalog)

        monkeypatch.setattr(app._shared, "publish", observe)
        with app.watching():
            (tmp_path / "go").touch()
            until(app, "slow")
    assert (False, False) not in states


@pytest.mark.slow
def test_plugins_that_hang_wait_for_one_limit_together_and_are_named(
    tmp_path, write_plugin, caplog, monkeypatch
):
    monkeypatch.setattr(plugin_loader, "_PATIENCE", 0.2)
    caplog.set_level("INFO", "satchel.loader.plugin_loader")
    for name in ("slow", "slower", "slowest"):
        write_plugin(tmp_path / "plugins", name, tools=slow(tmp_path))
    write_plugin(tmp_path / "plugins", "zquick", tools=QUICK)
    limit = 0.5 * 12
    settings = Settings(limits=Limits(plugin_import=0.5), mcp_servers=False)
    began = time.monotonic()
    with Satchel(plugins=[tmp_path / "plugins"], settings=settings) as app:
        assert time.monotonic() - began < 2 * limit
        assert [*app.catalog.tools] == ["quick"]
        late = [i for i in app.catalog.diagnostics if i.code == "plugin-import-timeout"]
        assert len(late) == 3
        assert not app.is_importing
    for name in ("slow", "slower", "slowest"):
        assert f"plugin '{name}' is still being imported" in caplog.text
    assert "awaited for up to 6 s (limit plugin_import)" in caplog.text


def test_a_slow_plugin_is_there_when_a_start_without_a_watch_ends(
    tmp_path, write_plugin, monkeypatch
):
    monkeypatch.setattr(plugin_loader, "_PATIENCE", 0.01)
    threading.Timer(0.5, (tmp_path / "go").touch).start()
    for name in ("slow", "slower"):
        write_plugin(
            tmp_path / "plugins", name, tools=slow(tmp_path).replace("slow()", f"{name}()")
        )
    with Satchel(plugins=[tmp_path / "plugins"], settings=Settings(mcp_servers=False)) as app:
        assert [*app.catalog.tools] == ["slow", "slower"]
        assert app.refresh() == ()


def test_a_slow_plugin_that_fails_gives_its_name_to_the_next(tmp_path, write_plugin, monkeypatch):
    monkeypatch.setattr(plugin_loader, "_PATIENCE", 0.01)
    broken = "import time\ntime.sleep(0.1)\n1 / 0\n"
    write_plugin(tmp_path / "one", "quick", tools=broken)
    write_plugin(tmp_path / "two", "quick", tools=QUICK)
    settings = Settings(mcp_servers=False)
    with Satchel(plugins=[tmp_path / "one", tmp_path / "two"], settings=settings) as app:
        assert [*app.catalog.tools] == ["quick"]


def test_the_users_file_sets_the_time_for_imports(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "slow", tools=slow(tmp_path))
    (tmp_path / "satchel.toml").write_text("plugin_import = 0.02\n")
    settings = Settings(config_folder=str(tmp_path), mcp_servers=False)
    with Satchel(plugins=[tmp_path / "plugins"], settings=settings) as app:
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "plugin-import-timeout"]
        assert "took longer than 0.24 s (limit plugin_import)" in problem.message
    (tmp_path / "satchel.toml").write_text("plugin_import = -1\n")
    with Satchel(settings=settings) as app:
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "choices-unreadable"]
        assert "'plugin_import' is not a number of seconds above 0" in problem.message
