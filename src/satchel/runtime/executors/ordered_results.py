"""The results of several calls as a list."""

from collections.abc import Sequence

from satchel.runtime.executors.executor import Executor, RunCall
from satchel.tools import ToolCall, ToolResult, failure


async def in_order(executor: Executor, calls: Sequence[ToolCall], run: RunCall) -> list[ToolResult]:
    """Run the calls, and return their results in the order of the calls."""
    calls = tuple(calls)
    answers = {index: result async for index, result in executor.stream(calls, run)}
    # A model waits for an answer to each call, also where somebody's own executor forgot one.
    return [
        answers.get(index) or failure("tool_failed", "tool failed", call.id or None)
        for index, call in enumerate(calls)
    ]
