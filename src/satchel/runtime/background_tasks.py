"""Background tools: a call answers at once with the id of a task, which continues by itself."""

import itertools
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

from satchel.errors import ToolError
from satchel.names import near_misses
from satchel.tools import FunctionTool, Item, Text, ToolResult

if TYPE_CHECKING:
    from satchel.runtime.call_task import CallTask

KEPT = 100
"""How many finished tasks are kept."""

LONGEST_WAIT = 3600.0


class BackgroundTask:
    """One call that runs while the conversation continues."""

    def __init__(self, id: str, run: "CallTask") -> None:  # noqa: A002 - it is one
        import asyncio

        self.id, self.tool = id, run.call.name
        # Released at the end: it may hold much, and the result has everything.
        self.run: CallTask | None = run
        self.result: ToolResult | None = None
        self.work = asyncio.create_task(self._work(), name=f"satchel {id}")

    async def _work(self) -> None:
        assert self.run is not None
        self.result = await self.run.result()
        self.run = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or its event loop is closed."""
        return self.work.done() or self.work.get_loop().is_closed()

    @property
    def status(self) -> str:
        """`running`, `done`, `failed` or `cancelled`."""
        if not self.is_over:
            return "running"
        if self.result is None or self.result.is_interrupted:
            return "cancelled"
        return "failed" if self.result.is_error else "done"

    async def wait(self, seconds: float | None) -> None:
        """Wait until it is over, for at most some seconds."""
        import asyncio

        # A task of another event loop cannot be awaited here.
        if not self.is_over and self.work.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([self.work], timeout=seconds)

    def view(self) -> ToolResult:
        """Return its status and its output so far, or its result."""
        output = self.result or (self.run.partial_result if self.run else ToolResult())
        head = Text(f"task {self.id} ({self.tool}): {self.status}")
        return ToolResult(
            content=(head, *output.content),
            structured=output.structured,
            is_error=output.is_error,
            is_interrupted=output.is_interrupted,
            error_code=output.error_code,
            metadata={**output.metadata, "task_id": self.id, "status": self.status},
        )


class BackgroundTasks:
    """The background tasks of one session."""

    def __init__(self) -> None:
        self._tasks: dict[str, BackgroundTask] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._tasks

    async def start(self, run: "CallTask") -> AsyncIterator[Item]:
        """Start a task for a call, and yield a result with the id of the task."""
        task = BackgroundTask(f"task_{next(self._numbers)}", run)
        self._tasks[task.id] = task
        self._forget_old()
        yield ToolResult(
            content=(
                Text(
                    f"{run.call.name} continues in the background as {task.id}. Use "
                    "view_task, wait_task or cancel_task with this id."
                ),
            ),
            structured={"task_id": task.id},
            call_id=run.call_id,
            metadata={"task_id": task.id},
        )

    def get(self, task_id: str) -> BackgroundTask:
        """Return a task. Raises `ToolError` with the near misses."""
        if task_id not in self._tasks:
            near = near_misses(task_id, self._tasks) or list(self._tasks)[-3:]
            tasks = f" There are: {', '.join(near)}." if near else " There are none."
            raise ToolError(f"there is no task {task_id!r}.{tasks}")
        return self._tasks[task_id]

    def running(self) -> list["CallTask"]:
        """Return the calls that still run."""
        # A copy: another thread may call this.
        running = (task.run for task in tuple(self._tasks.values()) if not task.is_over)
        return [run for run in running if run]

    def _forget_old(self) -> None:
        ended = [task.id for task in self._tasks.values() if task.is_over]
        for task_id in ended[: max(0, len(ended) - KEPT)]:
            del self._tasks[task_id]


async def view_task(tasks: BackgroundTasks, task_id: str) -> ToolResult:
    """Show the status of a background task and its output so far."""
    return tasks.get(task_id).view()


async def wait_task(
    tasks: BackgroundTasks,
    task_id: str,
    timeout: float = 10,  # noqa: ASYNC109 - the model sets it
) -> ToolResult:
    """Wait for at most `timeout` seconds until a background task has ended; return its result.

    If it still runs then, the answer has its status.
    """
    task = tasks.get(task_id)
    await task.wait(max(0.0, min(timeout, LONGEST_WAIT)))
    return task.view()


async def cancel_task(tasks: BackgroundTasks, task_id: str) -> ToolResult:
    """End a background task; the answer has its output until then."""
    task = tasks.get(task_id)
    if task.run:
        task.run.interrupt()
    await task.wait(None)
    return task.view()


@cache
def task_tool(name: str) -> FunctionTool:
    """Return a tool with which the model manages tasks; the session injects its `tasks`."""
    hidden: Any = {"tasks": None}
    if name == "view_task":
        return FunctionTool(view_task, presets=hidden, annotations={"readOnlyHint": True})
    fn = wait_task if name == "wait_task" else cancel_task
    return FunctionTool(fn, presets=hidden, timeout=LONGEST_WAIT + 10)
