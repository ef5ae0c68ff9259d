import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import FAILED, FINE, Stage, in_order, now, play, some_calls

from satchel.runtime.executors import (
    CircuitBreaker,
    Concurrent,
    RateLimited,
    Sequential,
)
from satchel.tools import failure


def breaking(inner, failures):
    return CircuitBreaker(inner, failures, rest=3, clock=now)


def limited(inner, rate, burst):
    return RateLimited(inner, {"a": rate, "b": 2.0}, burst, clock=now)


executors = st.recursive(
    st.builds(Concurrent, st.integers(1, 4)) | st.just(Sequential()),
    lambda inner: (
        st.builds(breaking, inner, st.integers(1, 3))
        | st.builds(limited, inner, st.sampled_from([0.5, 1.0, 4.0]), st.integers(1, 2))
    ),
    max_leaves=3,
)
message = st.fixed_dictionaries(
    {"name": st.sampled_from("abc"), "seconds": st.integers(0, 4), "cleanup": st.integers(0, 2)},
    optional={
        "problem": st.builds(ValueError) | st.builds(asyncio.CancelledError),
        "result": st.sampled_from([FINE, FAILED, failure("denied", "no")]),
    },
)
several = st.lists(message, max_size=12).map(lambda items: some_calls(*items))


@given(executors, several)
def test_each_call_is_answered_exactly_once(executor, calls):
    async def main():
        stage = Stage()
        answers = [item async for item in executor.stream(calls, stage.run)]
        assert sorted(index for index, _ in answers) == list(range(len(calls)))
        assert stage.running == 0
        assert len(set(stage.begun)) == len(stage.begun)

    play(main())


@given(executors, several)
def test_results_are_in_the_order_of_the_calls(executor, calls):
    async def run(call):
        await asyncio.sleep(call.arguments["seconds"])
        return failure("denied", call.id)

    results = play(in_order(executor, calls, run))
    assert [result.text for result in results] == [call.id for call in calls]


@given(executors, several, st.integers(0, 6))
def test_a_caller_that_leaves_after_some_answers_leaves_nothing_behind(executor, calls, enough):
    async def main():
        stage, answers = Stage(), []
        async with aclosing(executor.stream(calls, stage.run)) as stream:
            async for item in stream:
                answers.append(item)
                if len(answers) >= enough:
                    break
        assert stage.running == 0
        assert len({index for index, _ in answers}) == len(answers)
        begun = list(stage.begun)
        await asyncio.sleep(100)
        assert stage.begun == begun

    play(main())


@given(executors, several, st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_a_caller_that_is_cancelled_at_any_moment_leaves_nothing_behind(executor, calls, waits):
    async def main():
        stage = Stage()
        reader = asyncio.create_task(in_order(executor, calls, stage.run))
        for seconds in waits:
            await asyncio.sleep(seconds)
            reader.cancel()
        await asyncio.wait([reader])
        assert reader.cancelled() or len(reader.result()) == len(calls)
        assert stage.running == 0

    play(main())


def test_a_cancellation_passes_through():
    async def main():
        reader = asyncio.create_task(in_order(Sequential(), some_calls(None), Stage().run))
        await asyncio.sleep(1)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    play(main())
