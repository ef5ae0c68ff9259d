"""Tools of a plugin that runs in its own process."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from satchel.contracts.contract_binding import injected_arguments
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import IsolatedToolError
from satchel.mcp_servers.remote_tool import BeginCall, RemoteTool, RunningCall
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import ToolChunk, ToolContext, ToolResult
from satchel.tools.tool_results import FinalResult
from satchel.workers.codec import (
    apply_changes,
    decode_chunk,
    decode_result,
    encode_context,
    exact,
    to_json_value,
)
from satchel.workers.worker_processes import WorkerHandle

_MAX_WAITING = 10_000
"""Chunks that may wait for a slow reader; older ones are dropped, and the result has them all."""


class WorkerTool(RemoteTool):
    """A tool of a plugin in its own process, which also validates the arguments."""

    is_remote = False

    def __init__(
        self,
        description: Mapping[str, Any],
        worker: WorkerHandle,
        contract: ToolContract | None = None,
    ) -> None:
        self.name, self.description = description["name"], description["description"]
        self.parameters, self.output = description["parameters"], description["output"]
        self.annotations, self.examples = description["annotations"], tuple(description["examples"])
        self.timeout, self.group = description["timeout"], tuple(description["groups"])
        self.idempotent, self.background = description["idempotent"], description["background"]
        self.remember, self.runner_name = description["remember"], description["runner_name"]
        self.definition = ToolDefinition(name=description["call"])
        self._takes_context, self._contract = description["takes_context"], contract
        self._begin, self._presets = worker.begin, {}
        self._raises_failures = callable(worker.errors)

    @property
    def wants_context(self) -> bool:
        """Whether it uses the context of its call."""
        return self._takes_context or self._contract is not None

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments against the contract, if there is one.

        Without a contract only the process can validate them.
        """
        return self._contract.check(arguments) if self._contract else dict(arguments)

    async def start(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the tool with checked arguments. Return a result, or a stream if it streams."""
        request: dict[str, Any] = {
            "id": context.call_id,
            "arguments": to_json_value(dict(arguments), f"an argument of {self.name}"),
        }
        if self._takes_context:
            request["context"] = encode_context(context)
        if self._contract is not None:
            values = injected_arguments(self._contract, context)
            request["handed"] = exact(values, f"a configured value for {self.name}")
        call = _Streaming(self._begin, self.definition, request, context, self._raises_failures)
        return await call.outcome()


class _Streaming(RunningCall):
    """A call that yields the chunks of its tool in order, and then the result."""

    def __init__(
        self,
        begin: BeginCall,
        definition: ToolDefinition,
        request: Mapping[str, Any],
        context: ToolContext,
        raises_failures: bool,
    ) -> None:
        self._chunks: deque[str] = deque(maxlen=_MAX_WAITING)
        self._context, self._raises_failures = context, raises_failures
        super().__init__(begin, definition, request)

    async def next(self) -> ToolChunk | ToolResult:
        """Return the next chunk, or the result."""
        while not self._chunks:
            if self._result.done():
                result, changes = decode_result(self._result.result())
                apply_changes(self._context.state, changes)
                if self._raises_failures and isinstance(result.exception, IsolatedToolError):
                    raise result.exception  # `errors=` of the host makes the text
                return FinalResult(**vars(result))
            await self._wakeup.wait()
            self._wakeup.clear()
        return decode_chunk(self._chunks.popleft())

    def _progressed(self, progress: Mapping[str, Any]) -> None:
        self._chunks.append(progress["message"])
        super()._progressed(progress)
