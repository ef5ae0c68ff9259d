"""Work in a thread, for which callers wait more than once."""

import gc
import threading
import weakref

import pytest

from satchel.importing.guarded_work import GuardedWork


def test_work_is_waited_for_and_its_result_is_kept():
    gate = threading.Event()
    work = GuardedWork(lambda: gate.wait(20))
    assert not work.is_done_within(0)
    gate.set()
    assert work.is_done_within(None)
    assert work.result() is work.result() is True


def test_the_error_of_work_is_raised_where_its_result_is_read():
    def fail():
        raise SystemExit(3)

    work = GuardedWork(fail)
    assert work.is_done_within(20)
    with pytest.raises(SystemExit):
        work.result()


def test_the_end_is_announced_when_the_result_can_be_read():
    results, is_over = [], threading.Event()

    def end():
        results.append(work.result() if is_assigned.wait(20) else None)
        is_over.set()

    is_assigned = threading.Event()
    work = GuardedWork(lambda: 42, end)
    is_assigned.set()
    assert is_over.wait(20)
    assert results == [42]


def test_the_work_is_freed_once_it_has_ended():
    class Version:
        def load(self):
            return "loaded"

    version = Version()
    reference, is_over = weakref.ref(version), threading.Event()
    work = GuardedWork(version.load, is_over.set)
    assert is_over.wait(20)
    for thread in threading.enumerate():
        if thread.name == "satchel-load":
            thread.join(20)
    del version
    gc.collect()
    assert (work.result(), reference()) == ("loaded", None)
