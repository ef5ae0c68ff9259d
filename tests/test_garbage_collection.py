"""Satchels that load at the same time leave the collector of the process as it was."""

import gc

import pytest

from satchel.garbage_collection import paused_collector


@pytest.fixture(autouse=True)
def thresholds():
    assert gc.isenabled()
    gc.unfreeze()
    thresholds = gc.get_threshold()
    yield thresholds
    gc.enable()
    gc.set_threshold(*thresholds)
    gc.freeze()


def is_paused():
    return gc.get_threshold()[0] > 1_000_000_000


def test_it_waits_until_the_last_pause_ends(thresholds):
    first, second = paused_collector(), paused_collector()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert is_paused()
    second.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("was_on", [True, False])
def test_the_host_may_switch_it_on_and_off_meanwhile(was_on, is_on):
    (gc.enable if was_on else gc.disable)()
    with paused_collector():
        assert gc.isenabled() == was_on
        (gc.enable if is_on else gc.disable)()
    assert gc.isenabled() == is_on


def test_a_threshold_that_the_host_sets_meanwhile_stays():
    with paused_collector():
        gc.set_threshold(900, 20, 30)
    assert gc.get_threshold()[:2] == (900, 20)


def test_a_host_that_keeps_the_threshold_of_a_pause_gets_its_own_again(thresholds):
    with paused_collector():
        kept = gc.get_threshold()
    gc.set_threshold(*kept)
    with paused_collector():
        assert is_paused()
    assert gc.get_threshold() == thresholds


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
    assert gc.get_freeze_count() < 1_000  # Python 3.12 freezes some itself.


def test_objects_that_the_host_froze_stay_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        many_new_objects()
        assert gc.get_freeze_count() >= frozen - 100  # Some of them are gone.
    finally:
        gc.unfreeze()
