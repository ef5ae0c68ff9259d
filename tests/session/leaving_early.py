"""The ways in which a caller stops reading answers before their end."""

import asyncio
from contextlib import aclosing, suppress


async def broken_off(answers):
    async for _ in answers:
        break
    del answers


async def raised_out(answers):
    with suppress(ZeroDivisionError):
        async with aclosing(answers):
            async for _ in answers:
                raise ZeroDivisionError


async def closed(answers):
    await anext(answers)
    await answers.aclose()


async def cancelled(answers):
    async def read():
        async for _ in answers:
            reading.set()

    reading = asyncio.Event()
    task = asyncio.create_task(read())
    await reading.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


WAYS_TO_LEAVE = [broken_off, raised_out, closed, cancelled]
