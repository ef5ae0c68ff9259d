"""The way of one call: its layers, and the tool at the bottom."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

from satchel.runtime.background import TaskBook
from satchel.runtime.once import Answers, once
from satchel.runtime.onion import Find, Middleware, wrap
from satchel.runtime.postprocess import postprocess
from satchel.runtime.run import LayeredRun, Run, ToolRun
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolResult


def _nowhere(_name: str) -> None:
    """Find nothing: what stands alone knows no other tools."""


def begin(
    call: ToolCall,
    tool: Tool,
    limits: Limits,
    *,
    layers: Sequence[Middleware] = (),
    find: Find = _nowhere,
    answers: Answers | None = None,
    tasks: TaskBook | None = None,
) -> Run:
    """Return the run of a call, ready to be drawn from."""
    if call.tool is None:
        call = replace(call, tool=tool)
    own = _layers_of(tool, answers)
    if not (tool.background and tasks is not None):
        return _run(call, tool, limits, (*layers, *own), find)
    book = tasks

    def start(changed: ToolCall) -> AsyncIterator[Item]:
        return book.start(_run(changed, tool, limits, own, find))

    return LayeredRun(call, tool, limits, lambda _: wrap(start, layers, find), find)


async def run_call(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    """Run a tool once, with nothing around it."""
    return await begin(call, tool, limits).result()


def _layers_of(tool: Tool, answers: Answers | None) -> tuple[Middleware, ...]:
    """Return what a tool itself asks to stand around it."""
    layers: tuple[Middleware, ...] = ()
    if tool.idempotent and answers is not None:
        layers += (once(answers),)
    if tool.postprocess is not None:
        layers += (postprocess(tool.postprocess),)
    return layers


def _run(
    call: ToolCall, tool: Tool, limits: Limits, layers: Sequence[Middleware], find: Find
) -> Run:
    if not layers:
        return ToolRun(call, tool, limits)
    return LayeredRun(call, tool, limits, partial(wrap, layers=layers, find=find), find)
