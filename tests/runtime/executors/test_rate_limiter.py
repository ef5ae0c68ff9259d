import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import now, play

from satchel.errors import DefinitionError
from satchel.runtime.rate_limiter import RateLimiter


def turns_of(per_second, burst=1):
    return RateLimiter(per_second, burst, clock=now)


async def times(turns, *names):
    """Tell when each of several that ask at once has its turn."""
    had = []

    async def ask(number, name):
        await turns.wait(name)
        had.append((number, now()))

    await asyncio.gather(*(ask(number, name) for number, name in enumerate(names)))
    return had


def test_turns_come_one_after_another_in_the_order_of_asking():
    assert play(times(turns_of(2), *"aaaa")) == [(0, 0), (1, 0.5), (2, 1), (3, 1.5)]


def test_a_burst_goes_at_once():
    assert [when for _, when in play(times(turns_of(1, 3), *"aaaaa"))] == [0, 0, 0, 1, 2]


def test_each_name_has_its_own_turns():
    assert [when for _, when in play(times(turns_of(1), *"abab"))] == [0, 0, 1, 1]


def test_rates_may_be_given_by_name_and_for_the_others():
    turns = turns_of({"a": 1, "*": 10})
    assert dict(play(times(turns, *"aabb"))) == {0: 0, 1: 1, 2: 0, 3: 0.1}


def test_a_name_without_a_rate_never_waits():
    assert {when for _, when in play(times(turns_of({"a": 1}), *"bbbb"))} == {0}
    assert {when for _, when in play(times(turns_of(math.inf), *"bbbb"))} == {0}


@pytest.mark.parametrize("rate", [0, -1, math.nan])
def test_a_rate_at_which_nothing_goes_is_refused(rate):
    with pytest.raises(DefinitionError, match="would never let 'a' start"):
        RateLimiter({"a": rate})


def test_a_burst_in_which_nothing_goes_is_refused():
    with pytest.raises(DefinitionError, match="would never let anything start"):
        RateLimiter(1, burst=0)


def test_a_turn_is_taken_at_once_only_if_no_one_waits():
    async def main():
        turns = turns_of(1)
        assert turns.take("a")
        assert not turns.take("a")
        waiting = asyncio.create_task(turns.wait("a"))
        await asyncio.sleep(0)
        asyncio.get_running_loop().jump.now += 5  # the waiting one was not yet woken
        assert not turns.take("a")
        await waiting
        await asyncio.sleep(1)
        assert turns.take("a")

    play(main())


@pytest.mark.parametrize("leaving", [0, 1, 2, 3])
def test_a_caller_that_stops_waiting_leaves_no_gap(leaving):
    async def main():
        turns, had = turns_of(1), []

        async def ask(number):
            await turns.wait("a")
            had.append((number, now()))

        assert turns.take("a")
        asking = [asyncio.create_task(ask(number)) for number in range(4)]
        await asyncio.sleep(0.5)
        asking.pop(leaving).cancel()
        await asyncio.wait(asking)
        others = [number for number in range(4) if number != leaving]
        assert had == list(zip(others, [1, 2, 3], strict=True))

    play(main())


def test_a_caller_that_stops_waiting_behind_one_that_was_woken_changes_nothing():
    async def main():
        turns = turns_of(1)
        assert turns.take("a")
        first, second, third = (asyncio.create_task(turns.wait("a")) for _ in range(3))
        await asyncio.sleep(1.5)
        third.cancel()
        await second
        assert (first.done(), third.cancelled(), now()) == (True, True, 2)

    play(main())


def test_a_caller_that_is_cancelled_when_it_is_woken_wakes_the_next():
    async def main():
        turns = turns_of(1)
        assert turns.take("a")
        first, second, third = (asyncio.create_task(turns.wait("a")) for _ in range(3))
        await asyncio.sleep(0.5)
        first.add_done_callback(lambda _: second.cancel())
        await third
        assert (first.cancelled(), second.cancelled(), now()) == (False, True, 2)

    play(main())


def test_a_clock_that_rounds_is_looked_at_again():
    moment, slept = 1.7e9, []

    async def sleep(seconds):
        nonlocal moment
        slept.append(seconds)
        moment += seconds * (0.9 if len(slept) == 1 else 1)

    async def main():
        turns = RateLimiter(3, clock=lambda: moment, sleep=sleep)
        for _ in range(4):
            await turns.wait("a")

    play(main())
    assert moment == pytest.approx(1.7e9 + 1, abs=1e-6)


def test_turns_are_kept_between_loops():
    moment = 0.0

    async def sleep(seconds):
        nonlocal moment
        moment += seconds

    turns = RateLimiter(1, clock=lambda: moment, sleep=sleep)
    for _ in range(3):
        play(asyncio.wait_for(times_of_three(turns), 10))
    assert moment == 8


async def times_of_three(turns):
    await asyncio.gather(*(turns.wait("a") for _ in range(3)))


def test_names_that_have_recovered_are_forgotten():
    async def main():
        turns = turns_of({"slow": 0.001, "*": 1})
        for number in range(1000):
            assert turns.take(str(number))
            await asyncio.sleep(1)
        assert turns.take("slow")
        await asyncio.sleep(5)
        assert turns.take("x")
        assert list(turns._spent_until) == ["slow", "x"]

    play(main())


def test_a_rate_too_high_for_the_clock_lets_everything_go():
    async def main():
        turns = RateLimiter(1e30, clock=lambda: 1.7e9)
        assert turns.take("a")
        assert turns.take("a")

    play(main())


def test_the_default_clock_is_that_of_the_machine():
    async def main():
        turns = RateLimiter(1000.0)
        await turns.wait("a")
        await turns.wait("a")

    asyncio.run(main())


@given(
    st.sampled_from([0.3, 1, 7]),
    st.integers(1, 3),
    st.lists(st.floats(0, 3, allow_nan=False), min_size=1, max_size=12),
)
def test_no_window_holds_more_turns_than_burst_and_rate_allow(rate, burst, pauses):
    async def main():
        turns, had, asking = turns_of(rate, burst), [], []

        async def ask():
            await turns.wait("a")
            had.append(now())

        for seconds in pauses:
            await asyncio.sleep(seconds)
            asking.append(asyncio.create_task(ask()))
        await asyncio.wait(asking)
        assert len(had) == len(pauses)
        for number in range(burst, len(had)):
            assert had[number] - had[number - burst] >= 1 / rate - 1e-9
            for earlier in range(number):
                window = had[number] - had[earlier]
                assert number - earlier + 1 <= burst + window * rate + 1e-6

    play(main())
