"""Satchels that load at the same time leave the collector of the process as it was."""

import gc

import pytest

from satchel.garbage_collection import is_collecting, paused_collector, set_collecting


@pytest.fixture(autouse=True)
def collecting():
    assert gc.isenabled()
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()


def test_it_waits_until_the_last_pause_ends():
    first, second = paused_collector(), paused_collector()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (gc.isenabled(), is_collecting()) == (False, True)
    second.__exit__(None, None, None)
    assert (gc.isenabled(), is_collecting()) == (True, True)


def test_one_that_the_host_disabled_stays_off():
    gc.disable()
    with paused_collector():
        assert not is_collecting()
    assert not gc.isenabled()


def test_one_that_the_host_enabled_meanwhile_stays_on():
    gc.disable()
    with paused_collector():
        gc.enable()
        assert is_collecting()
        with paused_collector():
            pass
        assert gc.isenabled()
    assert gc.isenabled()
    with paused_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_is_set_in_a_pause_counts_after_it():
    was_collecting = is_collecting()
    with paused_collector():
        set_collecting(was_collecting)
        assert not gc.isenabled()
    assert gc.isenabled()
    with paused_collector():
        set_collecting(False)
    assert not gc.isenabled()


def many_new_objects():
    with paused_collector():
        return [[] for _ in range(20_000)]


def test_many_new_objects_become_old_ones_without_a_collection():
    gc.collect()
    before = gc.get_stats()
    objects = many_new_objects()
    collections = [
        now["collections"] - then["collections"]
        for now, then in zip(gc.get_stats(), before, strict=True)
    ]
    assert sum(collections) <= 1  # That of the few objects that came later.
    young = {id(item) for generation in (0, 1) for item in gc.get_objects(generation)}
    assert young.isdisjoint(map(id, objects))
    assert gc.get_freeze_count() == 0


def test_objects_that_the_host_froze_stay_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        many_new_objects()
        assert gc.get_freeze_count() >= frozen - 100  # Some of them are gone.
    finally:
        gc.unfreeze()
