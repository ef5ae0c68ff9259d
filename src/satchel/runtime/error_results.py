"""What went wrong in a call, as the result that the model may know of."""

import inspect
import os
from collections.abc import Mapping
from typing import Any

from satchel.errors import ToolError
from satchel.runtime.call_messages import wrong_arguments
from satchel.runtime.redaction import redacted
from satchel.tools import ArgumentError, ArgumentFault, FunctionTool, Tool, ToolResult, failure
from satchel.tools.argument_reading import read_arguments

_OURS = ("satchel.runtime.", "satchel.tools.")


def error_result(
    tool: Tool, arguments: Mapping[str, Any] | str, problem: BaseException, call_id: str | None
) -> ToolResult:
    """Turn what a tool raised into what the model may know of it."""
    try:
        told = _told(tool, arguments, problem, call_id)
    except BaseException as worse:
        # Any: an error may raise when it is asked for its text.
        return unexpected_error_result(tool, worse, call_id)
    return told or unexpected_error_result(tool, problem, call_id)


def unexpected_error_result(tool: Tool, problem: BaseException, call_id: str | None) -> ToolResult:
    """Keep the traceback here, and give the model an id by which a person finds it."""
    mark = os.urandom(4).hex()
    _log(tool, mark, problem)
    return failure("tool_failed", f"tool failed (id {mark})", call_id)


def _told(
    tool: Tool, arguments: Mapping[str, Any] | str, problem: BaseException, call_id: str | None
) -> ToolResult | None:
    """Return the result for a failure that the model can act on, or `None` for any other."""
    if isinstance(problem, ArgumentError) and problem.tool == tool.name:
        told = wrong_arguments(tool.name, problem.faults, tool.parameters)
        return failure("invalid_arguments", told, call_id)
    if isinstance(problem, TypeError) and (fault := _misfit(tool, arguments)):
        told = wrong_arguments(tool.name, (fault,), tool.parameters)
        return failure("invalid_arguments", told, call_id)
    if isinstance(problem, ToolError):
        return failure("tool_error", str(problem).encode(errors="replace").decode(), call_id)
    return None


def _misfit(tool: Tool, arguments: Mapping[str, Any] | str) -> ArgumentFault | None:
    """Say how arguments miss the signature of a `Tool` subclass that wrote its own schema."""
    if isinstance(tool, FunctionTool):
        return None
    sent = read_arguments(tool.name, arguments)
    try:
        inspect.signature(tool.execute).bind_partial(**sent)
    except TypeError as problem:
        return ArgumentFault("", str(problem))  # Python's words about names, not about values
    return None


def _own(problem: BaseException) -> Any:
    """Return the part of the traceback that is the tool's; how we called it is of no interest."""
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        frames = frames.tb_next
    return frames or problem.__traceback__


def _log(tool: Tool, mark: str, problem: BaseException) -> None:
    import logging
    import traceback

    injected = tool.injected
    try:
        written = "".join(traceback.format_exception(type(problem), problem, _own(problem)))
        written = redacted(written, injected)
    except BaseException:
        # Any: an error may raise when it is asked for its text, and so may an injected value.
        written = f"{type(problem).__name__}, which cannot be written"
    log = logging.getLogger("satchel.runtime")
    log.error("tool %s failed (id %s)\n%s", tool.name, mark, written)
