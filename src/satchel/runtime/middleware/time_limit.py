"""Middleware that limits the time of everything inside it."""

from collections.abc import AsyncIterator

from satchel.errors import DefinitionError
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line
from satchel.tools import Item, ToolCall, failure


def limit_time(seconds: float) -> Middleware:
    """Answer with the code `timeout` if everything inside takes longer, and close it.

    The clock runs while the tool or other middleware inside works, not while the reader of the
    chunks does.
    """
    if not seconds > 0:  # `<= 0` would accept NaN
        raise DefinitionError(f"a limit of {seconds} seconds cannot be kept")

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        import asyncio

        now, left = asyncio.get_running_loop().time, seconds
        async with opened(inner, call) as items:
            while True:
                # Each wait has a limit of its own: a limit around a `yield` would cancel the
                # reader, and another task may take the next step.
                task = asyncio.current_task()
                assert task is not None  # only a task can wait for an item
                started, cancels = now(), task.cancelling()
                limit = asyncio.timeout(left)
                try:
                    async with limit:
                        item = await anext(items, None)
                except TimeoutError:
                    if not limit.expired():
                        raise  # raised by another time limit
                if limit.expired():
                    if task.cancelling() > cancels:
                        raise asyncio.CancelledError  # the host has cancelled, too
                    break  # also if the tool caught the cancellation and continued
                if item is None:
                    return
                left -= now() - started
                yield item
        limit_text = f"{one_line(call.name)} gave no answer within {seconds:g} s"
        message = f"{limit_text}. Ask for less, or continue without it."
        yield failure("timeout", message, call.id or None)

    return middleware
