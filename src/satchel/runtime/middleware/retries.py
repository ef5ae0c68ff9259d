"""Calling again what failed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from random import random

from satchel.errors import DefinitionError
from satchel.runtime.middleware.tool_hints import tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall, ToolResult

_DOUBLINGS = 60


def backoff(
    first: float = 0.5, longest: float = 30.0, *, chance: Callable[[], float] = random
) -> Callable[[int], float]:
    """Make waits that double each time; how much of the second half is waited, chance decides.

    Otherwise all who failed together would come back together.
    """

    def seconds(failed: int) -> float:
        whole: float = min(longest, first * 2 ** min(failed - 1, _DOUBLINGS))
        return whole * (1 + chance()) / 2

    return seconds


def retry(
    attempts: int = 3,
    *,
    wait: Callable[[int], float] | None = None,
    codes: Iterable[str] = ("tool_failed", "timeout"),
    sleep: Callable[[float], Awaitable[object]] | None = None,
) -> Middleware:
    """Call an idempotent tool again if its error has one of the codes; others are called once.

    `wait` says how many seconds to wait after so many failures; by default `backoff()`. Once a
    chunk was passed on, the call is not repeated: what was told cannot be unsaid. The metadata
    of the result holds the number of `attempts`.
    """
    if attempts < 1:
        raise DefinitionError(f"a call cannot be tried {attempts} times")
    pause = backoff() if wait is None else wait
    worth = frozenset(codes)

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        import asyncio

        tool = tool_of(call)
        most = attempts if tool is not None and tool.idempotent else 1
        attempt = 0
        while True:
            attempt += 1
            is_final, again = attempt == most, False
            async with opened(inner, call) as items:
                async for item in items:
                    if not isinstance(item, ToolResult):
                        is_final = True
                        yield item
                    elif not is_final and item.error_code in worth and not item.is_interrupted:
                        again = True
                        break
                    else:
                        yield replace(item, metadata={**item.metadata, "attempts": attempt})
            if not again:
                return
            await (sleep or asyncio.sleep)(pause(attempt))

    return layer
