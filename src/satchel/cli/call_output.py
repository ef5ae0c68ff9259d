"""Running a tool from the command line, and telling what it tells."""

import asyncio
import signal
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from satchel.cli.console import Console
from satchel.cli.rendering import count
from satchel.text import visible
from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult, failure

if TYPE_CHECKING:
    import satchel

R = TypeVar("R")

_FOR_EVER = 3600.0


def run_to_end(work: Coroutine[Any, Any, R]) -> R:
    """Run something on a loop of its own; Ctrl-C cancels it, and ends the command."""
    try:
        return asyncio.run(_until_ctrl_c(work))
    except asyncio.CancelledError:
        raise click.Abort from None


async def _until_ctrl_c(work: Coroutine[Any, Any, R]) -> R:
    """Await something that Ctrl-C cancels.

    A handler of the loop's own wakes it. The one that `asyncio.run` sets does not: a signal that
    comes while the loop begins to wait would be seen only when something else happens.
    """
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await work


async def run_and_print(
    session: "satchel.Session", name: str, arguments: dict[str, Any], console: Console | None
) -> ToolResult:
    """Run the call to its end, and tell what it tells while it runs."""
    chunks, result = 0, failure("no_result", "the call gave no result")
    in_line = False
    async for item in session.stream(name, arguments):
        if isinstance(item, ToolResult):
            result = item
            continue
        chunks += 1
        # Pieces of running text join; whatever else comes has a line of its own.
        runs_on = item.structured is None and all(isinstance(b, Text) for b in item.content)
        if in_line and not runs_on:
            _tell((Text(""),), console)
        _tell(item.content, console, end="" if runs_on else "\n")
        in_line = runs_on
    if in_line:
        _tell((Text(""),), console)
    if task_id := result.metadata.get("task_id"):
        # A background task would end with this process.
        waiting = {"task_id": task_id, "timeout": _FOR_EVER}
        result = await session.call("wait_task", waiting)
        result = replace(result, content=result.content[1:])
    if not chunks or task_id:
        _tell(result.content, console, is_error=result.is_error)
    elif result.is_error:
        _tell(result.content[-1:], console, is_error=True)
    return result


def _tell(
    content: Iterable[Block], console: Console | None, *, is_error: bool = False, end: str = "\n"
) -> None:
    """Write blocks as far as a terminal can show them."""
    if console is None:
        return
    for block in content:
        text = block.text if isinstance(block, Text) else f"[{_kind(block)}]"
        if is_error:
            console.say(visible(text))
        else:
            console.out(visible(text), end=end)


def _kind(block: Image | Audio | Resource | ResourceLink) -> str:
    """Say what a block is that is no text."""
    if isinstance(block, Image | Audio):
        kind = type(block).__name__.lower()
        return f"{kind} {block.mime_type}, {count(len(block.data), 'byte')}"
    return f"{'link' if isinstance(block, ResourceLink) else 'resource'} {block.uri}"
