import asyncio
from contextlib import suppress

import pytest
from layer_stage import CHUNK, OK, Inside, a_call, answer, forever, read, turns, wrap

from satchel.errors import DefinitionError
from satchel.runtime.middleware import limit_time

SHORT = limit_time(0.01)


def with_clock(main):
    """Run on a loop whose clock goes only when the test says so."""

    async def run():
        now = [1000.0]
        asyncio.get_running_loop().time = lambda: now[0]

        async def pass_by(seconds):
            now[0] += seconds
            await turns()

        await main(pass_by)

    asyncio.run(run())


def test_what_takes_longer_is_cancelled_closed_and_answered():
    inside = Inside([forever, OK])

    async def main():
        result = await answer(SHORT, inside)
        assert (result.error_code, result.is_error, result.call_id) == ("timeout", True, "call-1")
        assert result.text == (
            "probe gave no answer within 0.01 s. Ask for less, or continue without it."
        )
        assert inside.open == 0

    asyncio.run(main())
    assert inside.noted == [asyncio.CancelledError]


def test_other_middleware_inside_are_bounded_too():
    async def slow(call, inner):
        await forever()
        yield OK

    async def main():
        (result,) = [item async for item in wrap(Inside(), [SHORT, slow])(a_call(id=""))]
        assert (result.error_code, result.call_id) == ("timeout", None)

    asyncio.run(main())


def test_the_limit_is_one_for_all_steps_together():
    async def main(pass_by):
        inside = Inside([lambda: pass_by(4), CHUNK, lambda: pass_by(4), CHUNK, lambda: pass_by(4)])
        *chunks, result = await read(limit_time(10), inside)
        assert chunks == [CHUNK, CHUNK]
        assert result.error_code == "timeout"

    with_clock(main)


def test_the_time_that_the_reader_takes_is_not_counted():
    async def main(pass_by):
        results = []
        async for item in limit_time(10)(a_call(), Inside([lambda: pass_by(9), CHUNK, OK])):
            results.append(item)
            await pass_by(3600)
        assert results == [CHUNK, OK]

    with_clock(main)


def test_an_inside_that_catches_the_cancellation_and_continues_is_too_late_all_the_same():
    closed = []

    async def stubborn(call):
        try:
            try:
                await forever()
            except asyncio.CancelledError:
                yield OK
        finally:
            closed.append(call)

    async def main():
        result = await answer(SHORT, stubborn)
        assert result.error_code == "timeout"
        assert closed

    asyncio.run(main())


def test_a_cancellation_by_the_host_is_no_timeout():
    async def main():
        task = asyncio.create_task(read(limit_time(3600), Inside([forever])))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_a_cancellation_by_the_host_counts_also_when_the_time_is_up(is_stubborn):
    async def inside(call):
        try:
            await forever()
        except asyncio.CancelledError:
            asyncio.current_task().cancel()  # the host, just now
            if not is_stubborn:
                raise
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        yield OK

    async def main():
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(read(SHORT, inside))

    asyncio.run(main())


def test_a_timeout_error_of_the_inside_is_not_mistaken_for_the_time_limit():
    with pytest.raises(TimeoutError, match="theirs"):
        asyncio.run(read(limit_time(3600), Inside([TimeoutError("theirs")])))


def test_afterwards_the_task_is_not_cancelled_any_more():
    async def main():
        await read(SHORT, Inside([forever]))
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_that_cannot_be_kept_is_refused(seconds):
    with pytest.raises(DefinitionError, match="cannot be kept"):
        limit_time(seconds)
