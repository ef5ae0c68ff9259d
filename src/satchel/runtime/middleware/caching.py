"""Middleware that answers equal calls from memory."""

import time
from collections.abc import AsyncIterator, Callable, Hashable
from functools import partial

from satchel.errors import DefinitionError
from satchel.runtime.answer_memory import AnswerMemory, canonical, remembered
from satchel.runtime.middleware.tool_hints import says_read_only, tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall


def by_session(call: ToolCall) -> Hashable:
    """Return a key of the session, the arguments, and the context from the host.

    Calls with metadata or configuration that is not JSON are not remembered.
    """
    context = call.context
    values = canonical(call.arguments, context.config, context.metadata)
    return None if values is None else (id(context.state), values)


def by_arguments(call: ToolCall) -> Hashable:
    """Return a key of the arguments alone: for tools whose results do not depend on the session."""
    return canonical(call.arguments)


def is_repeatable(call: ToolCall) -> bool:
    """Return whether the tool of a call only reads or is idempotent, and is no background tool.

    A tool with `idempotentHint: false` is not repeatable: its results may differ each time.
    """
    tool = tool_of(call)
    if tool is None or tool.background or (tool.annotations or {}).get("idempotentHint") is False:
        return False
    return tool.idempotent or says_read_only(call)


def cache(
    seconds: float = 300,
    size: int = 256,
    *,
    key: Callable[[ToolCall], Hashable] = by_session,
    which: Callable[[ToolCall], bool] = is_repeatable,
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Answer a repeated call from memory, if its tool only reads.

    By default, it remembers tools with `readOnlyHint` and idempotent tools; `which` replaces this
    choice. Calls are equal if tool and `key` are equal; a call whose key is `None` is not
    remembered. The memory keeps the newest `size` successful results for `seconds`, without their
    chunks. A call of any other tool without `readOnlyHint` may change what was read: it clears the
    memory of its session.

    If equal calls run at the same time, one runs and the others get its result. If that call yields
    chunks or is cancelled, the others run, too. Results from memory have `cached` in their
    metadata. Put middleware that refuses calls outside this one.
    """
    if not (seconds > 0 and size > 0):
        raise DefinitionError(f"{size} answers for {seconds} seconds cannot be remembered")
    memory = AnswerMemory(size, seconds, clock)

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
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
            if place is None and not says_read_only(call):
                memory.forget(lambda answer: answer.state is call.context.state)

    return middleware
