"""Middleware that limits the calls of each tool per second."""

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
    """Limit the calls of each tool per second; a call that comes too early waits.

    After a pause, `burst` calls may start at once. Within one event loop, the call that waited
    longest is next; a call that is cancelled while it waits loses its turn. All sessions that share
    the middleware share the limit. To limit the calls of one model step, use the executor
    `RateLimited`.

    Raises `DefinitionError` for a rate or a burst that would never let a call start.
    """
    limiter = RateLimiter(per_second, burst, clock=clock, sleep=sleep)

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        if call.tool is not None:  # without a tool nothing will run
            await limiter.wait(call.name)
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    return middleware
