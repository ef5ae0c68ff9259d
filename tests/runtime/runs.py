"""Runs of small tools, on a loop whose clock jumps, and what has to be true after each."""

import asyncio
import contextlib
import sys

import stage

from satchel.runtime.call_pipeline import CallScope
from satchel.runtime.call_task import CallTask
from satchel.runtime.prepared_tool import PreparedTool
from satchel.settings import Limits
from satchel.tools import FunctionTool, Tool, ToolCall, ToolResult

LIMITS = Limits(tool_call=60.0, cancel_grace=1.0)


def a_tool(fn, **options):
    return fn if isinstance(fn, Tool) else FunctionTool(fn, **{"name": "probe", **options})


def a_run(
    fn,
    arguments=None,
    *,
    id="call-1",  # noqa: A002 - it is one
    limits=LIMITS,
    layers=(),
    others=(),
    answers=None,
    tasks=None,
    errors="summary",
    **options,
):
    """Return a run of a function; `others` are the tools to which a layer may send the call."""
    tool = a_tool(fn, **options)

    def prepared(tool, layers=()):
        return PreparedTool(
            tool=tool,
            limits=limits,
            errors=errors,
            groups=("basic",),
            middleware=tuple(layers),
            is_remembered=tool.idempotent and answers is not None,
            is_background=tool.background and tasks is not None,
        )

    scope = Scope({other.name: prepared(other) for other in (tool, *others)}, answers, tasks)
    call = ToolCall(name=tool.name, arguments={} if arguments is None else arguments, id=id)
    return CallTask(call, prepared(tool, layers), scope)


class Scope(CallScope):
    """Stands for a session that knows some tools."""

    def __init__(self, tools, answers=None, tasks=None):
        self.find, self._answers, self._tasks = tools.get, answers, tasks

    def answers(self):
        return self._answers

    def tasks(self):
        return self._tasks


async def each_item(run):
    """Yield every chunk of a run, and last the result; closing the iterator ends the call."""
    try:
        while not isinstance(item := await run.next(), ToolResult):
            yield item
        yield item
    finally:
        await run.aclose()


async def _watched(main):
    before = asyncio.current_task().cancelling()
    result = await main
    assert asyncio.current_task().cancelling() == before
    await asyncio.sleep(0)  # what was asked of the task by now would end it here
    return result


def play(main):
    """Run on the loop with the jumping clock; nothing is left, and nobody complains."""
    return stage.play(_watched(main))


def play_for_real(main):
    """Do the same on a loop of its own kind, for what works with threads and processes."""
    return stage.play(_watched(main), loop_factory=asyncio.new_event_loop)


async def turns(count=10):
    """Let everything that can go on go on until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


async def begun(work):
    """Start something in a task of its own, and let it go on until it waits."""
    task = asyncio.create_task(work)
    await turns()
    return task


async def forever():
    await asyncio.get_running_loop().create_future()


async def ignoring():
    """Ignore every cancellation, but not that the coroutine is dropped."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)


def now():
    return asyncio.get_running_loop().time()


class Unraisable:
    """Collects what Python complains of when it destroys something that does not let itself."""

    def __enter__(self):
        self.told, self._old = [], sys.unraisablehook
        sys.unraisablehook = lambda problem: self.told.append(str(problem.exc_value))
        return self.told

    def __exit__(self, *_):
        sys.unraisablehook = self._old
