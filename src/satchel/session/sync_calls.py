"""Calls for hosts without an event loop: all run on one loop, in a thread of the satchel.

With `asyncio.run` for each call, a tool that keeps a lock or a connection of one loop would fail
or hang in the next.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from satchel.errors import ConflictError, SatchelError
from satchel.runtime.event_loop_thread import EventLoopThread

T = TypeVar("T")


def run_sync(loop: EventLoopThread, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and wait for it; an interrupt of the wait cancels it."""
    try:
        _require_no_loop(loop)
    except ConflictError:
        work.close()
        raise
    future = loop.begin(work)
    try:
        return _result_of(future)
    except BaseException:
        future.cancel()
        raise


def _result_of(future: "Future[T]") -> T:
    """Return the result; a call that was not cancelled here was ended with its loop."""
    try:
        return future.result()
    except CancelledError:
        raise SatchelError(
            "the satchel was closed while the call ran", fix="close it after the last call"
        ) from None


def stream_sync(loop: EventLoopThread, items: AsyncIterator[T]) -> Iterator[T]:
    """Yield what an asynchronous iterator yields on the loop; leaving early ends it."""
    _require_no_loop(loop)
    queue: SimpleQueue[T | None] = SimpleQueue()

    async def pump() -> None:
        try:
            async with aclosing(items):  # type: ignore[type-var]
                async for item in items:
                    queue.put(item)
        finally:
            queue.put(None)

    return _drain(loop, pump, queue)


def _drain(
    loop: EventLoopThread,
    pump: Callable[[], Coroutine[Any, Any, None]],
    queue: "SimpleQueue[T | None]",
) -> Iterator[T]:
    """Yield from the queue; a generator, so nothing starts before the first item is asked for."""
    future = loop.begin(pump())
    try:
        while (item := queue.get()) is not None:
            yield item
        _result_of(future)
    finally:
        if future.cancel():
            with suppress(BaseException):
                future.result()


def _require_no_loop(loop: EventLoopThread) -> None:
    """Raise `ConflictError` where waiting would block an event loop, perhaps for ever."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if not loop.is_here:
            return
    raise ConflictError(
        "an event loop runs in this thread, and waiting here would block it",
        fix="await call, execute or stream instead",
    )
