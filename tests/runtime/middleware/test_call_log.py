import asyncio
import logging

import pytest
from layer_stage import CHUNK, FAILED, OK, Clock, Inside, a_call, first, forever, read, turns

from satchel.runtime.middleware import log_calls
from satchel.tools import ToolResult


class Log:
    def __init__(self):
        self.lines = []

    def log(self, _level, msg, /, *args):
        self.lines.append(msg % args)


def lines_of(script, call=None, **options):
    log = Log()
    asyncio.run(read(log_calls(log, **options), Inside(script), call))
    return log.lines


def test_begin_and_end_are_logged_with_name_id_outcome_and_milliseconds():
    clock = Clock()
    assert lines_of([lambda: clock.sleep(1.5), OK], clock=clock) == [
        "call probe (id call-1) begins",
        "call probe (id call-1) ends: ok after 1500 ms",
    ]


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ([FAILED], "tool_failed"),
        ([ToolResult(is_error=True)], "error"),
        ([ToolResult(is_error=True, error_code="x", is_interrupted=True)], "interrupted"),
        ([CHUNK], "no_result"),
    ],
)
def test_the_outcome_is_said_in_one_word(script, outcome):
    assert f" ends: {outcome} after" in lines_of(script)[-1]


def test_an_exception_is_logged_by_its_class():
    log = Log()
    with pytest.raises(RuntimeError):
        asyncio.run(read(log_calls(log), Inside([OK, RuntimeError("secret")])))
    assert "ends: RuntimeError after" in log.lines[-1]
    assert "secret" not in str(log.lines)


def test_cancelled_and_left_are_interrupted():
    log = Log()

    async def main():
        task = asyncio.create_task(read(log_calls(log), Inside([forever])))
        await turns()
        task.cancel()
        await asyncio.wait([task])
        await first(log_calls(log), Inside([CHUNK, OK]))

    asyncio.run(main())
    assert ["ends: interrupted" in line for line in log.lines] == [False, True, False, True]


def test_a_caller_that_stops_at_the_result_has_had_it():
    log = Log()
    asyncio.run(first(log_calls(log), Inside([OK])))
    assert "ends: ok" in log.lines[-1]


def test_arguments_are_logged_only_if_asked_and_injected_values_never():
    call = a_call(arguments={"city": "Oslo\n\x1b[2J"}, state={"key": "secret"})
    assert "Oslo" not in str(lines_of([OK], call))
    begin = lines_of([OK], call, arguments=True)[0]
    assert begin == 'call probe (id call-1) begins with {"city":"Oslo\\n\\u001b[2J"}'
    assert "secret" not in begin


def test_arguments_that_are_text_long_or_no_json_are_logged_as_well_as_can_be():
    assert lines_of([OK], a_call(arguments="{\n\x1bx"), arguments=True)[0].endswith("with { x")
    assert lines_of([OK], a_call(arguments={"a": print}), arguments=True)[0].endswith(
        "with <dict, no JSON>"
    )
    assert len(lines_of([OK], a_call(arguments={"a": "x" * 9999}), arguments=True)[0]) < 1100


def test_a_name_cannot_forge_lines_and_a_call_may_have_no_id():
    log = lines_of([OK], a_call(name="a\nb\x1b", id=""))
    assert log[0] == "call a b (id -) begins"


def test_without_a_logger_and_level_it_is_satchel_calls_at_info(caplog):
    with caplog.at_level(logging.INFO, "satchel.calls"):
        asyncio.run(read(log_calls(), Inside([OK])))
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("satchel.calls", "INFO")
    ] * 2


def test_a_logger_and_a_level_can_be_given(caplog):
    with caplog.at_level(logging.DEBUG, "mine"):
        asyncio.run(read(log_calls(logging.getLogger("mine"), logging.DEBUG), Inside([OK])))
    assert {(record.name, record.levelname) for record in caplog.records} == {("mine", "DEBUG")}
