"""One call of one tool: whatever the tool does, there is a result, and the host goes on.

`asyncio` and `logging` are imported where they are used: listing skills needs neither, and
importing them takes longer than that.
"""

import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from satchel.errors import ToolError
from satchel.runtime.bounds import bounded
from satchel.runtime.messages import too_slow, wrong_arguments
from satchel.settings import Limits
from satchel.tools import (
    ArgumentError,
    ArgumentFault,
    Tool,
    ToolCall,
    ToolResult,
    failure,
    to_result,
)


async def run_call(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    """Run a tool once; only the host's own cancellation is ever raised."""
    result = await _answer(tool, call, limits)
    return replace(bounded(result, limits.result_text), call_id=call.id or None)


async def _answer(tool: Tool, call: ToolCall, limits: Limits) -> ToolResult:
    import asyncio

    task = asyncio.current_task()
    assert task is not None  # a coroutine that runs belongs to a task
    cancels = task.cancelling()
    seconds = limits.tool_call if tool.timeout is None else tool.timeout
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            arguments = read_arguments(tool.name, call.arguments)
            result = to_result(await tool.execute(**arguments))
    except BaseException as problem:
        # Any: a tool that exits, interrupts or cancels itself must not end the host.
        if task.cancelling() > cancels:
            _pass_on_cancellation(problem)
        if not deadline.expired():
            return _explain(tool, call, problem)
    if task.cancelling() > cancels:
        raise asyncio.CancelledError  # the tool caught it and went on; the host meant it
    if deadline.expired():
        limit = "limit tool_call" if tool.timeout is None else "the tool's own timeout"
        return failure("timeout", too_slow(tool.name, seconds, limit))
    return result


def _pass_on_cancellation(problem: BaseException) -> NoReturn:
    import asyncio

    if isinstance(problem, asyncio.CancelledError):
        raise problem
    raise asyncio.CancelledError from problem


def read_arguments(tool: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return arguments as a dict; models that have none to send also send `""` or `null`."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments.strip() or "{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise ArgumentError(tool, [ArgumentFault("", "they are not valid JSON")]) from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise ArgumentError(tool, [ArgumentFault("", "they must be one JSON object")])
    return dict(arguments)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's


def _explain(tool: Tool, call: ToolCall, problem: BaseException) -> ToolResult:
    """Turn what a tool raised into what the model may know of it."""
    try:
        told = _told(tool, call, problem)
    except BaseException as worse:
        # Any: an error may raise when it is asked for its text.
        return _failed(tool, worse)
    return told or _failed(tool, problem)


def _told(tool: Tool, call: ToolCall, problem: BaseException) -> ToolResult | None:
    """Return the result for a failure that the model can act on, or `None` for any other."""
    if isinstance(problem, ArgumentError) and problem.tool == tool.name:
        return failure(
            "invalid_arguments", wrong_arguments(tool.name, problem.faults, tool.parameters)
        )
    if isinstance(problem, TypeError) and (fault := _misfit(tool, call)):
        return failure("invalid_arguments", wrong_arguments(tool.name, (fault,), tool.parameters))
    if isinstance(problem, ToolError):
        return failure("tool_error", str(problem).encode(errors="replace").decode())
    return None


def _misfit(tool: Tool, call: ToolCall) -> ArgumentFault | None:
    """Say how arguments miss the signature of a `Tool` subclass, which checks none by itself."""
    try:
        inspect.signature(tool.execute).bind(**read_arguments(tool.name, call.arguments))
    except TypeError as problem:
        return ArgumentFault("", str(problem))  # Python's words about names, not about values
    return None


def _failed(tool: Tool, problem: BaseException) -> ToolResult:
    """Keep the traceback here, and give the model an id by which a person finds it."""
    import logging

    mark = os.urandom(4).hex()
    log = logging.getLogger("satchel.runtime")
    log.error("tool %s failed (id %s)", tool.name, mark, exc_info=problem)
    return failure("tool_failed", f"tool failed (id {mark})")
