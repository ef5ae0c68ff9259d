"""Running any kind of callable, without holding up the event loop.

`asyncio` is imported where it is used: it takes longer to import than all of this room, and
whoever awaits something has it already.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import closing, suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any

from satchel.tools.signatures import innermost

MOST_IDLE = 16
"""How many threads are kept for the next calls; how many may run at once has no bound."""

AHEAD = 16
"""How many items a generator may be ahead of whoever takes them."""


def runs_on_loop(fn: Callable[..., Any]) -> bool:
    """Tell whether calling `fn` gives something to go on with at once, rather than working."""
    fn = innermost(fn)
    return (
        inspect.iscoroutinefunction(fn)
        or inspect.isasyncgenfunction(fn)
        or inspect.isgeneratorfunction(fn)
    )


async def called(fn: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the host, which may be async, or else may block."""
    value = fn(*arguments) if runs_on_loop(fn) else await in_thread(partial(fn, *arguments))
    while inspect.isawaitable(value):
        value = await value
    return value


def is_stream(value: Any) -> bool:
    """Tell whether a value is an async iterator of chunks."""
    return inspect.isasyncgen(value) or isinstance(value, AsyncIterator)


class _Threads:
    """Daemon threads for functions that may block; a few idle ones are kept and used again.

    Not an executor of `concurrent.futures`: the interpreter waits for its threads when it ends, and
    a function that hangs would take one of its places. Here it keeps only its own thread.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def run(
        self, fn: Callable[[], Any], report: Callable[[Any, BaseException | None], object]
    ) -> None:
        """Call `fn` in a thread, and there `report` with its value or its exception."""
        while self._idle:
            try:
                worker = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if worker.is_alive():  # in a forked child it is not
                worker.jobs.put((fn, report))
                return
        worker = _Worker(self._idle)
        worker.jobs.put((fn, report))
        worker.start()


class _Worker(Thread):
    """One thread that runs a job after another, and rests in a list in between."""

    def __init__(self, idle: "list[_Worker]") -> None:
        super().__init__(name="satchel-tool", daemon=True)
        self.jobs: SimpleQueue[Any] = SimpleQueue()
        self._idle = idle

    def run(self) -> None:
        while self._work():
            pass

    def _work(self) -> bool:
        fn, report = self.jobs.get()
        value, problem = None, None
        try:
            value = fn()
        except BaseException as raised:
            # Any: an exception that ends a thread silently would leave the caller waiting for ever.
            problem = raised
        is_kept = len(self._idle) < MOST_IDLE
        if is_kept:
            # Before the report: the next call may come at once, and can have this thread.
            self._idle.append(self)
        with suppress(RuntimeError):  # the loop was closed meanwhile; nobody waits any more
            report(value, problem)
        return is_kept


_THREADS = _Threads()


async def in_thread(fn: Callable[[], Any]) -> Any:
    """Run a blocking function in a daemon thread, with the caller's context variables.

    Cancelling does not end the function; it goes on in its thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(value: Any, problem: BaseException | None) -> None:
        if not done.done():  # cancelled: nobody waits any more
            done.set_result((value, problem))

    def report(value: Any, problem: BaseException | None) -> None:
        loop.call_soon_threadsafe(settle, value, problem)

    _THREADS.run(partial(copy_context().run, fn), report)
    value, problem = await done
    if problem is not None:
        # Raised here, not set on the future: a future takes no StopIteration.
        raise problem
    return value


async def iterate_in_thread(items: Generator[Any, Any, Any]) -> AsyncGenerator[Any, None]:
    """Draw the items of a generator in one thread, which may hold things of its own.

    When the reader stops, the generator ends at its next item.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    told: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
    room, stopped = Semaphore(AHEAD), Event()

    def work() -> None:
        with closing(items):
            room.acquire()
            for item in items:
                loop.call_soon_threadsafe(told.put_nowait, (True, item))
                room.acquire()
                if stopped.is_set():
                    break

    def report(_value: None, problem: BaseException | None) -> None:
        loop.call_soon_threadsafe(told.put_nowait, (False, problem))

    _THREADS.run(partial(copy_context().run, work), report)
    try:
        while True:
            more, value = await told.get()
            if not more:
                break
            yield value
            room.release()
    finally:
        stopped.set()
        room.release()
    if value is not None:
        raise value
