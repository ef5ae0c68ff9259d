"""Idempotent tools: a call that is repeated in one session gets the first answer again."""

import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from satchel.runtime.onion import Handler, Middleware
from satchel.runtime.opening import opened
from satchel.tools import Item, Tool, ToolCall, ToolResult
from satchel.tools.argument_reading import read_arguments
from satchel.tools.tool_results import to_json

if TYPE_CHECKING:
    import asyncio

KEPT = 256
"""How many answers of one tool are kept; the one that was used longest ago goes first."""


Key = tuple[Tool, str]
"""A tool, and arguments as canonical JSON."""


class RepeatedAnswers:
    """The good answers that one session has had, for as long as their tools live."""

    def __init__(self) -> None:
        # By identity: a tool that is a dataclass has no hash.
        self._kept: dict[int, tuple[ref[Tool], OrderedDict[str, ToolResult]]] = {}
        self._running: dict[tuple[int, str], asyncio.Future[ToolResult | None]] = {}
        """What calls that run now will answer; `None` if others have to ask for themselves."""

    async def known(self, key: Key) -> ToolResult | None:
        """Return an answer that was kept, or that an equal call gets just now."""
        import asyncio

        tool, arguments = key
        loop = asyncio.get_running_loop()
        while running := self._running.get((id(tool), arguments)):
            if running.get_loop() is not loop:
                break  # nobody can wait for what another loop does, or left when it was closed
            if (shared := await asyncio.shield(running)) is not None:
                return _copied(shared)
        answers = self._answers_of(tool)
        if arguments not in answers:
            return None
        answers.move_to_end(arguments)
        return _copied(answers[arguments])

    async def noted(self, key: Key, inner: Handler, call: ToolCall) -> AsyncIterator[Item]:
        """Run a call, keep its answer, and give it to those who wait for it."""
        import asyncio

        tool, arguments = key
        running = asyncio.get_running_loop().create_future()
        self._running[id(tool), arguments] = running
        try:
            async with opened(inner, call) as items:
                async for item in items:
                    if isinstance(item, ToolResult):
                        self._keep(key, item)
                        self._settle(key, running, None if item.is_interrupted else item)
                    else:
                        # Nobody waits for a stream: its reader may take its time, and may even
                        # be the one who makes the equal call.
                        self._settle(key, running, None)
                    yield item
        finally:
            self._settle(key, running, None)

    def _keep(self, key: Key, result: ToolResult) -> None:
        if not result.is_error:
            tool, arguments = key
            answers = self._answers_of(tool)
            answers[arguments] = _copied(result)
            while len(answers) > KEPT:
                answers.popitem(last=False)

    def _answers_of(self, tool: Tool) -> OrderedDict[str, ToolResult]:
        number, kept = id(tool), self._kept
        if number not in kept:
            kept[number] = ref(tool, lambda _: kept.pop(number, None)), OrderedDict()
        return kept[number][1]

    def _settle(
        self,
        key: Key,
        running: "asyncio.Future[ToolResult | None]",
        answer: ToolResult | None,
    ) -> None:
        if not running.done():
            running.set_result(answer)
            tool, arguments = key
            if self._running.get((id(tool), arguments)) is running:
                del self._running[id(tool), arguments]


def once(answers: RepeatedAnswers) -> Middleware:
    """Make a layer that answers a repeated call from memory; equal calls at once run once."""

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        key = _key(call)
        if key is None:  # whatever is wrong with it, the tool says so
            noted = inner
        elif (answer := await answers.known(key)) is not None:
            yield replace(answer, call_id=call.id or None)
            return
        else:
            noted = partial(answers.noted, key, inner)
        async with opened(noted, call) as items:
            async for item in items:
                yield item

    return layer


def _copied(result: ToolResult) -> ToolResult:
    """Return a result that its reader may change without changing what is remembered."""
    return replace(result, structured=deepcopy(result.structured), metadata=dict(result.metadata))


def _key(call: ToolCall) -> Key | None:
    """Return what makes two calls equal, or `None` for a call that cannot be read."""
    try:
        if call.tool is None:
            return None
        # As the tool gets them: `"1"` and `1` are equal where it takes a number.
        arguments = call.tool.check(read_arguments(call.name, call.arguments))
        return call.tool, json.dumps(json.loads(to_json(arguments)), sort_keys=True)
    except Exception:
        return None  # Whatever is wrong with it, the tool says so.
