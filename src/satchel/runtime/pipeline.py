"""The way of one call: its layers, and the tool at the bottom."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.once import RepeatedAnswers, once
from satchel.runtime.onion import Find, Handler, Middleware, Note, nowhere, redirected, wrap
from satchel.runtime.postprocess import postprocess
from satchel.runtime.run import LayeredRun, Run, ToolRun
from satchel.settings import Limits
from satchel.tools import Item, Tool, ToolCall, ToolResult
from satchel.tools.argument_reading import read_arguments

LayersOf = Callable[[str, Collection[str]], Sequence[Middleware]]
"""Tells what stands around a tool, by its name and groups."""


def no_layers(_tool: str, _groups: Collection[str]) -> Sequence[Middleware]:
    """Put nothing around any tool."""
    return ()


def begin(
    call: ToolCall,
    tool: Tool,
    limits: Limits,
    *,
    layers: Sequence[Middleware] = (),
    layers_of: LayersOf = no_layers,
    find: Find = nowhere,
    answers: RepeatedAnswers | None = None,
    tasks: BackgroundTasks | None = None,
) -> Run:
    """Return the run of a call, ready to be drawn from.

    `layers` stand around it; `layers_of` are those of a tool that one of them sends it to.
    """
    if call.tool is None:
        call = replace(call, tool=tool)
    starts = tool.background and tasks is not None
    if not (layers or starts or _layers_of(tool, answers)):
        return ToolRun(call, tool, limits)

    def layered(bottom: Handler, note: Note) -> Handler:
        def inside(call: ToolCall) -> AsyncIterator[Item]:
            # A layer may have sent the call to another tool, which has its own ways.
            call = redirected(call, find)
            if call.tool is None:
                return bottom(call)
            others: Iterable[Middleware] = ()
            if call.name != tool.name:
                # Nobody gets around the layers of one tool by way of another.
                others = (m for m in layers_of(call.name, call.groups) if m not in layers)
            if call.tool.background and tasks is not None:
                # Said now, and not when somebody asks for the task.
                call.tool.check(read_arguments(call.name, call.arguments))
                run = partial(begin, tool=call.tool, limits=limits, find=find, answers=answers)
                return wrap(lambda call: tasks.start(run(call)), others, find, note)(call)
            return wrap(bottom, (*others, *_layers_of(call.tool, answers)), find, note)(call)

        return wrap(inside, layers, find, note)

    return LayeredRun(call, tool, limits, layered, find)


async def run_call(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    """Run a tool once, with nothing around it."""
    return await begin(call, tool, limits).result()


def _layers_of(tool: Tool, answers: RepeatedAnswers | None) -> tuple[Middleware, ...]:
    """Return what a tool itself asks to stand around it."""
    layers: tuple[Middleware, ...] = ()
    if tool.idempotent and answers is not None:
        layers += (once(answers),)
    if tool.postprocess is not None:
        layers += (postprocess(tool.postprocess),)
    return layers
