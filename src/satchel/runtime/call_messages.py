"""The messages that the model reads when a call fails."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from satchel.text import one_line, shorten
from satchel.tools import ArgumentFault, ToolResult, failure
from satchel.tools.type_schemas import schema_type_name

_FAULTS_SHOWN = 3
_FAULT_LENGTH = 200
_TAKES_LENGTH = 400


class EndReason(StrEnum):
    """Why a call was ended before it had a result."""

    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


def wrong_arguments(
    tool: str, faults: tuple[ArgumentFault, ...], parameters: Mapping[str, Any]
) -> str:
    """Return the message for invalid arguments: what is wrong, and what the tool takes."""
    shown = [shorten(one_line(str(fault)), _FAULT_LENGTH) for fault in faults[:_FAULTS_SHOWN]]
    if len(faults) > _FAULTS_SHOWN:
        shown.append(f"and {len(faults) - _FAULTS_SHOWN} more")
    takes = shorten(one_line(_takes(parameters)), _TAKES_LENGTH)
    return f"invalid arguments for {tool}: {'; '.join(shown)}. It takes: {takes}"


def too_slow(tool: str, seconds: float, limit: str, *, is_elsewhere: bool = False) -> str:
    """Return the message for a call that hit a time limit."""
    limit_text = f"{tool} gave no answer within {seconds:g} s ({limit})"
    if is_elsewhere:
        return f"{limit_text}. It may have run: find out whether it did before you call it again."
    return f"{limit_text}. Ask for less, or continue without it."


def interruption(tool: str, call_id: str | None) -> ToolResult:
    """Return the result of a call that was interrupted."""
    message = f"[{tool} was interrupted by the user; the result above, if any, is incomplete]"
    return replace(failure("interrupted", message, call_id), is_interrupted=True)


def _takes(parameters: Mapping[str, Any]) -> str:
    required = parameters.get("required", ())
    return (
        ", ".join(
            f"{name} ({schema_type_name(schema)}{', required' if name in required else ''})"
            for name, schema in parameters.get("properties", {}).items()
        )
        or "no arguments"
    )
