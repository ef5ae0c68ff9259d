"""Middleware that makes an OpenTelemetry span of each call, as its GenAI conventions say."""

from collections.abc import AsyncIterator
from typing import Any

from satchel.runtime.middleware.call_ending import as_text, ending_of
from satchel.runtime.middleware.tool_hints import tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import close
from satchel.text import one_line, visible
from satchel.tools import Item, ToolCall, ToolResult


def trace(tracer: Any = None, *, content: bool = False) -> Middleware:
    """Make a span `execute_tool NAME` of each call, which is current inside the tool.

    `content` records arguments and results, which may contain secrets. Without `opentelemetry-api`
    this does nothing.
    """
    try:
        from opentelemetry import (  # type: ignore[import-not-found, unused-ignore]
            trace as api,
        )
    except ImportError:
        return lambda call, inner: inner(call)
    span_tracer = api.get_tracer("satchel") if tracer is None else tracer

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        span = span_tracer.start_span(
            f"execute_tool {one_line(call.name)}", attributes=_attributes(call, content=content)
        )

        def as_current_span() -> Any:
            # Exited before each `yield`: the reader is outside of the tool. It may also continue in
            # another context, where the span cannot be exited.
            return api.use_span(span, record_exception=False, set_status_on_exception=False)

        result: ToolResult | None = None
        problem: BaseException | None = None
        try:
            with as_current_span():
                items = inner(call)
            try:
                while True:
                    with as_current_span():
                        item = await anext(items, None)
                    if item is None:
                        break
                    if isinstance(item, ToolResult):
                        result = item
                    yield item
            finally:
                with as_current_span():
                    await close(items)
        except BaseException as raised:
            problem = raised
            raise
        finally:
            end = ending_of(result, problem)
            if end.is_error or end.is_interrupted:
                span.set_attribute("error.type", end.status)
                span.set_status(api.StatusCode.ERROR)
            elif content and result is not None:
                span.set_attribute("gen_ai.tool.call.result", _content(result))
            span.end()

    return middleware


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
        attributes["gen_ai.tool.call.arguments"] = as_text(call.arguments)
    return attributes


def _content(result: ToolResult) -> str:
    return as_text(result.text if result.structured is None else result.structured)
