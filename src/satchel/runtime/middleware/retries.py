"""Middleware that retries failed calls."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from random import random

from satchel.errors import DefinitionError
from satchel.runtime.middleware.tool_hints import tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall, ToolResult

_MAX_DOUBLINGS = 60


def backoff(
    first: float = 0.5, longest: float = 30.0, *, chance: Callable[[], float] = random
) -> Callable[[int], float]:
    """Return waits that double after each failure, at random between half and all of that time.

    The random part keeps calls that failed together from being retried together.
    """

    def seconds(failed: int) -> float:
        whole: float = min(longest, first * 2 ** min(failed - 1, _MAX_DOUBLINGS))
        return whole * (1 + chance()) / 2

    return seconds


def retry(
    attempts: int = 3,
    *,
    wait: Callable[[int], float] | None = None,
    codes: Iterable[str] = ("tool_failed", "timeout"),
    sleep: Callable[[float], Awaitable[object]] | None = None,
) -> Middleware:
    """Retry the calls of idempotent tools whose error has one of the codes.

    `wait` returns the seconds to wait after a number of failures; by default `backoff()`. A call
    that has yielded a chunk is not retried: the reader has the chunk already. The metadata of
    the result has the number of `attempts`.
    """
    if attempts < 1:
        raise DefinitionError(f"a call cannot be tried {attempts} times")
    pause = backoff() if wait is None else wait
    retried_codes = frozenset(codes)

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        import asyncio

        tool = tool_of(call)
        max_attempts = attempts if tool is not None and tool.idempotent else 1
        attempt = 0
        while True:
            attempt += 1
            is_final, is_retried = attempt == max_attempts, False
            async with opened(inner, call) as items:
                async for item in items:
                    if not isinstance(item, ToolResult):
                        is_final = True
                        yield item
                    elif (
                        not is_final
                        and item.error_code in retried_codes
                        and not item.is_interrupted
                    ):
                        is_retried = True
                        break
                    else:
                        yield replace(item, metadata={**item.metadata, "attempts": attempt})
            if not is_retried:
                return
            await (sleep or asyncio.sleep)(pause(attempt))

    return middleware
