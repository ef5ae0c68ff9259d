"""A tool that an MCP server runs."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any, cast

from satchel.errors import DefinitionError
from satchel.mcp_servers.client_callbacks import Caller
from satchel.mcp_servers.pin_store import ToolDrift
from satchel.mcp_servers.schema_bounds import BoundedValidator, find_outside_properties
from satchel.mcp_servers.server_options import ServerOptions
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import ArgumentError, ArgumentFault, Tool, ToolChunk, ToolContext, ToolResult
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.runner import LOOP

BeginCall = Callable[..., "Future[ToolResult]"]
"""Starts a call of a tool at its server, with its arguments, and for progress."""

_MOST_PROGRESS = 16
"""Progress of a call that is kept until the caller reads it."""

_HEADERS, _CLIENT = "headers", "mcp"
"""Keys in the metadata of a context: the caller's HTTP headers, and the MCP client with them."""


class RemoteTool(Tool):
    """A tool that a server runs.

    `presets` are arguments that the model neither sees nor sets. `hidden` are names of further
    arguments to hide. `options` may describe it otherwise and rename its arguments. Raises
    `DefinitionError` for a schema in which arguments cannot be hidden or renamed.
    """

    runner = LOOP
    is_remote = True

    def __init__(
        self,
        definition: ToolDefinition,
        begin: BeginCall,
        *,
        name: str | None = None,
        presets: Mapping[str, Any] = NOTHING,
        hidden: Collection[str] = (),
        timeout: float | None = None,
        drift: ToolDrift | None = None,
        options: ServerOptions | None = None,
    ) -> None:
        options = options or ServerOptions()
        self.name, self.own_name = name or definition.name, definition.name
        self.drift = drift
        """How it differs from what was approved, or `None`."""
        self.definition, self.timeout, self._begin = definition, timeout, begin
        self.description = options.descriptions.get(definition.name, definition.description)
        self.annotations, self.mcp_fields = definition.annotations, definition.mcp_fields
        self.output = definition.output
        self._presets = deepcopy(dict(presets))
        hidden = {*presets, *hidden}
        if argument := find_outside_properties(definition.parameters, sorted(hidden)):
            raise DefinitionError(
                f"the preset {argument!r} cannot be hidden: the schema also mentions it outside "
                "its top-level properties"
            )
        renamed = options.rename_arguments.get(definition.name, NOTHING)
        # The new name of a preset is refused as its own is.
        properties = definition.parameters.get("properties", NOTHING)
        refused = {new for old, new in renamed.items() if old in hidden and new not in properties}
        renamed = {old: new for old, new in renamed.items() if old not in hidden}
        # So is the old name of another argument.
        refused |= renamed.keys() - renamed.values()
        schema = with_renamed(definition.parameters, renamed)
        self._options, self._original = options, {new: old for old, new in renamed.items()}
        self._arguments = BoundedValidator(schema, f"tool {self.name}", hidden | refused)
        self.parameters = deepcopy(self._arguments.schema)

    def validate(self) -> None:
        """Do nothing: the constructor compiled the schema already."""

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the model. Raises `ArgumentError`, also for a preset."""
        new_names = {old: new for new, old in self._original.items() if new != old}
        if faults := [
            ArgumentFault(old, f"is called {new}")
            for old, new in new_names.items()
            if old in arguments and old not in self._original
        ]:
            raise ArgumentError(self.name, faults)
        return self._arguments.check(self.name, arguments)

    @property
    def injected(self) -> Mapping[str, Any]:
        """Arguments that must not appear in logs."""
        return self._presets

    @property
    def wants_context(self) -> bool:
        """Whether it uses the context of its call."""
        return bool(self._options.forward_headers)

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Return a function that calls the tool with checked arguments."""
        return partial(self.start, arguments, context)

    async def start(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the tool with checked arguments. Return a result, or a stream if it has progress."""
        if self._original:
            arguments = {self._original.get(name, name): v for name, v in arguments.items()}
        begin = partial(self._begin, caller=Caller.of(context))
        if self._options.forward_headers:
            headers = context.get_metadata(_HEADERS)
            headers = headers or getattr(context.get_metadata(_CLIENT), "headers", None)
            begin = partial(begin, headers=self._options.forwarded(headers))
        arguments = {**arguments, **self._presets}
        call = RunningCall(begin, self.definition, arguments)
        return await call.outcome()

    async def execute(self, /, **arguments: Any) -> ToolResult:
        """Check the arguments, and return the result. Raises `ArgumentError` and `ToolError`."""
        return await self.run(self.check(arguments))

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool with checked arguments. Return the result without progress."""
        result = await self.start(arguments, ToolContext(tool=self.name))
        if not isinstance(result, ToolResult):
            async for item in result:
                last = item
            result = last
        return cast("ToolResult", result)


class RunningCall:
    """A call that runs on the servers' event loop, awaited on the caller's."""

    def __init__(
        self, begin: BeginCall, definition: ToolDefinition, arguments: Mapping[str, Any]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._wakeup = asyncio.Event()
        # The oldest go: a server may send more than the caller reads.
        self._progress = deque[Mapping[str, Any]](maxlen=_MOST_PROGRESS)
        self._result = asyncio.wrap_future(begin(definition, arguments, self._progressed))
        self._result.add_done_callback(lambda _: self._wakeup.set())

    async def next(self) -> ToolChunk | ToolResult:
        """Return the next progress, or the result after all progress."""
        while True:
            self._wakeup.clear()
            if self._progress:
                return ToolChunk(metadata={"progress": dict(self._progress.popleft())})
            if self._result.done():
                return self._result.result()
            await self._wakeup.wait()

    async def outcome(self) -> ToolResult | AsyncIterator[ToolChunk | ToolResult]:
        """Return the result if it comes first, otherwise a stream of progress and result."""
        try:
            first = await self.next()
        except BaseException:
            self._result.cancel()
            raise
        return first if isinstance(first, ToolResult) else self.items(first)

    async def items(self, first: ToolChunk | ToolResult) -> AsyncIterator[ToolChunk | ToolResult]:
        """Yield progress, and the result last. Closing the stream cancels the call."""
        try:
            yield first
            while not isinstance(item := await self.next(), ToolResult):
                yield item
            yield item
        finally:
            self._result.cancel()

    def _progressed(self, progress: Mapping[str, Any]) -> None:
        self._progress.append(progress)
        with suppress(RuntimeError):  # the caller's event loop is closed
            self._loop.call_soon_threadsafe(self._wakeup.set)


def with_renamed(schema: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a schema with other names for some of its top-level properties.

    Raises `DefinitionError` if the schema mentions one elsewhere, or has the new name already.
    """
    properties = schema.get("properties")
    if not names or not isinstance(properties, Mapping):
        return schema
    if argument := find_outside_properties(schema, sorted(names)):
        raise DefinitionError(
            f"the argument {argument!r} cannot be renamed: the schema also mentions it outside its "
            "top-level properties"
        )
    renamed = {names.get(name, name): value for name, value in properties.items()}
    if len(renamed) < len(properties):
        raise DefinitionError("rename-arguments gives two of its arguments the same name")
    required = schema.get("required")
    if isinstance(required, list):
        schema = {**schema, "required": [names.get(name, name) for name in required]}
    return {**schema, "properties": renamed}
