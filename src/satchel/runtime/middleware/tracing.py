"""Middleware that makes an OpenTelemetry span of each call, by its conventions for AI."""

from collections.abc import AsyncIterator
from typing import Any

from satchel.runtime.middleware.call_ending import ending_of, written
from satchel.runtime.middleware.tool_hints import tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import close
from satchel.text import one_line, visible
from satchel.tools import Item, ToolCall, ToolResult


def trace(tracer: Any = None, *, content: bool = False) -> Middleware:
    """Make a span `execute_tool NAME` of each call, which is current inside the tool.

    `content` records arguments and results, which may hold secrets. Without `opentelemetry-api`
    this does nothing.
    """
    try:
        from opentelemetry import (  # type: ignore[import-not-found, unused-ignore]
            trace as api,
        )
    except ImportError:
        return lambda call, inner: inner(call)
    maker = api.get_tracer("satchel") if tracer is None else tracer

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        span = maker.start_span(
            f"execute_tool {one_line(call.name)}", attributes=_attributes(call, content=content)
        )

        def current() -> Any:
            # Left before each `yield`: the reader is not inside the tool, and may continue in
            # another context, where the span could not be left any more.
            return api.use_span(span, record_exception=False, set_status_on_exception=False)

        result: ToolResult | None = None
        problem: BaseException | None = None
        try:
            with current():
                items = inner(call)
            try:
                while True:
                    with current():
                        item = await anext(items, None)
                    if item is None:
                        break
                    if isinstance(item, ToolResult):
                        result = item
                    yield item
            finally:
                with current():
                    await close(items)
        except BaseException as raised:
            problem = raised
            raise
        finally:
            end = ending_of(result, problem)
            if end.is_error or end.is_interrupted:
                span.set_attribute("error.type", end.word)
                span.set_status(api.StatusCode.ERROR)
            elif content and result is not None:
                span.set_attribute("gen_ai.tool.call.result", _content(result))
            span.end()

    return layer


def _attributes(call: ToolCall, *, content: bool) -> dict[str, str]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": one_line(call.name),
        "gen_ai.tool.type": "function",
    }
    if call.id:
        attributes["gen_ai.tool.call.id"] = one_line(call.id)
    if (tool := tool_of(call)) is not None:
        attributes["gen_ai.tool.description"] = visible(tool.description)
    if content:
        attributes["gen_ai.tool.call.arguments"] = written(call.arguments)
    return attributes


def _content(result: ToolResult) -> str:
    return written(result.text if result.structured is None else result.structured)
