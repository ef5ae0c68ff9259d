"""Run any kind of callable without blocking the event loop.

`asyncio` is imported where it is used: it takes longer to import than this whole package, and
code that awaits has imported it already.
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

MAX_IDLE_THREADS = 16
"""How many idle threads are kept; the number of busy threads has no limit."""

MAX_AHEAD = 16
"""How many items a generator may be ahead of its reader."""


def runs_on_loop(fn: Callable[..., Any]) -> bool:
    """Return whether `fn` is async or a generator, so that calling it does no work yet."""
    fn = innermost(fn)
    return (
        inspect.iscoroutinefunction(fn)
        or inspect.isasyncgenfunction(fn)
        or inspect.isgeneratorfunction(fn)
    )


async def called(fn: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the host; one that is not async runs in a thread."""
    value = fn(*arguments) if runs_on_loop(fn) else await in_thread(partial(fn, *arguments))
    while inspect.isawaitable(value):
        value = await value
    return value


def is_stream(value: Any) -> bool:
    """Return whether a value is an async iterator of chunks."""
    return inspect.isasyncgen(value) or isinstance(value, AsyncIterator)


class _Threads:
    """Daemon threads for functions that may block; some idle threads are kept for reuse.

    Not `concurrent.futures`: the interpreter waits for its threads at exit, and a function that
    hangs would take one of a limited number. Here it keeps only its own thread.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def run(
        self, fn: Callable[[], Any], report: Callable[[Any, BaseException | None], object]
    ) -> None:
        """Call `fn` in a thread, then `report` with its value or its exception."""
        while self._idle:
            try:
                worker = self._idle.pop()
            except IndexError:  # another thread took it
                break
            if worker.is_alive():  # threads of the parent are dead in a forked child
                worker.jobs.put((fn, report))
                return
        worker = _Worker(self._idle)
        worker.jobs.put((fn, report))
        worker.start()


class _Worker(Thread):
    """One thread that runs jobs one after another; between them it is in the idle list."""

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
            # Any: otherwise the caller would wait forever.
            problem = raised
        is_kept = len(self._idle) < MAX_IDLE_THREADS
        if is_kept:
            # Before the report, so that the next call can reuse this thread at once.
            self._idle.append(self)
        with suppress(RuntimeError):  # the loop is closed, so no caller waits
            report(value, problem)
        return is_kept


_THREADS = _Threads()


async def in_thread(fn: Callable[[], Any]) -> Any:
    """Run a blocking function in a daemon thread, with the caller's context variables.

    Cancelling does not end the function; it continues in its thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(value: Any, problem: BaseException | None) -> None:
        if not done.done():  # the caller may have been cancelled
            done.set_result((value, problem))

    def report(value: Any, problem: BaseException | None) -> None:
        loop.call_soon_threadsafe(settle, value, problem)

    _THREADS.run(partial(copy_context().run, fn), report)
    value, problem = await done
    if problem is not None:
        # Raised here: a future does not accept StopIteration.
        raise problem
    return value


async def iterate_in_thread(items: Generator[Any, Any, Any]) -> AsyncGenerator[Any, None]:
    """Yield the items of a generator that runs in one thread.

    When the reader stops, the generator ends at its next item.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
    space, stopped = Semaphore(MAX_AHEAD), Event()

    def work() -> None:
        with closing(items):
            space.acquire()
            for item in items:
                loop.call_soon_threadsafe(queue.put_nowait, (True, item))
                space.acquire()
                if stopped.is_set():
                    break

    def report(_value: None, problem: BaseException | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, (False, problem))

    _THREADS.run(partial(copy_context().run, work), report)
    try:
        while True:
            is_item, value = await queue.get()
            if not is_item:
                break
            yield value
            space.release()
    finally:
        stopped.set()
        space.release()
    if value is not None:
        raise value
