"""The tools of a plugin in a process of its own, as tools like any other."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from satchel.contracts import ToolContract
from satchel.contracts.contract_binding import injected_arguments
from satchel.mcp_servers import RemoteTool, ToolDefinition
from satchel.mcp_servers.remote_tool import BeginCall, RunningCall
from satchel.tools import ToolChunk, ToolContext, ToolResult
from satchel.tools.tool_results import FinalResult
from satchel.workers.codec import (
    apply_changes,
    decode_chunk,
    decode_result,
    exact,
    exact_part,
    to_json_value,
)
from satchel.workers.worker_processes import WorkerHandle

_MOST_WAITING = 10_000
"""How many chunks may wait for somebody to take them; the result has what they said."""


class WorkerTool(RemoteTool):
    """A tool of a plugin that runs in a process of its own, which also checks the arguments."""

    def __init__(
        self, told: Mapping[str, Any], worker: WorkerHandle, contract: ToolContract | None = None
    ) -> None:
        self.name, self.description = told["name"], told["description"]
        self.parameters, self.output = told["parameters"], told["output"]
        self.annotations, self.examples = told["annotations"], tuple(told["examples"])
        self.timeout, self.group = told["timeout"], tuple(told["groups"])
        self.idempotent, self.background = told["idempotent"], told["background"]
        self.remember = told["remember"]
        self.definition = ToolDefinition(name=told["call"])
        self._takes_context, self._contract = told["takes_context"], contract
        self._begin, self._presets = worker.begin, {}

    @property
    def wants_context(self) -> bool:
        """Whether it is to be told the context of its call."""
        return self._takes_context or self._contract is not None

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; only the process knows all that its code takes.

        What a contract says of them is known here, and comes before its rules.
        """
        return self._contract.check(arguments) if self._contract else dict(arguments)

    async def start(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the tool with arguments that were checked; while it streams, stream."""
        request: dict[str, Any] = {
            "id": context.call_id,
            "arguments": to_json_value(dict(arguments), f"what {self.name} is called with"),
        }
        if self._takes_context:
            request["context"] = _told_context(context)
        if self._contract is not None:
            values = injected_arguments(self._contract, context)
            request["handed"] = exact(values, f"what {self.name} is handed")
        call = _Streaming(self._begin, self.definition, request, context)
        return await call.outcome()


def _told_context(context: ToolContext) -> dict[str, Any]:
    """Return what of a context can be sent."""
    return {
        "metadata": exact_part(context.metadata),
        "config": exact_part(context.config),
        "state": exact_part(context.state),
        "preapproved": list(context.preapproved),
    }


class _Streaming(RunningCall):
    """A call that tells each chunk of its tool, in order, and then its result."""

    def __init__(
        self,
        begin: BeginCall,
        definition: ToolDefinition,
        request: Mapping[str, Any],
        context: ToolContext,
    ) -> None:
        self._chunks: deque[str] = deque(maxlen=_MOST_WAITING)
        self._context = context
        super().__init__(begin, definition, request)

    async def next(self) -> ToolChunk | ToolResult:
        """Return the next chunk, or the result."""
        while not self._chunks:
            if self._result.done():
                result, changes = decode_result(self._result.result())
                apply_changes(self._context.state, changes)
                return FinalResult(**vars(result))
            await self._news.wait()
            self._news.clear()
        return decode_chunk(self._chunks.popleft())

    def _heard(self, progress: Mapping[str, Any]) -> None:
        self._chunks.append(progress["message"])
        super()._heard(progress)
