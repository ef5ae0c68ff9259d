"""The protocol of executors, which order the calls of one step."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from satchel.tools import ToolCall, ToolResult, failure

Outcome = TypeVar("Outcome")

RunCall = Callable[[ToolCall], Awaitable[ToolResult]]
"""Runs one call; every failure becomes a result."""

Answer = tuple[int, ToolResult]
"""The index of a call in the list, and its result."""


class Executor(Protocol):
    """Runs several calls."""

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AsyncIterator[Answer]:
        """Run the calls, and yield each answer as it comes.

        A reader that stops early closes the iterator (`contextlib.aclosing`): this cancels the
        calls that still run, and waits until they have ended.
        """


class CallGate(Protocol):
    """Lets the calls of a tool pass one after another, each at its turn."""

    def take(self, tool: str) -> bool:
        """Take a turn if one is free now; return whether there was one."""

    async def wait(self, tool: str) -> None:
        """Wait for a turn, and take it; first come, first served."""


@runtime_checkable
class GatedExecutor(Executor, Protocol):
    """An executor in which a call that waits at a gate does not block calls of other tools."""

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AsyncIterator[Answer]:
        """Do as `stream`, and let each call pass the gates, in this order, before it starts."""


def through(
    executor: Executor, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
) -> AsyncIterator[Answer]:
    """Run calls that must pass gates; in an executor without gates they wait while they run."""
    if isinstance(executor, GatedExecutor):
        return executor.stream_through(calls, run, gates)

    async def wait_and_run(call: ToolCall) -> ToolResult:
        for gate in gates:
            await gate.wait(call.name)
        return await run(call)

    return executor.stream(calls, wait_and_run)


async def attempt(
    run: Callable[[ToolCall], Awaitable[Outcome]], call: ToolCall
) -> Outcome | ToolResult:
    """Run a call; turn an exception, which `run` should not raise, into a result."""
    try:
        return await run(call)
    except Exception:
        # Any: one bad call must not end the other calls of its step.
        import logging

        logging.getLogger("satchel.runtime").exception("running %r failed", call.name)
        return failure("tool_failed", "tool failed", call.id or None)
