"""How a call ended, for logs, measurements and traces."""

from satchel.lazy_dataclass import dataclass
from satchel.tools import ToolResult
from satchel.tools.tool_results import to_json


@dataclass(frozen=True, slots=True)
class CallEnding:
    """How a call ended, with the fields of a result."""

    is_error: bool
    error_code: str | None
    is_interrupted: bool

    @property
    def status(self) -> str:
        """`ok`, `interrupted`, or the error code."""
        if self.is_interrupted:
            return "interrupted"
        return (self.error_code or "error") if self.is_error else "ok"


def ending_of(result: ToolResult | None, problem: BaseException | None) -> CallEnding:
    """Return how a call ended that yielded `result`, then raised `problem`; each may be missing."""
    # A reader may stop after the result; then `GeneratorExit` is raised.
    if result is not None and (problem is None or isinstance(problem, GeneratorExit)):
        return CallEnding(result.is_error, result.error_code, result.is_interrupted)
    if problem is None:
        return CallEnding(is_error=True, error_code="no_result", is_interrupted=False)
    import asyncio

    if isinstance(problem, GeneratorExit | asyncio.CancelledError):
        return CallEnding(is_error=True, error_code="interrupted", is_interrupted=True)
    return CallEnding(is_error=True, error_code=type(problem).__name__, is_interrupted=False)


def as_text(value: object) -> str:
    """Return text as it is, and any other value as JSON, if possible."""
    try:
        text = value if isinstance(value, str) else to_json(value)
    except Exception:
        return f"<{type(value).__name__}, no JSON>"
    return text.encode(errors="replace").decode()
