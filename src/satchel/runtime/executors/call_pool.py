"""A pool of calls: each runs in its own task, a limited number at once.

Each call has a task, so that it keeps its own context variables, and so that cancelling it cancels
nothing else. `asyncio` is imported where it is used.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from satchel.runtime.call_messages import interruption
from satchel.runtime.executors.executor import Answer, CallGate, RunCall, attempt
from satchel.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    import asyncio


class CallPool:
    """The calls of one stream: waiting, running and ended."""

    def __init__(
        self, calls: tuple[ToolCall, ...], run: RunCall, limit: int, gates: tuple[CallGate, ...]
    ) -> None:
        import asyncio

        self._calls, self._run, self._limit, self._gates = calls, run, limit, gates
        self._context = copy_context()
        self.loop = asyncio.get_running_loop()
        # The calls of one tool form a line; only its head asks for a turn.
        self._lines: dict[str, deque[int]] = {}
        for index, call in enumerate(calls):
            self._lines.setdefault(call.name, deque()).append(index)
        # Sorted, so already a heap.
        self._heads = [line.popleft() for line in self._lines.values()]
        self._past_the_gates: deque[int] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._running = 0
        self._ended: asyncio.Queue[tuple[int, asyncio.Task[Any], bool]] = asyncio.Queue()

    async def next(self) -> Answer | None:
        """Start the calls that may start; return the next answer, or `None` after the last."""
        while True:
            self._fill()
            if not self._tasks and self._ended.empty():
                return None
            index, task, is_call = await self._ended.get()
            if not is_call:
                self._advance(self._calls[index].name)
            result = self._interrupted(index) if task.cancelled() else task.result()
            if result is not None:
                return index, result
            self._past_the_gates.append(index)

    def cancel(self) -> None:
        """Cancel the calls that still run."""
        for task in tuple(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel the calls that still run, and wait for them, even if cancelled itself."""
        import asyncio

        self.cancel()
        is_cancelled = False
        while self._tasks:
            try:
                await asyncio.wait(self._tasks)
            except asyncio.CancelledError:
                # Not passed on: it would disturb a call that cleans up.
                is_cancelled = True
        if is_cancelled:
            raise asyncio.CancelledError

    def _fill(self) -> None:
        while self._running < self._limit:
            if self._past_the_gates:
                self._start(self._past_the_gates.popleft())
            elif self._heads:
                index = heappop(self._heads)
                tool = self._calls[index].name
                if closed := self._closed_gates(tool):
                    self._launch(index, partial(_wait, closed), is_call=False)
                else:
                    self._advance(tool)
                    self._start(index)
            else:
                return

    def _closed_gates(self, tool: str) -> tuple[CallGate, ...]:
        return tuple(dropwhile(lambda gate: gate.take(tool), self._gates))

    def _advance(self, tool: str) -> None:
        if line := self._lines[tool]:
            heappush(self._heads, line.popleft())

    def _start(self, index: int) -> None:
        self._running += 1
        self._launch(index, self._run, is_call=True)

    def _launch(
        self, index: int, run: Callable[[ToolCall], Awaitable[Any]], *, is_call: bool
    ) -> None:
        work = attempt(run, self._calls[index])
        # A copy for each: a call sets context variables only for itself.
        task = self.loop.create_task(work, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(partial(self._note, index, is_call))

    def _note(self, index: int, is_call: bool, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        self._running -= is_call
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not log it as never retrieved
        self._ended.put_nowait((index, task, is_call))

    def _interrupted(self, index: int) -> ToolResult:
        call = self._calls[index]
        return interruption(call.name, call.id or None)


async def _wait(gates: tuple[CallGate, ...], call: ToolCall) -> None:
    for gate in gates:
        await gate.wait(call.name)
