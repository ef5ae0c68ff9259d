"""Idempotent tools: a call that is repeated in one session gets the first answer again."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from satchel.errors import SatchelError
from satchel.runtime.onion import Handler, Middleware
from satchel.runtime.opening import opened
from satchel.runtime.reading import read_arguments
from satchel.tools import Item, Tool, ToolCall, ToolResult
from satchel.tools.results import to_json

if TYPE_CHECKING:
    import asyncio

KEPT = 256
"""How many answers of one tool are kept; the one that was used longest ago goes first."""


Key = tuple[Tool, str]
"""A tool, and arguments as canonical JSON."""


class Answers:
    """The good answers that one session has had, for as long as their tools live."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Tool, OrderedDict[str, ToolResult]] = WeakKeyDictionary()
        self._running: dict[Key, asyncio.Future[ToolResult | None]] = {}
        """What calls that run now will answer; `None` if others have to ask for themselves."""

    async def known(self, key: Key) -> ToolResult | None:
        """Return an answer that was kept, or that an equal call gets just now."""
        import asyncio

        while (running := self._running.get(key)) is not None:
            if (shared := await asyncio.shield(running)) is not None:
                return shared
        tool, arguments = key
        answers = self._kept.get(tool, OrderedDict())
        if arguments in answers:
            answers.move_to_end(arguments)
        return answers.get(arguments)

    async def noted(self, key: Key, inner: Handler, call: ToolCall) -> AsyncIterator[Item]:
        """Run a call, keep its answer, and give it to those who wait for it."""
        import asyncio

        running = self._running[key] = asyncio.get_running_loop().create_future()
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
            answers = self._kept.setdefault(tool, OrderedDict())
            answers[arguments] = result
            while len(answers) > KEPT:
                answers.popitem(last=False)

    def _settle(
        self,
        key: Key,
        running: "asyncio.Future[ToolResult | None]",
        answer: ToolResult | None,
    ) -> None:
        if not running.done():
            running.set_result(answer)
            del self._running[key]


def once(answers: Answers) -> Middleware:
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


def _key(call: ToolCall) -> Key | None:
    """Return what makes two calls equal, or `None` for a call that cannot be read."""
    try:
        arguments = read_arguments(call.name, call.arguments)
        return (call.tool, to_json(sorted(arguments.items()))) if call.tool else None
    except (SatchelError, TypeError, ValueError):
        return None
