"""The error results of calls, with what the model may know, and the log for the developer."""

import inspect
import os
from collections.abc import Mapping
from typing import Any

from satchel.errors import ToolError
from satchel.runtime.call_messages import wrong_arguments
from satchel.runtime.redaction import redacted
from satchel.tools import ArgumentError, ArgumentFault, FunctionTool, Tool, ToolResult, failure
from satchel.tools.argument_reading import read_arguments

_LIBRARY_MODULES = ("satchel.runtime.", "satchel.tools.")


def error_result(
    tool: Tool, arguments: Mapping[str, Any] | str, problem: BaseException, call_id: str | None
) -> ToolResult:
    """Return the result for an exception of a tool."""
    try:
        result = _for_model(tool, arguments, problem, call_id)
    except BaseException as worse:
        # Any: an exception may raise when its text is read.
        return unexpected_error_result(tool, worse, call_id)
    return result or unexpected_error_result(tool, problem, call_id)


def unexpected_error_result(tool: Tool, problem: BaseException, call_id: str | None) -> ToolResult:
    """Log the traceback under an id, and return a result with that id for the model."""
    error_id = os.urandom(4).hex()
    _log(tool, error_id, problem)
    return failure("tool_failed", f"tool failed (id {error_id})", call_id)


def _for_model(
    tool: Tool, arguments: Mapping[str, Any] | str, problem: BaseException, call_id: str | None
) -> ToolResult | None:
    """Return the result for a failure that the model can act on, else `None`."""
    if isinstance(problem, ArgumentError) and problem.tool == tool.name:
        message = wrong_arguments(tool.name, problem.faults, tool.parameters)
        return failure("invalid_arguments", message, call_id)
    if isinstance(problem, TypeError) and (fault := _misfit(tool, arguments)):
        message = wrong_arguments(tool.name, (fault,), tool.parameters)
        return failure("invalid_arguments", message, call_id)
    if isinstance(problem, ToolError):
        return failure("tool_error", str(problem).encode(errors="replace").decode(), call_id)
    return None


def _misfit(tool: Tool, arguments: Mapping[str, Any] | str) -> ArgumentFault | None:
    """Return how arguments miss the signature of a `Tool` subclass with a schema of its own."""
    if isinstance(tool, FunctionTool):
        return None
    sent = read_arguments(tool.name, arguments)
    try:
        inspect.signature(tool.execute).bind_partial(**sent)
    except TypeError as problem:
        return ArgumentFault("", str(problem))  # Python's message quotes names, not values
    return None


def _tool_traceback(problem: BaseException) -> Any:
    """Return the part of the traceback inside the tool."""
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(
        _LIBRARY_MODULES
    ):
        frames = frames.tb_next
    return frames or problem.__traceback__


def _log(tool: Tool, error_id: str, problem: BaseException) -> None:
    import logging
    import traceback

    injected = tool.injected
    try:
        traceback_text = "".join(
            traceback.format_exception(type(problem), problem, _tool_traceback(problem))
        )
        traceback_text = redacted(traceback_text, injected)
    except BaseException:
        # Any: an exception may raise when its text is read, and so may an injected value.
        traceback_text = f"{type(problem).__name__}, whose text cannot be read"
    log = logging.getLogger("satchel.runtime")
    log.error("tool %s failed (id %s)\n%s", tool.name, error_id, traceback_text)
