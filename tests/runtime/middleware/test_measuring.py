import asyncio
import logging

import pytest
from layer_stage import CHUNK, FAILED, OK, Clock, Inside, a_call, first, forever, read, turns

from satchel.runtime.middleware import Measurement, measure


def measured(script, reader=read):
    item, clock = [], Clock()
    script = [lambda: clock.sleep(2), *script]
    try:
        call = a_call(groups=("maps",))
        asyncio.run(reader(measure(item.append, clock=clock), Inside(script), call))
    except RuntimeError:
        pass
    (measurement,) = item
    return measurement


def ended(chunks=0, *, is_error=False, error_code=None, is_interrupted=False):
    return Measurement(
        tool="probe",
        group="maps",
        call_id="call-1",
        seconds=2.0,
        chunks=chunks,
        is_error=is_error,
        error_code=error_code,
        is_interrupted=is_interrupted,
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([CHUNK, CHUNK, OK], ended(2)),
        ([FAILED], ended(is_error=True, error_code="tool_failed")),
        ([CHUNK], ended(1, is_error=True, error_code="no_result")),
        ([RuntimeError()], ended(is_error=True, error_code="RuntimeError")),
    ],
)
def test_each_call_is_reported_once_as_it_ended(script, expected):
    assert measured(script) == expected


def test_a_call_that_the_reader_left_is_reported_as_interrupted_unless_it_had_its_result():
    left = ended(1, is_error=True, error_code="interrupted", is_interrupted=True)
    assert measured([CHUNK, OK], first) == left
    assert measured([OK], first) == ended()


def test_a_cancelled_call_is_reported_as_interrupted():
    results = []

    async def main():
        task = asyncio.create_task(read(measure(results.append), Inside([forever])))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [item.error_code for item in results] == ["interrupted"]
    assert results[0].is_interrupted


def test_a_report_that_fails_costs_the_call_nothing(caplog):
    def report(measurement):
        raise LookupError

    with caplog.at_level(logging.ERROR, "satchel.runtime"):
        assert asyncio.run(read(measure(report), Inside())) == [OK]
    assert "the report of a call of probe failed" in caplog.text
