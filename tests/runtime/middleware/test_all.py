"""What holds for every layer: nothing is lost, swallowed or left open."""

import asyncio
from contextlib import aclosing

import pytest
from layer_stage import CHUNK, OK, Inside, a_call, first, forever, read, wrap

from satchel.runtime.middleware import (
    approve,
    authorize,
    cache,
    limit_rate,
    limit_time,
    log_calls,
    measure,
    retry,
    trace,
)

LAYERS = {
    "approve": lambda: approve(lambda _: True),
    "authorize": authorize,
    "cache": cache,
    "cache, but not this call": lambda: cache(which=lambda _: False),
    "limit_rate": lambda: limit_rate(1000),
    "limit_time": lambda: limit_time(3600),
    "log_calls": log_calls,
    "measure": lambda: measure(lambda _: None),
    "retry": retry,
    "trace": trace,
}

every_layer = pytest.mark.parametrize("layer", [make() for make in LAYERS.values()], ids=LAYERS)


@every_layer
def test_chunks_and_result_come_through_in_order(layer):
    chunk, result = asyncio.run(read(layer, Inside([CHUNK, OK])))
    assert chunk is CHUNK
    assert (result.content, result.structured, result.call_id) == (OK.content, {"a": [1]}, "call-1")


@every_layer
def test_the_inside_is_closed_at_once_when_the_reader_stops_early(layer):
    inside = Inside([CHUNK, OK])

    async def main():
        assert await first(layer, inside) is CHUNK
        assert inside.open == 0

    asyncio.run(main())
    assert inside.noted == [GeneratorExit]


@every_layer
def test_the_inside_is_closed_when_the_reader_stops_at_the_result(layer):
    inside = Inside([OK])

    async def main():
        assert (await first(layer, inside)).text == "done"
        assert inside.open == 0

    asyncio.run(main())


@every_layer
def test_an_exception_of_the_inside_comes_through(layer):
    inside = Inside([CHUNK, RuntimeError("odd")])
    with pytest.raises(RuntimeError, match="odd"):
        asyncio.run(read(layer, inside))
    assert inside.open == 0


@every_layer
def test_cancellation_reaches_the_inside_and_all_that_wait(layer):
    begun = asyncio.Event()
    inside = Inside([CHUNK, begun.set, forever, OK])

    async def main():
        task = asyncio.create_task(read(layer, inside))
        await begun.wait()  # an approval comes from a thread
        task.cancel("by the host")
        with pytest.raises(asyncio.CancelledError, match="by the host"):
            await task
        assert inside.open == 0

    asyncio.run(main())
    assert inside.noted == [asyncio.CancelledError]


@every_layer
def test_a_cancellation_that_no_one_asked_the_task_for_comes_through(layer):
    # An interrupted call is ended this way.
    inside = Inside([asyncio.CancelledError("interrupted")])

    async def main():
        with pytest.raises(asyncio.CancelledError, match="interrupted"):
            await read(layer, inside)

    asyncio.run(main())
    assert inside.open == 0


@every_layer
def test_a_handler_that_is_no_generator_will_do(layer):
    class Items:
        def __init__(self, _call):
            self.left = [CHUNK, OK]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    assert len(asyncio.run(read(layer, Items))) == 2


@every_layer
def test_an_inside_without_a_result_ends_without_one(layer):
    assert asyncio.run(read(layer, Inside([CHUNK]))) == [CHUNK]


@every_layer
def test_one_middleware_serves_several_event_loops_one_after_another(layer):
    async def main():
        inside = Inside([lambda: asyncio.sleep(0), OK])
        calls = [a_call(arguments={"n": n}) for n in range(3)]
        results = await asyncio.gather(*(read(layer, inside, call) for call in calls))
        assert [len(items) for items in results] == [1, 1, 1]

    asyncio.run(main())
    asyncio.run(main())


@every_layer
def test_each_step_may_be_taken_by_another_task(layer):
    inside = Inside([CHUNK, OK])

    async def main():
        async with aclosing(layer(a_call(), inside)) as items:
            for _ in range(2):
                await asyncio.create_task(anext(items))

    asyncio.run(main())
    assert inside.open == 0


@every_layer
def test_a_call_of_no_known_tool_comes_through(layer):
    from dataclasses import replace

    unknown = replace(a_call(), tool=None)
    assert len(asyncio.run(read(layer, Inside([OK]), unknown))) == 1


def test_all_middleware_together_pass_a_call_through_and_close():
    async def main():
        inside = Inside([CHUNK, OK])
        handler = wrap(inside, [make() for make in LAYERS.values()])
        items = [item async for item in handler(a_call())]
        assert items[0] is CHUNK
        assert items[1].text == "done"
        async with aclosing(handler(a_call(arguments={"n": 2}))) as other:
            await anext(other)
        assert inside.open == 0

    asyncio.run(main())
