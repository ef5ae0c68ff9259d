"""So many calls a second, and no more."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable

from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.rate_limiter import RateLimiter, pause
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall


def limit_rate(
    per_second: float,
    burst: int = 1,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = pause,
) -> Middleware:
    """Let each tool be called so many times a second; a call that comes too early waits.

    `burst` calls may come at once after a quiet time. Who waits longest is next, within one
    event loop; a call that is cancelled while it waits gives its place away. The limit is one for
    all sessions that share the layer. To limit how fast the calls of one model step begin, there
    is the executor `RateLimited`.

    Raises `DefinitionError` for a rate or a burst that would never let a call go.
    """
    turns = RateLimiter(per_second, burst, clock=clock, sleep=sleep)

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        if call.tool is not None:  # what nobody can call need not wait
            await turns.wait(call.name)
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    return layer
