"""An executor that records the calls that it gets."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from satchel.errors import ToolError
from satchel.runtime.executors import Answer, RunCall
from satchel.tools import ToolCall, ToolResult, failure, to_result


class Recorder:
    """Runs calls one after another, and records each in `calls`.

    `answers` replace the tools: a mapping by tool name, or a list with one answer for each call in
    turn. Calls without an answer run the real tool. An answer is any value that a tool may return,
    a `ToolResult`, or a `ToolError`.
    """

    def __init__(self, answers: Mapping[str, Any] | Iterable[Any] = ()) -> None:
        self.calls: list[ToolCall] = []
        """The calls in order, each with `name, arguments, id, context`."""
        self.results: list[ToolResult] = []
        """The results, in the order of `calls`."""
        self._by_name = dict(answers) if isinstance(answers, Mapping) else {}
        self._in_order = iter(() if isinstance(answers, Mapping) else answers)

    async def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AsyncIterator[Answer]:
        """Run the calls, or give the answers in their place."""
        for index, call in enumerate(calls):
            self.calls.append(call)
            result = await self._answer(call, run)
            self.results.append(result)
            yield index, result

    async def _answer(self, call: ToolCall, run: RunCall) -> ToolResult:
        if call.name in self._by_name:
            return _result(self._by_name[call.name], call)
        for answer in self._in_order:
            return _result(answer, call)
        return await run(call)


def _result(answer: Any, call: ToolCall) -> ToolResult:
    call_id = call.id or None
    if isinstance(answer, ToolError):
        return failure("tool_error", str(answer), call_id)
    return replace(to_result(answer), call_id=call_id)
