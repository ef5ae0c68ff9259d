"""Satchels that load at the same time leave the collector of the process as it was."""

import gc

import pytest

from satchel.garbage_collection import is_collecting, paused_collector, set_collecting


@pytest.fixture(autouse=True)
def collecting():
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_waits_until_the_last_pause_ends():
    first, second = paused_collector(), paused_collector()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (gc.isenabled(), is_collecting()) == (False, True)
    second.__exit__(None, None, None)
    assert (gc.isenabled(), is_collecting()) == (True, True)


def test_one_that_the_host_switched_off_stays_off():
    gc.disable()
    with paused_collector():
        assert not is_collecting()
    assert not gc.isenabled()


def test_what_is_set_in_a_pause_counts_after_it():
    was_collecting = is_collecting()
    with paused_collector():
        set_collecting(was_collecting)
        assert not gc.isenabled()
    assert gc.isenabled()
    with paused_collector():
        set_collecting(False)
    assert not gc.isenabled()
