import asyncio
from dataclasses import replace

import pytest
from layer_stage import Clock, Inside, a_call, a_tool, read, turns

from satchel.errors import DefinitionError
from satchel.runtime.middleware import limit_rate


class Notes(Inside):
    """Notes when which call began."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.began = clock, []

    def __call__(self, call):
        self.began.append((round(self.clock.now - 1000, 6), call.id))
        return super().__call__(call)


def paced(count, per_second, burst=1):
    clock = Clock()
    layer, inside = limit_rate(per_second, burst, clock=clock, sleep=clock.sleep), Notes(clock)

    async def main():
        calls = [a_call(id=str(number)) for number in range(count)]
        await asyncio.gather(*(read(layer, inside, call) for call in calls))

    asyncio.run(main())
    return inside.began


def test_calls_go_evenly_in_the_order_in_which_they_came():
    assert paced(4, 2) == [(0, "0"), (0.5, "1"), (1, "2"), (1.5, "3")]


def test_a_burst_goes_at_once():
    assert paced(5, 1, burst=3) == [(0, "0"), (0, "1"), (0, "2"), (1, "3"), (2, "4")]


def test_rates_that_do_not_divide_evenly_keep_no_one_waiting_for_ever():
    assert len(paced(50, 3)) == 50


def test_after_a_quiet_time_there_is_one_burst_and_not_more():
    clock = Clock()
    layer, inside = limit_rate(1, 2, clock=clock, sleep=clock.sleep), Notes(clock)

    async def main():
        await read(layer, inside)
        clock.now += 3600
        for _ in range(3):
            await read(layer, inside)

    asyncio.run(main())
    assert [at for at, _ in inside.began] == [0, 3600, 3600, 3601]


def test_each_tool_has_its_own_limit():
    clock = Clock()
    layer, inside = limit_rate(1, clock=clock, sleep=clock.sleep), Inside()

    async def main():
        await read(layer, inside)
        await read(layer, inside, a_call(a_tool(name="other")))

    asyncio.run(main())
    assert clock.slept == []


def test_names_that_are_no_tools_wait_for_nothing():
    clock = Clock()
    layer, unknown = limit_rate(1, clock=clock, sleep=clock.sleep), replace(a_call(), tool=None)

    async def main():
        for _ in range(3):
            await read(layer, Inside(), unknown)

    asyncio.run(main())
    assert clock.slept == []


@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_call_that_is_cancelled_while_it_waits_gives_its_place_away(cancelled):
    clock, gate = Clock(), []
    inside = Notes(clock)

    async def sleep(seconds):
        gate.append(asyncio.Event())
        await gate[-1].wait()
        clock.now += seconds

    layer = limit_rate(1, clock=clock, sleep=sleep)

    async def main():
        calls = [a_call(id=str(number)) for number in range(4)]
        tasks = [asyncio.create_task(read(layer, inside, call)) for call in calls]
        await turns()
        tasks[cancelled].cancel()
        while len(inside.began) < 3:
            await turns()
            gate[-1].set()
        with pytest.raises(asyncio.CancelledError):
            await tasks[cancelled]

    asyncio.run(main())
    others = [str(number) for number in range(4) if number != cancelled]
    assert inside.began == list(zip([0, 1, 2], others, strict=True))


def test_the_place_of_a_reader_that_leaves_was_used():
    clock = Clock()
    layer, inside = limit_rate(1, clock=clock, sleep=clock.sleep), Inside()

    async def main():
        items = layer(a_call(), inside)
        await anext(items)
        await items.aclose()
        await read(layer, inside)

    asyncio.run(main())
    assert clock.slept == [1]


def test_the_limit_continues_in_the_next_event_loop():
    clock = Clock()
    layer, inside = limit_rate(1, clock=clock, sleep=clock.sleep), Notes(clock)

    async def main():
        await asyncio.gather(*(read(layer, inside) for _ in range(2)))

    asyncio.run(main())
    asyncio.run(main())
    assert [at for at, _ in inside.began] == [0, 1, 2, 3]


def test_without_a_clock_it_is_the_real_one():
    async def main():
        loop = asyncio.get_running_loop()
        begun, layer = loop.time(), limit_rate(100)
        for _ in range(3):
            await read(layer, Inside())
        assert loop.time() - begun > 0.015

    asyncio.run(main())


@pytest.mark.parametrize("per_second", [0, -1, float("nan")])
def test_a_rate_that_cannot_be_kept_is_refused(per_second):
    with pytest.raises(DefinitionError, match="would never let"):
        limit_rate(per_second)


def test_a_burst_of_none_is_refused():
    with pytest.raises(DefinitionError, match="would never let"):
        limit_rate(1, 0)
