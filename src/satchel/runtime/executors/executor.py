"""What an executor is, and what it works with."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from satchel.tools import ToolCall, ToolResult

RunCall = Callable[[ToolCall], Awaitable[ToolResult]]
"""Runs one call; whatever goes wrong is told in the result."""

Answer = tuple[int, ToolResult]
"""The position of a call among those that were given, and its result."""


class Executor(Protocol):
    """Runs several calls."""

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AsyncIterator[Answer]:
        """Run the calls, and yield each answer as it comes.

        Whoever leaves the iterator early closes it (`contextlib.aclosing`): then what still
        runs is cancelled, and has ended when the closing returns.
        """


class CallGate(Protocol):
    """Lets the calls of a tool pass one after another, each when its turn has come."""

    def take(self, tool: str) -> bool:
        """Take a turn if one can be had at once, and tell whether."""

    async def wait(self, tool: str) -> None:
        """Wait for a turn, and take it; first come, first served."""


@runtime_checkable
class GatedExecutor(Executor, Protocol):
    """An executor in which a call that waits at a gate takes no place from another tool's."""

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AsyncIterator[Answer]:
        """Do as `stream`, but let each call pass the gates, in this order, before it begins."""


def through(
    executor: Executor, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
) -> AsyncIterator[Answer]:
    """Run calls that have to pass gates; in an executor without gates they wait as they run."""
    if isinstance(executor, GatedExecutor):
        return executor.stream_through(calls, run, gates)

    async def wait_and_run(call: ToolCall) -> ToolResult:
        for gate in gates:
            await gate.wait(call.name)
        return await run(call)

    return executor.stream(calls, wait_and_run)
