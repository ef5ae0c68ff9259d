"""One call that a worker runs, as its host sees it."""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from uuid import uuid4

from satchel.remote.remote_keys import INBOX_LENGTH, loop_time, queue_name_for
from satchel.tools import ToolCall, ToolChunk, ToolResult, failure
from satchel.tools.runner import RunnerSignal
from satchel.tools.tool_results import FinalResult
from satchel.workers.codec import apply_changes, decode_chunk, exact_part, to_json_value

NO_WORKER = "no_worker"
"""The `error_code` of a call that no worker could run."""
BUSY = "busy"
"""The `error_code` of a call for which the queue had no room."""
MAY_HAVE_RUN = "may_have_run"
"""The `error_code` of a call that may or may not have run."""
WORKER_FAILED = "worker_failed"
"""The `error_code` of a call that a worker took and could not run."""


class SentCall:
    """The items of one call that have come and were not read yet."""

    def __init__(self, call: ToolCall, wait: float) -> None:
        self.call, self.id, self.slot = call, id_of(call), uuid4().hex
        self.wait = wait
        """Seconds after which its host gives up if no worker has begun it."""
        self.queue_name = queue_name_of(call)
        self.state = deepcopy(exact_part(call.context.state))
        """The state that the tool gets."""
        self.lost_state = ""
        """How changes of the state were lost; `""` if none were."""
        self.queue: Any = None
        """The queue that has it, once it was sent."""
        self.is_started = self.has_ended = False
        self.news_at = loop_time()
        """When it was last heard of."""
        self.had_no_workers = False
        """Whether no worker was left when it was last looked at."""
        self.misses = 0
        """How often in a row redis knew neither its result nor that it waits or runs."""
        self._items: deque[dict[str, Any] | FinalResult | RunnerSignal] = deque(maxlen=INBOX_LENGTH)
        self._has_item = asyncio.Event()
        self._count, self._run = 0, ""

    def take(self, item: dict[str, Any]) -> None:
        """Keep an item of a worker. Only the newest run of a call gives chunks."""
        if "started" in item:
            self.is_started, self._run = True, item["started"]
        elif "chunk" in item:
            if item["run"] != self._run or item["count"] <= self._count:
                return
            self._count = item["count"]
        self.news_at, self.misses, self.had_no_workers = loop_time(), 0, False
        self._keep(item)

    def end(self, result: FinalResult | RunnerSignal) -> None:
        """End the call here, without a worker."""
        self._keep(result)

    async def next(self) -> ToolChunk | FinalResult | RunnerSignal:
        """Return the next item; a result is the last one."""
        while not self._items:
            self._has_item.clear()
            await self._has_item.wait()
        item = self._items.popleft()
        if not isinstance(item, dict):
            return item
        if "started" in item:
            return RunnerSignal.STARTED
        if "chunk" in item:
            return decode_chunk(item["chunk"])
        self._apply(item.get("changes") or {})
        return FinalResult(**vars(ToolResult.from_dict(item["result"])))

    def _apply(self, changes: Mapping[str, Any]) -> None:
        state = self.call.context.state
        overwritten = [
            key
            for key in (*changes.get("set", ()), *changes.get("gone", ()))
            if state.get(key) != self.state.get(key)
        ]
        if overwritten:
            self.lost_state = f"another call changed {', '.join(overwritten)} at the same time"
        elif lost := changes.get("lost"):
            self.lost_state = f"JSON cannot represent {', '.join(lost)}"
        apply_changes(state, changes)

    def _keep(self, item: dict[str, Any] | FinalResult | RunnerSignal) -> None:
        self.has_ended = self.has_ended or not isinstance(item, dict) or "result" in item
        self._items.append(item)
        self._has_item.set()


def queue_name_of(call: ToolCall) -> str:
    """Return the name of the queue that a call belongs into."""
    return queue_name_for(call.plugin_digest, call.groups)


def id_of(call: ToolCall) -> str:
    """Return the id of a run.

    A host that names its run gets the same answer for the same call again. Without a name the ids
    of two conversations may be equal, and one must not get the answer of the other.
    """
    run = call.context.run_id
    if not (run and call.id):
        return uuid4().hex
    parts = [run, call.id, call.name, arguments_of(call), call.plugin_digest]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def arguments_of(call: ToolCall) -> Any:
    """Return the arguments as JSON. Raises `ToolError` if JSON cannot represent them."""
    assert not isinstance(call.arguments, str)
    return to_json_value(dict(call.arguments), f"an argument of {call.name}")


def may_run_again(tool: Any) -> bool:
    """Return whether a tool may run twice for one call: it is idempotent, or only reads."""
    hints = tool.annotations or {}
    is_harmless = bool(hints.get("idempotentHint") or hints.get("readOnlyHint"))
    return tool.idempotent or (is_harmless and not tool.is_remote)


def unknown_outcome(call: ToolCall) -> FinalResult:
    """Return the result of a call that may or may not have run."""
    text = f"{call.name} may have run: its answer is lost"
    return FinalResult(
        **vars(failure(MAY_HAVE_RUN, f"{text}; find out whether it did before you call it again"))
    )
