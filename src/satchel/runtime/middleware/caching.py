"""Answers from memory."""

import json
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from functools import partial

from satchel.errors import DefinitionError
from satchel.runtime.answer_memory import AnswerMemory, remembered
from satchel.runtime.middleware.tool_hints import may_change_something, tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall


def by_session(call: ToolCall) -> Hashable:
    """Tell calls apart by session, arguments, and what the host says in the context.

    Calls with metadata or configuration that JSON cannot carry are not remembered.
    """
    context = call.context
    said = _canonical(call.arguments, context.config, context.metadata)
    return None if said is None else (id(context.state), said)


def by_arguments(call: ToolCall) -> Hashable:
    """Tell calls apart by arguments alone: for tools that answer everybody alike."""
    return _canonical(call.arguments)


def is_repeatable(call: ToolCall) -> bool:
    """Tell whether a call is of a tool that only reads, or is idempotent, and answers itself.

    Not of one that reads but denies `idempotentHint`: it does not answer alike twice.
    """
    tool = tool_of(call)
    if tool is None or tool.background or (tool.annotations or {}).get("idempotentHint") is False:
        return False
    return tool.idempotent or not may_change_something(call)


def cache(
    seconds: float = 300,
    size: int = 256,
    *,
    key: Callable[[ToolCall], Hashable] = by_session,
    which: Callable[[ToolCall], bool] = is_repeatable,
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Answer a call that equals an earlier one from memory, if its tool only reads.

    Those are tools with `readOnlyHint`, and idempotent ones; within a session these have a memory
    of their own, which does not grow old. `which` chooses other calls than those. Equal is what
    has the same tool and the same `key`; a key of `None` is not remembered. Only successes are,
    `size` of them, the oldest go first; chunks are not repeated. Any other call that is not of a
    tool with `readOnlyHint` may change what was read, so what its session remembers is forgotten.

    Of equal calls that come together one runs, and the others get its answer; but if it tells
    chunks or is given up, the others run, too. Answers from memory say `cached` in their
    metadata. Layers that refuse calls belong outside this one.
    """
    if not (seconds > 0 and size > 0):
        raise DefinitionError(f"{size} answers for {seconds} seconds are nothing to remember")
    memory = AnswerMemory(size, seconds, clock)

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        tool = tool_of(call)
        place = key(call) if tool is not None and which(call) else None
        if tool is None or place is None:
            handler = inner
        else:
            handler = partial(remembered, memory, place, tool, inner)
        try:
            async with opened(handler, call) as items:
                async for item in items:
                    yield item
        finally:
            if place is None and may_change_something(call):
                memory.forget(lambda answer: answer.state is call.context.state)

    return layer


def _canonical(*values: object) -> str | None:
    """Write values as JSON that is the same for equal ones; `None` where JSON has no word."""
    try:
        plain = [dict(value) if isinstance(value, Mapping) else value for value in values]
        return json.dumps(plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
