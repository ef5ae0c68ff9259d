import asyncio
from dataclasses import replace

import pytest
from stage import FAILED, FINE, Stage, in_order, now, play, some_calls

from satchel.errors import DefinitionError
from satchel.runtime.executors import (
    CircuitBreaker,
    Concurrent,
    RateLimited,
    Sequential,
)
from satchel.tools import failure

SLOW = failure("timeout", "too slow")
WRONG = failure("invalid_arguments", "wrong")
ENDED = replace(FAILED, is_interrupted=True)
CANCELLED = replace(FINE, is_interrupted=True)


def breaker(inner=None, failures=3, rest=30.0, **options):
    return CircuitBreaker(inner or Sequential(), failures, rest, clock=now, **options)


def answering(*results, **options):
    return some_calls(*({"result": result, **options} for result in results))


async def codes(executor, *results, stage=None, **options):
    """Tell the error codes of calls that would have these results."""
    got = await in_order(executor, answering(*results, **options), (stage or Stage()).run)
    return [result.error_code for result in got]


FAILURE, OPEN, FINE_CODE = "tool_failed", "circuit_open", None


def test_a_tool_that_fails_again_and_again_is_not_called_for_a_while():
    stage = Stage()
    messages = play(codes(breaker(), *[FAILED] * 3, FINE, FINE, stage=stage))
    assert messages == [FAILURE, FAILURE, FAILURE, OPEN, OPEN]
    assert stage.begun == list("012")


def test_the_model_learns_how_long_and_what_else_to_do():
    async def main():
        executor = breaker(failures=1, rest=30)
        await codes(executor, FAILED)
        await asyncio.sleep(17.5)
        [result] = await in_order(executor, some_calls(0), Stage().run)
        assert result.is_error
        assert result.call_id == "0"
        assert result.text == (
            "probe failed once and is tried again in 13 s; use another tool, or continue without it"
        )

    play(main())


def test_a_success_in_between_begins_the_count_again():
    messages = play(codes(breaker(), FAILED, SLOW, FINE, FAILED, SLOW, FINE))
    assert OPEN not in messages


@pytest.mark.parametrize("result", [WRONG, ENDED, CANCELLED, failure("denied", "no")])
def test_what_says_nothing_about_the_tool_does_not_count(result):
    messages = play(codes(breaker(failures=2), FAILED, result, result, result, FAILED, FINE))
    assert messages[-2:] == [FAILURE, OPEN]


def test_which_codes_count_can_be_chosen():
    executor = breaker(failures=1, counts={"invalid_arguments"})
    assert play(codes(executor, FAILED, WRONG, FINE))[-1] == OPEN


def test_a_call_that_raises_counts_as_failed(caplog):
    calls = some_calls({"problem": ValueError()}, 0)
    results = play(in_order(breaker(failures=1), calls, Stage().run))
    assert [result.error_code for result in results] == [FAILURE, OPEN]
    assert len(caplog.records) == 1


def test_other_tools_are_not_touched():
    calls = some_calls(
        {"name": "a", "result": FAILED}, {"name": "a", "result": FINE}, {"name": "b"}
    )
    results = play(in_order(breaker(failures=1), calls, Stage().run))
    assert [result.error_code for result in results] == [FAILURE, OPEN, FINE_CODE]


async def rested(executor, failures=3):
    await codes(executor, *[FAILED] * failures)
    await asyncio.sleep(30)


def test_after_the_rest_a_success_makes_all_well_again():
    async def main():
        executor = breaker()
        await rested(executor)
        assert await codes(executor, FINE, FAILED, FAILED, FINE, FAILED) == [
            *(None, FAILURE, FAILURE, None, FAILURE)
        ]

    play(main())


def test_after_the_rest_a_failure_begins_another():
    async def main():
        executor = breaker()
        await rested(executor)
        assert await codes(executor, FAILED, FINE) == [FAILURE, OPEN]
        await asyncio.sleep(29)
        assert await codes(executor, FINE) == [OPEN]
        await asyncio.sleep(1)
        assert await codes(executor, FINE, FINE) == [None, None]

    play(main())


