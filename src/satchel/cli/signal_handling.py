"""Run coroutines that Ctrl-C ends."""

import asyncio
import signal
from collections.abc import Collection, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import click

R = TypeVar("R")


def run_to_end(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine in a new event loop. Raises `click.Abort` on Ctrl-C."""
    try:
        return asyncio.run(_ended_by((signal.SIGINT,), work))
    except asyncio.CancelledError:
        raise click.Abort from None


def run_until_stopped(work: Coroutine[Any, Any, object], *, second_kills: bool = False) -> None:
    """Run a coroutine in a new event loop, until it ends, or until SIGINT or SIGTERM.

    With `second_kills`, a second signal kills the process, which may wait for what it runs.
    """
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        numbers = (signal.SIGINT, signal.SIGTERM)
        asyncio.run(_ended_by(numbers, work, second_kills=second_kills))


async def _ended_by(
    numbers: Collection[int], work: Coroutine[Any, Any, R], *, second_kills: bool = False
) -> R:
    # The handler of `asyncio.run` does not wake the loop: a signal that arrives just as the loop
    # starts to wait would be handled only at the next event.
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()

    def stop() -> None:
        task.cancel()
        for number in numbers if second_kills else ():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or in a thread
        for number in numbers:
            loop.add_signal_handler(number, stop)
    return await work
