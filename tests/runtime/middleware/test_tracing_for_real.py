"""Spans of OpenTelemetry itself, where it is installed."""

import asyncio
import logging
from dataclasses import replace

import pytest
from layer_stage import CHUNK, FAILED, OK, Inside, a_call, first, read, turns

from satchel.runtime.middleware import trace

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace as api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def test_a_span_of_the_tool_lies_in_that_of_the_call_and_that_in_the_hosts(tracer, exporter):
    async def inside(call):
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0)
        yield CHUNK
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0)
        yield OK

    async def main():
        with tracer.start_as_current_span("invoke_agent") as agent:
            async for _ in trace(tracer)(a_call(), inside):
                assert api.get_current_span() is agent

    asyncio.run(main())
    *queries, call, agent = exporter.get_finished_spans()
    assert (call.name, call.kind) == ("execute_tool probe", api.SpanKind.INTERNAL)
    assert call.parent.span_id == agent.context.span_id
    assert {query.parent.span_id for query in queries} == {call.context.span_id}
    assert call.status.status_code is api.StatusCode.UNSET
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "probe",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.description": "Probes.",
    }


def test_an_error_has_a_status_and_a_type(tracer, exporter):
    asyncio.run(read(trace(tracer), Inside([FAILED])))
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is api.StatusCode.ERROR
    assert span.attributes["error.type"] == "tool_failed"
    assert span.events == ()


def test_an_exception_is_recorded_without_its_text(tracer, exporter):
    with pytest.raises(RuntimeError):
        asyncio.run(read(trace(tracer), Inside([RuntimeError("secret")])))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "RuntimeError"
    assert "secret" not in span.to_json()


def test_content_is_recorded_if_asked(tracer, exporter):
    call = a_call(arguments={"city": "Oslo"})
    asyncio.run(read(trace(tracer, content=True), Inside(), call))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["gen_ai.tool.call.arguments"] == '{"city":"Oslo"}'
    assert span.attributes["gen_ai.tool.call.result"] == '{"a":[1]}'


def test_nothing_is_logged_when_the_generator_is_closed_elsewhere(tracer, exporter, caplog):
    async def main():
        items = trace(tracer)(a_call(), Inside([CHUNK, OK]))
        await asyncio.create_task(anext(items))
        await asyncio.create_task(items.aclose())
        left = trace(tracer)(a_call(), Inside([CHUNK, OK]))
        await anext(left)
        del left  # the loop closes it, in a context of its own
        await turns()
        await first(trace(tracer), Inside([CHUNK, OK]))
        assert not api.get_current_span().is_recording()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert [span.attributes["error.type"] for span in exporter.get_finished_spans()] == [
        "interrupted"
    ] * 3
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_without_a_provider_calls_pass_all_the_same():
    call = replace(a_call(), tool=None)
    assert asyncio.run(read(trace(), Inside(), call)) == [OK]
