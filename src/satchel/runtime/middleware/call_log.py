"""Middleware that logs each call."""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from satchel.runtime.middleware.call_ending import as_text, ending_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, ToolResult

INFO = 20
"""The same as `logging.INFO`; `logging` is imported only when something is logged."""

_ARGUMENTS_LENGTH = 1000


class Log(Protocol):
    """A logger, or another object with its `log` method."""

    def log(self, level: int, msg: str, /, *args: Any) -> None:
        """Log a message with its values."""


def log_calls(
    logger: Log | None = None,
    level: int = INFO,
    *,
    arguments: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Log the start of each call, and its end with the milliseconds it took.

    The logger is `satchel.calls` unless another is given. `arguments` also logs the arguments,
    which may contain secrets. Values that the host injects are never logged.
    """

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        log = _own_logger() if logger is None else logger
        name, call_id = one_line(call.name), one_line(call.id) or "-"
        if arguments:
            sent = shorten(one_line(as_text(call.arguments)), _ARGUMENTS_LENGTH)
            log.log(level, "call %s (id %s) begins with %s", name, call_id, sent)
        else:
            log.log(level, "call %s (id %s) begins", name, call_id)
        result: ToolResult | None = None
        problem: BaseException | None = None
        begun = clock()
        try:
            async with opened(inner, call) as items:
                async for item in items:
                    if isinstance(item, ToolResult):
                        result = item
                    yield item
        except BaseException as raised:
            problem = raised
            raise
        finally:
            status, elapsed = ending_of(result, problem).status, (clock() - begun) * 1000
            log.log(level, "call %s (id %s) ends: %s after %.0f ms", name, call_id, status, elapsed)

    return middleware


def _own_logger() -> Log:
    import logging

    return logging.getLogger("satchel.calls")
