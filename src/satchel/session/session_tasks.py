"""The background tasks that the calls of a session start."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from satchel.runtime.background_tasks import BackgroundTask, BackgroundTasks
from satchel.runtime.call_task import CallTask
from satchel.session.planning import write_effects
from satchel.session.tool_resolver import contract_of
from satchel.shared import SharedView
from satchel.tools import Item


class SessionTasks(BackgroundTasks):
    """Starts the tasks of a session, and writes the effects of each when it ends.

    It holds the catalog of a task until the task has ended. The call that starts a task ends much
    earlier, and releases the catalog.
    """

    def __init__(
        self, registry: BackgroundTasks, shared_view: SharedView, state: dict[str, Any]
    ) -> None:
        super().__init__()
        self._registry, self._shared_view, self._state = registry, shared_view, state

    async def start(self, run: CallTask) -> AsyncIterator[Item]:
        """Start a task for a call, and yield a result with the id of the task."""
        async for item in self._registry.start(run):
            task = self._registry.get(item.metadata["task_id"])
            # An asyncio task releases its callbacks, and what they hold, after calling them.
            task.work.add_done_callback(partial(self._end, task))
            yield item

    def _end(self, task: BackgroundTask, _work: object) -> None:
        contract = contract_of(self._shared_view, task.tool)
        if task.result is not None and contract is not None:
            task.result = write_effects(contract, task.result, self._state)
