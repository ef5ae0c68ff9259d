"""The startup and the shutdown of one version, by themselves."""

import asyncio
import logging
import threading
from types import SimpleNamespace

import pytest

import satchel
from satchel.catalog.catalog import Catalog
from satchel.importing.code_guard import PluginCodeError, PluginTimeoutError
from satchel.plugins.hook_host import call_hooks
from satchel.plugins.lifecycle import Lifecycle


def life_of(limit=5.0, **hooks) -> Lifecycle:
    marked = {f"satchel_{name}": satchel.hookimpl(hook) for name, hook in hooks.items()}
    return Lifecycle("demo", call_hooks(SimpleNamespace(**marked)).hooks, limit)


def loops() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name == "satchel-plugin-demo"]


def test_it_starts_with_its_configuration_and_ends_once():
    seen = []

    def startup(config):
        seen.append(config)

    life = life_of(startup=startup, shutdown=lambda: seen.append("end"))
    life.begin({"a": 1}, alone=True)
    life.end()
    life.end()
    assert seen == [{"a": 1}, "end"]


def test_a_hook_takes_only_what_it_names():
    seen = []
    life = life_of(startup=lambda: seen.append("begun"))
    life.begin({"a": 1}, alone=True)
    assert seen == ["begun"]


def test_what_never_started_is_not_shut_down():
    seen = []
    life_of(shutdown=lambda: seen.append("end")).end()
    assert seen == []


def test_coroutines_share_a_loop_that_continues_until_the_shutdown():
    seen = []

    async def startup():
        waiting = asyncio.ensure_future(asyncio.Event().wait())
        seen.append((asyncio.get_running_loop(), waiting))

    async def shutdown():
        loop, task = seen[0]
        assert loop is asyncio.get_running_loop()
        assert not task.done()

    life = life_of(startup=startup, shutdown=shutdown)
    life.begin({}, alone=True)
    assert loops() == ["satchel-plugin-demo"]
    life.end()
    loop, task = seen[0]
    assert task.cancelled()
    assert loop.is_closed()
    assert loops() == []


def test_what_a_startup_raises_is_reported_and_leaves_no_loop():
    async def startup():
        raise SystemExit(3)

    life = life_of(startup=startup)
    with pytest.raises(PluginCodeError, match="SystemExit: 3"):
        life.begin({}, alone=True)
    assert loops() == []


def test_a_startup_has_a_time_limit():
    cancelled = threading.Event()

    async def startup():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    life = life_of(0.05, startup=startup)
    with pytest.raises(PluginTimeoutError, match="limit hook"):
        life.begin({}, alone=True)
    assert cancelled.wait(60)


def test_what_a_shutdown_raises_is_logged(caplog):
    life = life_of(shutdown=lambda: 1 / 0)
    life.begin({}, alone=True)
    with caplog.at_level(logging.ERROR, "satchel"):
        life.end()
    assert [record.message for record in caplog.records] == [
        "satchel_shutdown of plugin demo failed: ZeroDivisionError: division by zero"
    ]


def test_it_is_shown_a_catalog_and_what_it_raises_is_logged(caplog):
    seen = []

    def catalog_built(catalog):
        seen.append(catalog)
        raise KeyError("x")

    life = life_of(catalog_built=catalog_built)
    assert life.wants_catalogs
    with caplog.at_level(logging.ERROR, "satchel"):
        life.notify(Catalog(generation=7))
    assert [catalog.generation for catalog in seen] == [7]
    assert len(caplog.records) == 1


def test_nothing_to_run_needs_no_life():
    assert not life_of(tools=lambda: [None]).is_needed
    assert life_of(shutdown=lambda: None).is_needed
