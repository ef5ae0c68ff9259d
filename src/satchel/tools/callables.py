"""Running any kind of callable, without holding up the event loop.

`asyncio` is imported where it is used: it takes longer to import than all of this room, and
whoever awaits something has it already.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import closing, suppress
from contextvars import copy_context
from threading import Event, Semaphore, Thread
from typing import Any

from satchel.tools.signatures import innermost

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


async def run_callable(call: Callable[[], Any], *, on_loop: bool) -> Any:
    """Call, and go on until there is a value or an async iterator of chunks."""
    value = call() if on_loop else await in_thread(call)
    while inspect.isawaitable(value):
        value = await value
    return iterate_in_thread(value) if inspect.isgenerator(value) else value


def is_stream(value: Any) -> bool:
    """Tell whether a value is an async iterator of chunks."""
    return inspect.isasyncgen(value) or isinstance(value, AsyncIterator)


async def in_thread(fn: Callable[[], Any]) -> Any:
    """Run a blocking function in a thread of its own, with the caller's context variables.

    Not `asyncio.to_thread`: its threads are waited for when the loop and the interpreter end,
    so one function that never returns would keep the process alive.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def settle(value: Any, problem: BaseException | None) -> None:
        if not done.done():  # cancelled: nobody waits any more
            done.set_result((value, problem))

    def work() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (context.run(fn), None)
        except BaseException as problem:
            # Any: what ends a thread silently would leave the caller waiting for ever.
            outcome = (None, problem)
        with suppress(RuntimeError):  # the loop was closed meanwhile; nobody waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    Thread(target=work, name="satchel-tool", daemon=True).start()
    value, problem = await done
    if problem is not None:
        # Raised here, not set on the future: a future takes no StopIteration.
        raise problem
    return value


async def iterate_in_thread(items: Generator[Any, Any, Any]) -> AsyncGenerator[Any, None]:
    """Draw the items of a generator in one thread, which may hold things of its own.

    Whoever stops taking them ends the generator, at its next item.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    told: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
    room, stopped = Semaphore(AHEAD), Event()

    def tell(*, more: bool, value: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(told.put_nowait, (more, value))

    def work() -> None:
        problem: BaseException | None = None
        try:
            with closing(items):
                room.acquire()
                for item in items:
                    tell(more=True, value=item)
                    room.acquire()
                    if stopped.is_set():
                        break
        except BaseException as raised:
            problem = raised
        tell(more=False, value=problem)

    context = copy_context()
    Thread(target=context.run, args=(work,), name="satchel-tool", daemon=True).start()
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
