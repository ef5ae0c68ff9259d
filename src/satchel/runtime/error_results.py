"""The error results of calls, with what the model may know, and the log for the developer."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from satchel.errors import ToolError
from satchel.runtime.call_messages import wrong_arguments
from satchel.runtime.redaction import redacted
from satchel.text import visible
from satchel.tools import ArgumentError, ArgumentFault, FunctionTool, Tool, ToolResult, failure
from satchel.tools.argument_reading import read_arguments

ErrorText = Literal["summary", "message"] | Callable[[str, BaseException], str]
"""What the model reads of an unexpected exception: only an id, its type and text, or what a
function of the tool's name and the exception returns."""

_HINT = (
    'The model reads only the id. Satchel(errors="message") gives it the type and the text of the '
    "exception."
)
_LIBRARY_MODULES = ("satchel.runtime.", "satchel.tools.")


def error_result(
    tool: Tool,
    arguments: Mapping[str, Any] | str,
    problem: BaseException,
    call_id: str | None,
    errors: ErrorText = "summary",
) -> ToolResult:
    """Return the result for an exception of a tool."""
    try:
        result = _for_model(tool, arguments, problem, call_id)
    except BaseException as worse:
        # Any: an exception may raise when its text is read.
        return unexpected_error_result(tool, worse, call_id, errors)
    return result or unexpected_error_result(tool, problem, call_id, errors)


def unexpected_error_result(
    tool: Tool, problem: BaseException, call_id: str | None, errors: ErrorText = "summary"
) -> ToolResult:
    """Log the traceback under an id, and return a result with that id for the model."""
    error_id = os.urandom(4).hex()
    _log(tool, error_id, problem, hint=_HINT if errors == "summary" else "")
    text = f"tool failed (id {error_id})"
    if errors != "summary":
        try:
            text = _chosen_text(tool, problem, errors, error_id)
        except BaseException as worse:
            # Any: the host's function may raise, and so may the text of an exception.
            _log(tool, error_id, worse, hint="This is the function or the text for the model.")
    return failure("tool_failed", text, call_id)


def _chosen_text(tool: Tool, problem: BaseException, errors: ErrorText, error_id: str) -> str:
    if not callable(errors):
        return f"tool failed (id {error_id}): {exception_text(tool, problem)}"
    text = errors(tool.name, problem)
    if not isinstance(text, str):
        raise TypeError(f"errors= must return a text, not {type(text).__name__}")
    return text.encode(errors="replace").decode()


def exception_text(tool: Tool, problem: BaseException) -> str:
    """Return the type and text of an exception, without the tool's injected values."""
    type_name, message = readable_exception(tool, problem)
    return f"{type_name}: {message}"


def readable_exception(tool: Tool, problem: BaseException) -> tuple[str, str]:
    """Return the name of an exception's type, and its text without the tool's injected values."""
    try:
        text = visible(redacted(str(problem), tool.injected))
    except BaseException:
        # Any: an exception may raise when its text is read.
        text = "its text cannot be read"
    return visible(type(problem).__name__), text


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


def _log(tool: Tool, error_id: str, problem: BaseException, *, hint: str) -> None:
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
    log.error("tool %s failed (id %s)\n%s%s", tool.name, error_id, traceback_text, hint)
