import asyncio

import pytest
from layer_stage import CHUNK, OK, Inside, a_call

from satchel.runtime.stream_opening import opened


async def broken_off(inside):
    async with opened(inside, a_call()) as items:
        await anext(items)
        raise LookupError


def test_what_was_opened_is_closed_however_the_block_is_left():
    async def main():
        inside = Inside([CHUNK, OK])
        async with opened(inside, a_call()) as items:
            async for _ in items:
                break
        assert inside.open == 0
        with pytest.raises(LookupError):
            await broken_off(inside)
        assert inside.open == 0

    asyncio.run(main())
