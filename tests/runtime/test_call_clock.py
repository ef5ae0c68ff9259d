import asyncio
import sys
from types import SimpleNamespace

import pytest
from runs import a_run, play_for_real

from satchel.runtime.call_clock import CallClock, clock_of


async def passing(call, inner):
    async for item in inner(call):
        yield item


class Timed:
    """Records when it is ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def time_out(self) -> None:
        self.ended.set()


class ManualLoop:
    """A loop whose time only moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[SimpleNamespace] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when, callback, *args):
        timer = SimpleNamespace(when=when, run=lambda: callback(*args))
        timer.cancel = lambda: self.timers.remove(timer)
        self.timers.append(timer)
        return timer

    def move_to(self, now: float) -> None:
        self.now = now
        for timer in [timer for timer in self.timers if timer.when <= now]:
            self.timers.remove(timer)
            timer.run()


def test_what_is_timed_ends_at_its_limit_and_not_before():
    loop, clock, slow, quick = ManualLoop(), CallClock(), Timed(), Timed()
    clock.start(slow, 10, loop)
    clock.start(quick, 2, loop)
    loop.move_to(1.9)
    assert not quick.ended.is_set()
    loop.move_to(2)
    assert (quick.ended.is_set(), slow.ended.is_set()) == (True, False)
    loop.move_to(10)
    assert slow.ended.is_set()


def test_what_was_stopped_in_time_is_not_ended_and_knows_when_its_limit_was():
    loop, clock, timed = ManualLoop(), CallClock(), Timed()
    clock.start(timed, 5, loop)
    loop.move_to(2)
    assert clock.stop(timed) == 5
    loop.move_to(100)
    assert not timed.ended.is_set()


def test_however_many_are_timed_there_is_one_timer_and_none_after_the_last_limit():
    loop, clock = ManualLoop(), CallClock()
    every = [Timed() for _ in range(100)]
    for seconds, timed in enumerate(every, 1):
        clock.start(timed, seconds, loop)
    for timed in every[1:]:
        clock.stop(timed)
    assert len(loop.timers) == 1
    loop.move_to(1)
    assert (every[0].ended.is_set(), loop.timers) == (True, [])


def test_a_limit_that_is_over_when_it_begins_ends_at_the_next_check():
    loop, clock, timed = ManualLoop(), CallClock(), Timed()
    clock.start(timed, -1, loop)
    loop.move_to(0)
    assert timed.ended.is_set()


def test_all_calls_of_a_loop_share_its_clock():
    async def clocks():
        loop = asyncio.get_running_loop()
        return clock_of(loop), clock_of(loop)

    first, again = asyncio.run(clocks())
    other, _ = asyncio.run(clocks())
    assert first is again is not other


def test_a_loop_without_attributes_gets_a_clock_for_each_call():
    class Bare:
        __slots__ = ()

    loop = Bare()
    assert clock_of(loop) is not clock_of(loop)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
@pytest.mark.parametrize("seconds", [None, 0.0])
@pytest.mark.parametrize("layers", [(), (passing,)])
def test_only_a_function_that_waits_is_timed(monkeypatch, seconds, layers):
    async def probe():
        if seconds is not None:
            await asyncio.sleep(seconds)
        return "done"

    timed = []
    monkeypatch.setattr(CallClock, "start", lambda clock, *arguments: timed.append(arguments))
    result = play_for_real(a_run(probe, layers=layers).result())
    assert result.text == "done"
    assert len(timed) == (seconds is not None)
