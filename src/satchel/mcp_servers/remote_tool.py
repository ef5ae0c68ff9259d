"""A tool of a remote server, as a tool like any other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any, cast

from satchel.errors import DefinitionError
from satchel.mcp_servers.pin_store import ToolDrift
from satchel.mcp_servers.schema_bounds import BoundedValidator, spoken_of
from satchel.mcp_servers.server_connection import OnProgress
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import Tool, ToolChunk, ToolContext, ToolResult
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.runner import LOOP

BeginCall = Callable[[ToolDefinition, Mapping[str, Any], OnProgress], "Future[ToolResult]"]
"""Begins a call of a tool at its server."""


class RemoteTool(Tool):
    """A tool that a server runs: its schema is the server's, and so is its answer.

    `presets` are arguments that the model neither sees nor sets, and `hidden` names more of those.
    Raises `DefinitionError` for a schema in which they cannot be hidden.
    """

    runner = LOOP

    def __init__(
        self,
        definition: ToolDefinition,
        begin: BeginCall,
        *,
        name: str | None = None,
        presets: Mapping[str, Any] = NOTHING,
        hidden: Collection[str] = (),
        timeout: float | None = None,
        odd: ToolDrift | None = None,
    ) -> None:
        self.name = name or definition.name
        self.odd = odd
        """In what it is not as it was approved."""
        self.definition, self.timeout, self._begin = definition, timeout, begin
        self.description, self.annotations = definition.description, definition.annotations
        self.output = definition.output
        self._presets = deepcopy(dict(presets))
        hidden = {*presets, *hidden}
        if said := spoken_of(definition.parameters, sorted(hidden)):
            raise DefinitionError(
                f"the preset {said!r} cannot be hidden: its schema has it elsewhere than among "
                "its properties, too"
            )
        self._arguments = BoundedValidator(definition.parameters, f"tool {self.name}", hidden)
        self.parameters = deepcopy(self._arguments.schema)

    def validate(self) -> None:
        """Do nothing: what cannot be checked could not be made."""

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the model. Raises `ArgumentError`, also for a preset."""
        return self._arguments.check(self.name, arguments)

    @property
    def injected(self) -> Mapping[str, Any]:
        """What no log may show."""
        return self._presets

    @property
    def wants_context(self) -> bool:
        """Whether it is to be told the context of its call."""
        return False

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Return what calls the tool with arguments that were checked."""
        return partial(self.start, arguments, context)

    async def start(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        """Call the tool with arguments that were checked; while it tells of progress, stream."""
        call = RunningCall(self._begin, self.definition, {**arguments, **self._presets})
        return await call.outcome()

    async def execute(self, /, **arguments: Any) -> ToolResult:
        """Check the arguments, and return the result. Raises `ArgumentError` and `ToolError`."""
        return await self.run(self.check(arguments))

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool with arguments that were checked, and return the result alone."""
        item = await self.start(arguments, ToolContext(tool=self.name))
        if not isinstance(item, ToolResult):
            async for told in item:
                last = told
            item = last
        return cast("ToolResult", item)


class RunningCall:
    """A call that runs on the loop of the servers, seen from the loop of the caller."""

    def __init__(
        self, begin: BeginCall, definition: ToolDefinition, arguments: Mapping[str, Any]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._progress: Mapping[str, Any] | None = None
        self._result = asyncio.wrap_future(begin(definition, arguments, self._heard))
        self._result.add_done_callback(lambda _: self._news.set())

    async def next(self) -> ToolChunk | ToolResult:
        """Return the newest progress, or the result."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._result.done():
                return self._result.result()
            progress, self._progress = self._progress, None
            if progress is not None:  # not taken already, before the news of it came
                return ToolChunk(metadata={"progress": dict(progress)})

    async def outcome(self) -> ToolResult | AsyncIterator[ToolChunk | ToolResult]:
        """Return the result if it comes first, else all that comes."""
        try:
            first = await self.next()
        except BaseException:
            self.cancel()
            raise
        return first if isinstance(first, ToolResult) else self.items(first)

    async def items(self, first: ToolChunk | ToolResult) -> AsyncIterator[ToolChunk | ToolResult]:
        """Yield all, and last the result; closing it cancels the call."""
        try:
            yield first
            while not isinstance(item := await self.next(), ToolResult):
                yield item
            yield item
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the call, if it still runs."""
        self._result.cancel()

    def _heard(self, progress: Mapping[str, Any]) -> None:
        # Only the newest is kept: a server may tell far more than anybody reads.
        self._progress = progress
        with suppress(RuntimeError):  # the loop of the caller is closed
            self._loop.call_soon_threadsafe(self._news.set)
