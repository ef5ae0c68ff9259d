"""The sentences that the model reads when a call does not go well."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from satchel.text import one_line, shorten
from satchel.tools import ArgumentFault, ToolResult, failure
from satchel.tools.type_schemas import schema_type_name

_FAULTS_SHOWN = 3
_FAULT_LENGTH = 200
_TAKES_LENGTH = 400


def wrong_arguments(
    tool: str, faults: tuple[ArgumentFault, ...], parameters: Mapping[str, Any]
) -> str:
    """Say which arguments do not fit, what was expected, and what the tool takes."""
    shown = [shorten(one_line(str(fault)), _FAULT_LENGTH) for fault in faults[:_FAULTS_SHOWN]]
    if len(faults) > _FAULTS_SHOWN:
        shown.append(f"and {len(faults) - _FAULTS_SHOWN} more")
    takes = shorten(one_line(_takes(parameters)), _TAKES_LENGTH)
    return f"invalid arguments for {tool}: {'; '.join(shown)}. It takes: {takes}"


def too_slow(tool: str, seconds: float, limit: str) -> str:
    """Say that a call was given up, and which limit it hit."""
    return f"{tool} gave no answer within {seconds:g} s ({limit}); ask for less, or go on without"


def interruption(tool: str, call_id: str | None) -> ToolResult:
    """Make the result of a call that somebody ended."""
    told = f"[{tool} was interrupted by the user; what stands above, if anything, is incomplete]"
    return replace(failure("interrupted", told, call_id), is_interrupted=True)


def _takes(parameters: Mapping[str, Any]) -> str:
    required = parameters.get("required", ())
    return (
        ", ".join(
            f"{name} ({schema_type_name(schema)}{', required' if name in required else ''})"
            for name, schema in parameters.get("properties", {}).items()
        )
        or "no arguments"
    )