def test_after_the_rest_what_says_nothing_lets_the_next_one_try():
    async def main():
        executor = breaker()
        await rested(executor)
        assert await codes(executor, WRONG, ENDED, FINE) == ["invalid_arguments", FAILURE, None]

    play(main())


def test_after_the_rest_only_one_call_is_let_through():
    async def main():
        executor, stage = breaker(Concurrent()), Stage()
        await rested(executor)
        results = await in_order(executor, answering(*[FINE] * 3, seconds=5), stage.run)
        assert [result.error_code for result in results] == [None, OPEN, OPEN]
        assert (
            "failed 3 times in a row and is tried again by another call at this moment"
            in results[1].text
        )
        assert stage.begun == ["0"]

    play(main())


def test_a_trial_that_is_cancelled_lets_the_next_one_try():
    async def main():
        executor = breaker()
        await rested(executor)
        trial = asyncio.create_task(codes(executor, FINE, seconds=None))
        await asyncio.sleep(1)
        assert await codes(executor, FINE) == [OPEN]
        trial.cancel()
        await asyncio.wait([trial])
        assert await codes(executor, FINE) == [None]

    play(main())


def test_a_call_that_began_before_the_rest_reports_nothing_when_it_ends():
    async def main():
        executor = breaker(Concurrent(), failures=1)
        late = [
            asyncio.create_task(codes(executor, result, seconds=seconds))
            for result, seconds in [(FINE, 5), (FAILED, 6), (FAILED, 40)]
        ]
        await asyncio.sleep(1)
        await codes(executor, FAILED)
        await asyncio.sleep(10)
        assert await codes(executor, FINE) == [OPEN]
        await asyncio.sleep(20)
        assert await codes(executor, FINE) == [None]
        await asyncio.wait(late)
        assert await codes(executor, FINE) == [None]

    play(main())


def test_it_works_in_one_loop_after_another():
    moment = 0.0
    executor = CircuitBreaker(Concurrent(), 2, clock=lambda: moment)
    assert play(codes(executor, FAILED)) == [FAILURE]
    assert play(codes(executor, FAILED)) == [FAILURE]
    assert play(codes(executor, FINE)) == [OPEN]
    moment = 30.0
    assert play(codes(executor, FINE)) == [None]


def test_only_tools_that_failed_are_remembered():
    executor = breaker()
    play(codes(executor, FINE, WRONG))
    assert executor._circuits == {}


def test_what_is_answered_here_waits_for_no_turn():
    async def main():
        executor = RateLimited(breaker(failures=1), 0.1, clock=now)
        assert await codes(executor, FAILED, FINE, FINE, FINE) == [FAILURE, OPEN, OPEN, OPEN]
        assert now() == 0
        await asyncio.sleep(30)
        assert await codes(executor, FINE, FINE) == [None, None]
        assert now() == 40

    play(main())


class Plain:
    """Somebody's own executor, which knows nothing of gates."""

    async def stream(self, calls, run):
        for index, call in enumerate(calls):
            yield index, await run(call)


def test_it_waits_for_no_turn_in_an_executor_without_limits_either():
    async def main():
        executor = RateLimited(breaker(Plain(), failures=1), 0.1, clock=now)
        assert await codes(executor, FINE, FAILED, FINE) == [None, FAILURE, OPEN]
        assert now() == 10

    play(main())


def test_a_number_of_failures_that_cannot_be_is_refused():
    with pytest.raises(DefinitionError, match="after 0 failures"):
        CircuitBreaker(Concurrent(), failures=0)


@pytest.mark.parametrize("rest", [0, -1, float("nan")])
def test_an_invalid_rest_is_refused(rest):
    with pytest.raises(DefinitionError, match="must be positive"):
        CircuitBreaker(Concurrent(), rest=rest)


def test_a_reset_lets_one_tool_or_all_run_again():
    async def main():
        executor = breaker(failures=1)
        await codes(executor, FAILED)
        assert await codes(executor, FINE) == [OPEN]
        executor.reset("another")
        assert await codes(executor, FINE) == [OPEN]
        executor.reset("probe")
        assert await codes(executor, FAILED) == [FAILURE]
        executor.reset()
        assert await codes(executor, FINE) == [None]

    play(main())
