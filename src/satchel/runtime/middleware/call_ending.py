"""How a call ended, for those that tell of it."""

from dataclasses import dataclass

from satchel.tools import ToolResult
from satchel.tools.tool_results import to_json


@dataclass(frozen=True, slots=True)
class CallEnding:
    """How a call ended, in the words of a result."""

    is_error: bool
    error_code: str | None
    is_interrupted: bool

    @property
    def word(self) -> str:
        """The ending in one word."""
        if self.is_interrupted:
            return "interrupted"
        return (self.error_code or "error") if self.is_error else "ok"


def ending_of(result: ToolResult | None, problem: BaseException | None) -> CallEnding:
    """Say how a call ended that told `result`, then raised `problem`; each may be missing."""
    # Whoever has the result may stop there, and then it is the generator's end that is raised.
    if result is not None and (problem is None or isinstance(problem, GeneratorExit)):
        return CallEnding(result.is_error, result.error_code, result.is_interrupted)
    if problem is None:
        return CallEnding(is_error=True, error_code="no_result", is_interrupted=False)
    import asyncio

    if isinstance(problem, GeneratorExit | asyncio.CancelledError):
        return CallEnding(is_error=True, error_code="interrupted", is_interrupted=True)
    return CallEnding(is_error=True, error_code=type(problem).__name__, is_interrupted=False)


def written(value: object) -> str:
    """Write a value for a person: text as it is, anything else as JSON, if that can be."""
    try:
        text = value if isinstance(value, str) else to_json(value)
    except Exception:
        return f"<{type(value).__name__}, no JSON>"
    return text.encode(errors="replace").decode()
