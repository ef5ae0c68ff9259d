"""Middleware that reports how long each call took."""

import time
from collections.abc import AsyncIterator, Callable

from satchel.lazy_dataclass import dataclass
from satchel.runtime.middleware.call_ending import ending_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.tools import Item, ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One call that ended."""

    tool: str
    group: str
    call_id: str
    seconds: float
    """From start to end, including the time that the reader of the chunks takes."""
    chunks: int
    is_error: bool
    error_code: str | None
    """`interrupted` also for a cancelled call; the class of the exception if it raised."""
    is_interrupted: bool


def measure(
    report: Callable[[Measurement], object], *, clock: Callable[[], float] = time.monotonic
) -> Middleware:
    """Report each call when it has ended, also after a failure.

    `report` is called on the event loop, so it must be quick; its exceptions are logged.
    """

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        result: ToolResult | None = None
        problem: BaseException | None = None
        chunks, begun = 0, clock()
        try:
            async with opened(inner, call) as items:
                async for item in items:
                    if isinstance(item, ToolResult):
                        result = item
                    else:
                        chunks += 1
                    yield item
        except BaseException as raised:
            problem = raised
            raise
        finally:
            end = ending_of(result, problem)
            _report(
                report,
                Measurement(
                    tool=call.name,
                    group=call.group,
                    call_id=call.id,
                    seconds=clock() - begun,
                    chunks=chunks,
                    is_error=end.is_error,
                    error_code=end.error_code,
                    is_interrupted=end.is_interrupted,
                ),
            )

    return middleware


def _report(report: Callable[[Measurement], object], measurement: Measurement) -> None:
    try:
        report(measurement)
    except Exception:
        import logging

        log = logging.getLogger("satchel.runtime")
        log.exception("the report of a call of %s failed", measurement.tool)
