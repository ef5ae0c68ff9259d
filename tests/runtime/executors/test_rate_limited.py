import asyncio
from contextlib import aclosing

import pytest
from stage import FINE, Stage, in_order, now, play, some_calls

from satchel.errors import DefinitionError
from satchel.runtime.executors import Concurrent, RateLimited, Sequential


def rate(inner, per_second, burst=1):
    return RateLimited(inner, per_second, burst, clock=now)


def times(executor, calls):
    stage = Stage()
    play(in_order(executor, calls, stage.run))
    return stage.times


def named(names, seconds=0):
    return some_calls(*({"name": name, "seconds": seconds} for name in names))


def test_the_calls_of_a_tool_begin_at_its_rate():
    assert times(rate(Concurrent(), 2), named("aaa")) == [("a", 0), ("a", 0.5), ("a", 1)]


def test_a_burst_begins_together():
    assert [when for _, when in times(rate(Concurrent(), 1, 2), named("aaa"))] == [0, 0, 1]


@pytest.mark.parametrize("inner", [Concurrent(2), Sequential()])
def test_waiting_takes_no_place_from_other_tools(inner):
    began = times(rate(inner, {"a": 1}), named("aaaab", seconds=0.25))
    assert began[:2] == [("a", 0), ("b", 0 if inner == Concurrent(2) else 0.25)]
    assert [when for name, when in began if name == "a"] == [0, 1, 2, 3]


def test_calls_begin_in_their_order_where_none_waits():
    stage = Stage()
    play(in_order(rate(Sequential(), {"x": 1}), named("abacbca"), stage.run))
    assert stage.begun == list("0123456")


def test_the_rate_holds_over_several_steps():
    async def main():
        executor, stage = rate(Concurrent(), 1), Stage()
        await in_order(executor, named("a"), stage.run)
        await asyncio.gather(
            in_order(executor, named("aa"), stage.run), in_order(executor, named("aa"), stage.run)
        )
        assert stage.times == [("a", number) for number in range(5)]

    play(main())


def test_steps_that_run_at_once_take_turns():
    async def main():
        executor, ends = rate(Concurrent(), 1), []

        async def step(number, calls):
            await in_order(executor, named(calls), Stage().run)
            ends.append((number, now()))

        await asyncio.gather(step(0, "aaaaa"), step(1, "a"))
        assert ends == [(1, 2), (0, 5)]  # not behind all five

    play(main())


def test_a_call_whose_turn_comes_while_all_places_are_taken_begins_when_one_is_free():
    calls = some_calls(
        {"name": "a", "seconds": 0},
        {"name": "a", "seconds": 0},
        {"name": "b", "seconds": 5},
        {"name": "c", "seconds": 0},
    )
    stage = Stage()
    play(in_order(rate(Sequential(), {"a": 1}), calls, stage.run))
    assert stage.times == [("a", 0), ("b", 0), ("a", 5), ("c", 5)]


def test_one_limit_may_stand_inside_another():
    executor = rate(rate(Concurrent(), {"a": 1}), {"a": 2, "b": 1})
    assert sorted(times(executor, named("aabb"))) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_a_call_that_waits_for_its_turn_ends_when_the_reader_is_cancelled():
    async def main():
        stage, executor = Stage(), rate(Concurrent(), 0.01)
        reader = asyncio.create_task(in_order(executor, named("aaa"), stage.run))
        await asyncio.sleep(1)
        reader.cancel()
        await asyncio.wait([reader])
        assert (reader.cancelled(), stage.begun, now()) == (True, ["0"], 1)
        await in_order(executor, named("a"), stage.run)  # the turn was not lost
        assert now() == 100

    play(main())


def test_a_call_that_waits_for_its_turn_ends_when_the_reader_leaves():
    async def main():
        stage = Stage()
        async with aclosing(rate(Concurrent(), 0.01).stream(named("aaa"), stage.run)) as stream:
            await anext(stream)
        assert (stage.begun, now()) == (["0"], 0)
        await asyncio.sleep(1000)
        assert stage.begun == ["0"]

    play(main())


def test_a_clock_that_fails_fails_the_call_that_waits(caplog):
    async def broken(_):
        raise OSError

    executor = RateLimited(Concurrent(), 1, clock=now, sleep=broken)
    results = play(in_order(executor, named("aaab"), Stage().run))
    assert [result.error_code for result in results] == [None, *["tool_failed"] * 2, None]
    assert len(caplog.records) == 2


class Plain:
    """Somebody's own executor, which knows nothing of gates."""

    async def stream(self, calls, run):
        for index, call in enumerate(calls):
            yield index, await run(call)


def test_in_an_executor_without_limits_calls_wait_as_they_run():
    assert times(rate(Plain(), {"a": 1}), named("aab")) == [("a", 0), ("a", 1), ("b", 1)]


def test_a_rate_that_cannot_be_is_refused():
    with pytest.raises(DefinitionError):
        RateLimited(Concurrent(), 0)


def test_ten_thousand_waiting_calls_are_one_task():
    most = 0

    async def run(_):
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        return FINE

    play(in_order(rate(Concurrent(), 1000), named("a" * 10_000), run))
    assert most <= 4
