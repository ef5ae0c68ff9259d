"""A limit to the time that everything inside takes."""

from collections.abc import AsyncIterator

from satchel.errors import DefinitionError
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line
from satchel.tools import Item, ToolCall, failure


def limit_time(seconds: float) -> Middleware:
    """Answer with the code `timeout` if the inside takes longer, and close it.

    Counted is the time that is spent inside, other layers included; what whoever reads the
    chunks does between them takes nothing away from the tool.
    """
    if not seconds > 0:  # not "<= 0": that would let NaN pass
        raise DefinitionError(f"a limit of {seconds} seconds cannot be kept")

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        import asyncio

        now, left = asyncio.get_running_loop().time, seconds
        async with opened(inner, call) as items:
            while True:
                # Each wait has a limit of its own: one that spans a `yield` would cancel
                # whoever reads, and the next step may be taken by another task.
                task = asyncio.current_task()
                assert task is not None  # whoever waits for an item is a task
                begun, cancels = now(), task.cancelling()
                limit = asyncio.timeout(left)
                try:
                    async with limit:
                        item = await anext(items, None)
                except TimeoutError:
                    if not limit.expired():
                        raise  # somebody else's
                if limit.expired():
                    if task.cancelling() > cancels:
                        raise asyncio.CancelledError  # the host meant it, too
                    break  # also if the inside caught the cancellation and went on
                if item is None:
                    return
                left -= now() - begun
                yield item
        told = f"{one_line(call.name)} gave no answer within {seconds:g} s"
        yield failure("timeout", f"{told}; ask for less, or go on without", call.id or None)

    return layer
