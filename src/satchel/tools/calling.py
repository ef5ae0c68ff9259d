"""Running any kind of callable to its end, without holding up the event loop.

`asyncio` is imported where it is used: it takes longer to import than all of this room, and
whoever awaits something has it already.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing, suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any

from satchel.tools.signature import innermost


def runs_on_loop(fn: Callable[..., Any]) -> bool:
    """Tell whether calling `fn` gives something to await at once, rather than working."""
    fn = innermost(fn)
    return inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)


async def run(call: Callable[[], Any], *, on_loop: bool) -> Any:
    """Call, and go on until there is a value: await coroutines, drain generators.

    Of what a generator yields, the last item is the value.
    """
    value = call() if on_loop else await in_thread(lambda: _drained(call()))
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return await _drain_async(value)
    if inspect.isgenerator(value):
        return await in_thread(partial(_drained, value))
    return value


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


def _drained(value: Any) -> Any:
    return _drain(value) if inspect.isgenerator(value) else value


def _drain(items: Generator[Any, Any, Any]) -> Any:
    last = None
    with closing(items):
        for last in items:  # noqa: B007 - the last one is wanted
            pass
    return last


async def _drain_async(items: AsyncGenerator[Any, Any]) -> Any:
    last = None
    async with aclosing(items):
        async for last in items:  # noqa: B007 - the last one is wanted
            pass
    return last
