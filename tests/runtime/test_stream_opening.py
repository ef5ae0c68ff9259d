import asyncio
import sys

import pytest
from runs import play

from satchel.runtime.stream_opening import close, first_of, opened
from satchel.tools import ToolCall


def handler(noted):
    async def items(call):
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            noted.append("closed")

    return items


def test_what_was_opened_is_closed_however_the_block_is_left():
    noted = []

    async def main():
        async with opened(handler(noted), ToolCall(name="probe")) as items:
            async for _ in items:
                break
        assert noted == ["closed"]
        with pytest.raises(ValueError, match="mine"):
            async with opened(handler(noted), ToolCall(name="probe")) as items:
                await anext(items)
                raise ValueError("mine")
        assert noted == ["closed"] * 2

    play(main())


def test_what_cannot_be_closed_is_left_alone():
    play(close(object()))


def test_a_generator_of_which_the_loop_knows_nothing_is_closed_by_no_one_else():
    noted = []

    async def main():
        hooks = sys.get_asyncgen_hooks()
        items = handler(noted)(None)
        assert await first_of(items) == 1
        assert sys.get_asyncgen_hooks() == hooks
        await asyncio.get_running_loop().shutdown_asyncgens()
        assert await anext(items) == 2
        await close(items)
        assert noted == ["closed"]

    play(main())


def test_the_first_item_of_what_is_no_generator_is_asked_for_as_ever():
    class Odd:
        def __anext__(self):
            raise StopAsyncIteration

    hooks = sys.get_asyncgen_hooks()
    with pytest.raises(StopAsyncIteration):
        first_of(Odd())
    assert sys.get_asyncgen_hooks() == hooks
