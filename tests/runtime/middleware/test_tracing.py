"""Spans, with stand-ins for `opentelemetry`; `test_tracing_for_real.py` uses the thing itself."""

import asyncio
import json
import sys
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
from layer_stage import CHUNK, FAILED, OK, Inside, a_call, a_tool, first, forever, read, turns

from satchel.runtime.middleware import trace
from satchel.tools import Text, ToolResult


class Span:
    def __init__(self, name, attributes):
        self.name, self.attributes = name, dict(attributes)
        self.status, self.ended = None, 0

    def set_attribute(self, key, value):
        assert not self.ended
        self.attributes[key] = value

    def set_status(self, status):
        assert not self.ended
        self.status = status

    def end(self):
        self.ended += 1


class Tracer:
    def __init__(self):
        self.spans = []

    def start_span(self, name, *, attributes):
        self.spans.append(Span(name, attributes))
        return self.spans[-1]


class Api(ModuleType):
    """What is used of `opentelemetry.trace`."""

    def __init__(self):
        super().__init__("opentelemetry.trace")
        self.now = ContextVar("span", default=None)
        self.tracer = Tracer()
        self.StatusCode = SimpleNamespace(ERROR="error")

    def get_tracer(self, name):
        assert name == "satchel"
        return self.tracer

    @contextmanager
    def use_span(self, span, *, record_exception, set_status_on_exception):
        assert not record_exception
        assert not set_status_on_exception
        token = self.now.set(span)
        try:
            yield
        finally:
            self.now.reset(token)  # raises in another context


@pytest.fixture
def api(monkeypatch):
    package, api = ModuleType("opentelemetry"), Api()
    package.trace = api
    monkeypatch.setitem(sys.modules, "opentelemetry", package)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)
    return api


def test_without_opentelemetry_calls_pass_as_if_it_were_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    inside, call = Inside([CHUNK, OK]), a_call()
    layer = trace()
    assert asyncio.run(read(layer, inside, call)) == [CHUNK, OK]
    assert inside.calls == [call]


def test_a_call_becomes_a_span_by_the_conventions(api):
    tool = a_tool(name="forecast", description="Weather.\u202e")
    assert asyncio.run(read(trace(), Inside(), a_call(tool, id="call-7"))) == [OK]
    (span,) = api.tracer.spans
    assert span.name == "execute_tool forecast"
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "forecast",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-7",
        "gen_ai.tool.description": "Weather.",
    }
    assert (span.status, span.ended) == (None, 1)


def test_a_call_without_id_or_tool_lacks_what_they_say_and_a_tracer_can_be_given(api):
    tracer = Tracer()
    asyncio.run(read(trace(tracer), Inside(), replace(a_call(id=""), tool=None)))
    assert "gen_ai.tool.description" not in tracer.spans[0].attributes
    assert "gen_ai.tool.call.id" not in tracer.spans[0].attributes
    assert api.tracer.spans == []


def test_arguments_and_results_are_recorded_only_if_asked(api):
    call = a_call(arguments={"city": "Oslo"})
    asyncio.run(read(trace(), Inside(), call))
    assert "Oslo" not in str(api.tracer.spans[0].attributes)
    asyncio.run(read(trace(content=True), Inside(), call))
    attributes = api.tracer.spans[1].attributes
    assert json.loads(attributes["gen_ai.tool.call.arguments"]) == {"city": "Oslo"}
    assert json.loads(attributes["gen_ai.tool.call.result"]) == {"a": [1]}


def test_text_is_recorded_as_text_that_can_be_sent(api):
    result = ToolResult(content=(Text("fine \ud800"),))
    asyncio.run(read(trace(content=True), Inside([result]), a_call(arguments="{\ud800")))
    attributes = api.tracer.spans[0].attributes
    assert attributes["gen_ai.tool.call.arguments"] == "{?"
    assert attributes["gen_ai.tool.call.result"] == "fine ?"


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([FAILED], "tool_failed"),
        ([ToolResult(is_error=True)], "error"),
        ([ToolResult(is_interrupted=True)], "interrupted"),
        ([CHUNK], "no_result"),
    ],
)
def test_an_error_is_reported_by_its_code_and_never_by_its_text(api, script, kind, content):
    asyncio.run(read(trace(content=content), Inside(script)))
    (span,) = api.tracer.spans
    assert (span.attributes["error.type"], span.status, span.ended) == (kind, "error", 1)
    assert "gen_ai.tool.call.result" not in span.attributes


@pytest.mark.parametrize("is_late", [False, True])
def test_an_exception_is_reported_by_its_class(api, is_late):
    def inside(call):
        raise RuntimeError("secret")

    with pytest.raises(RuntimeError):
        asyncio.run(read(trace(), Inside([OK, RuntimeError("secret")]) if is_late else inside))
    (span,) = api.tracer.spans
    assert (span.attributes["error.type"], span.ended) == ("RuntimeError", 1)
    assert "secret" not in str(vars(span))


def test_cancelled_and_left_are_interrupted(api):
    async def main():
        task = asyncio.create_task(read(trace(), Inside([forever])))
        await turns()
        task.cancel()
        await asyncio.wait([task])
        await first(trace(), Inside([CHUNK, OK]))
        await first(trace(), Inside([OK]))

    asyncio.run(main())
    kinds = [span.attributes.get("error.type") for span in api.tracer.spans]
    assert kinds == ["interrupted", "interrupted", None]
    assert [span.ended for span in api.tracer.spans] == [1, 1, 1]


def test_the_span_is_current_inside_the_tool_and_nowhere_else(api):
    seen = []

    async def inside(call):
        try:
            seen.append(api.now.get())
            await asyncio.sleep(0)
            seen.append(api.now.get())
            yield CHUNK
            seen.append(api.now.get())
            yield OK
        finally:
            await asyncio.sleep(0)
            seen.append(api.now.get())

    async def main():
        outer = object()
        api.now.set(outer)
        async for _ in trace()(a_call(), inside):
            assert api.now.get() is outer
        assert api.now.get() is outer
        await first(trace(), inside)
        assert api.now.get() is outer

    asyncio.run(main())
    one, other = api.tracer.spans
    assert seen == [one] * 4 + [other] * 3


def test_steps_may_be_taken_in_different_contexts(api):
    inside = Inside([CHUNK, lambda: asyncio.sleep(0), CHUNK, OK])

    async def main():
        items = trace()(a_call(), inside)
        for _ in range(2):
            await asyncio.create_task(anext(items), context=copy_context())
        await asyncio.create_task(items.aclose(), context=copy_context())
        async with aclosing(trace()(a_call(), inside)) as items:
            await asyncio.create_task(anext(items))

    asyncio.run(main())
    assert [span.ended for span in api.tracer.spans] == [1, 1]
    assert inside.open == 0


def test_calls_at_once_do_not_mix_their_spans(api):
    seen = {}

    async def inside(call):
        for _ in range(5):
            await asyncio.sleep(0)
            seen.setdefault(call.id, set()).add(api.now.get())
            yield CHUNK
        yield OK

    async def main():
        calls = [a_call(id=str(number)) for number in range(3)]
        await asyncio.gather(*(read(trace(), inside, call) for call in calls))

    asyncio.run(main())
    for mark, (span,) in seen.items():
        assert span.attributes["gen_ai.tool.call.id"] == mark
