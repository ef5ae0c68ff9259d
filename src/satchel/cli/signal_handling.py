"""Run coroutines that Ctrl-C ends."""

import asyncio
import signal
from collections.abc import Coroutine, Iterable
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


def run_until_stopped(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine in a new event loop, until it ends, or until SIGINT or SIGTERM."""
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(_ended_by((signal.SIGINT, signal.SIGTERM), work))


async def _ended_by(numbers: Iterable[int], work: Coroutine[Any, Any, R]) -> R:
    # The handler of `asyncio.run` does not wake the loop: a signal that arrives just as the loop
    # starts to wait would be handled only at the next event.
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or in a thread
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await work
