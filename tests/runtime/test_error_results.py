import asyncio
import os
from typing import Annotated

import pydantic
import pytest
from runs import a_run, play_for_real

from satchel.errors import ToolError
from satchel.runtime.error_results import error_result
from satchel.settings import Limits
from satchel.tools import ArgumentError, ArgumentFault, FunctionTool, Tool, ToolContext


def call(fn, arguments=None, **options):
    return play_for_real(a_run(fn, arguments, **options).result())


def forecast(city: str, days: int = 3):
    return {"city": city, "days": days}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ("{", "they are not valid JSON"),
        ('["secret"]', "they must be one JSON object"),
        ({1: "secret"}, "they must be one JSON object"),
        ({}, "city: is required"),
        ({"city": ["secret"]}, "city: should be a valid string"),
        ({"city": "a", "days": "secret"}, "days: should be a valid integer"),
        ({"city": "a", "town": "secret"}, "town: there is no such argument"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line_without_their_values(sent, message):
    result = call(forecast, sent)
    assert result.is_error
    assert result.error_code == "invalid_arguments"
    assert message in result.text
    assert result.text.endswith("It takes: city (string, required), days (integer)")
    assert "secret" not in result.text
    assert "http" not in result.text
    assert result.text.isprintable()


def test_the_text_of_a_tool_error_reaches_the_model_as_written(log):
    def fn():
        raise ToolError("no such city: Atlantis;\ntry another")

    result = call(fn)
    assert result.text == "no such city: Atlantis;\ntry another"
    assert (result.is_error, result.error_code) == (True, "tool_error")
    assert log.records == []


def test_a_tool_error_that_cannot_be_sent_is_fixed():
    def fn():
        raise ToolError("a\ud800b")

    assert call(fn).text == "a?b"


def test_a_long_tool_error_is_cut():
    def fn():
        raise ToolError("x" * 100)

    result = call(fn, limits=Limits(result_text=10))
    assert result.text == "x" * 10 + "\n[cut: 90 of 100 bytes left out, limit result_text]"
    assert result.error_code == "tool_error"


class Mute(Exception):  # noqa: N818 - it says nothing
    def __str__(self):
        raise RuntimeError("secret")

    __repr__ = __str__


class MuteToolError(ToolError):
    __str__ = Mute.__str__


def raising(problem):
    def fn():
        raise problem

    return fn


def raising_async(problem):
    async def fn():
        raise problem

    return fn


@pytest.mark.parametrize("make", [raising, raising_async])
@pytest.mark.parametrize(
    "problem",
    [
        ValueError("secret"),
        TimeoutError("secret"),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        GeneratorExit("secret"),
        StopIteration("secret"),
        StopAsyncIteration("secret"),
        asyncio.CancelledError("secret"),
        BaseExceptionGroup("secret", [SystemExit()]),
        TypeError("secret"),
        ArgumentError("another", [ArgumentFault("secret", "is required")]),
        ExceptionGroup("secret", [ToolError("secret")]),
        Mute(),
        MuteToolError("secret"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_any_other_exception_is_an_id_for_the_model_and_a_traceback_for_the_log(make, problem, log):
    result = call(make(problem))
    assert (result.is_error, result.error_code) == (True, "tool_failed")
    [record] = log.records
    assert record.name == "satchel.runtime"
    mark = record.args[1]
    assert result.text == f"tool failed (id {mark})"
    assert f"tool probe failed (id {mark})" in log.text
    assert "Traceback" in log.text


def test_the_traceback_in_the_log_begins_with_the_tool(log):
    call(raising(ValueError("told")))
    frames = [line for line in log.text.splitlines() if line.startswith("  File")]
    assert "test_error_results.py" in log.text
    assert "satchel/runtime/tool_run.py" not in log.text
    assert "satchel/tools/callables.py" not in log.text
    assert len(frames) == 1


def test_an_internal_error_is_reported_with_all_its_frames(log):
    class Broken(Tool):
        name = "broken"

        async def execute(self): ...

        def check(self, arguments):
            return [].pop()

    error_result(Broken(), {}, _caught(lambda: FunctionTool(forecast).check({})), None)
    assert "ArgumentError" in log.text


def _caught(fn):
    try:
        fn()
    except Exception as problem:
        problem.tool = "another"
        return problem


def test_neither_secrets_nor_folders_are_in_the_log(log, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "t0ps3cr3t")

    async def fn(key, city: str):
        raise ValueError(f"{key} t0ps3cr3t api_key=abcdef {os.getcwd()}/x {city}")

    call(fn, {"city": "Oslo"}, presets={"key": "hunter22"})
    assert "[redacted] [redacted] api_key=[redacted] ./x Oslo" in log.text
    assert "hunter22" not in log.text
    assert os.getcwd() not in log.text


class OddError(Exception):
    def __str__(self):
        raise SystemExit


def test_an_error_that_cannot_be_written_is_named(log):
    class WorseError(ToolError):
        def __str__(self):
            raise OddError

    assert call(raising(WorseError("a"))).error_code == "tool_failed"
    assert "OddError" in log.text


def test_an_injected_value_that_cannot_be_looked_at_hides_the_text(log):
    endless = []
    endless.append(endless)

    async def fn(key):
        raise ValueError("told")

    assert call(fn, presets={"key": endless}).error_code == "tool_failed"
    assert "ValueError, whose text cannot be read" in log.text


def test_the_type_of_an_exception_whose_text_cannot_be_read_stays():
    result = call(raising(OddError()), errors="message")
    assert result.text.endswith("): OddError: its text cannot be read")


def test_a_tool_without_bottom_is_a_failure():
    def endless():
        return endless()

    assert call(endless).error_code == "tool_failed"


def test_a_validator_that_breaks_is_a_failure():
    def broken(value):
        raise SystemExit

    def fn(x: Annotated[int, pydantic.AfterValidator(broken)]): ...

    assert call(fn, {"x": 1}).error_code == "tool_failed"


class Handmade(Tool):
    name = "handmade"
    description = "Made by hand."

    def __init__(self, parameters):
        self.parameters = parameters

    async def execute(self, /, city, context: ToolContext):
        if city == "Atlantis":
            raise TypeError("secret")
        return city


OPEN = {"type": "object", "properties": {"city": {"type": "string"}}}
CITY = {**OPEN, "required": ["city"]}


def test_arguments_that_miss_the_schema_of_a_class_are_reported_to_the_model():
    result = call(Handmade(CITY), {"town": "Oslo"})
    assert result.error_code == "invalid_arguments"
    assert result.text.endswith("city: is required. It takes: city (string, required)")


@pytest.mark.parametrize("sent", [{"city": "a", "town": "b"}, '{"city": "a", "town": "b"}'])
def test_arguments_that_miss_only_its_signature_are_reported_too(sent):
    result = call(Handmade(OPEN), sent)
    assert result.error_code == "invalid_arguments"
    assert "got an unexpected keyword argument 'town'. It takes: city (string)" in result.text


def test_a_type_error_inside_a_tool_is_a_failure_of_the_tool():
    assert call(Handmade(CITY), {"city": "Atlantis"}).error_code == "tool_failed"


def test_a_tool_whose_own_schema_is_broken_still_gives_a_result():
    assert call(Handmade(None), {}).error_code == "tool_failed"


def test_the_host_may_give_the_model_the_type_and_the_text_without_secrets(log, monkeypatch):
    monkeypatch.setenv("PROBE_TOKEN", "hunter2-hunter2")
    result = call(raising(ValueError("no host\nwith hunter2-hunter2")), errors="message")
    mark = log.records[0].args[1]
    assert result.text == f"tool failed (id {mark}): ValueError: no host\nwith [redacted]"
    assert result.error_code == "tool_failed"
    assert "errors=" not in log.text


def test_the_host_may_write_the_text_itself(log):
    result = call(raising(KeyError("x")), errors=lambda tool, e: f"{tool}: {type(e).__name__}")
    assert result.text == "probe: KeyError"
    assert "KeyError: 'x'" in log.text


@pytest.mark.parametrize("errors", [lambda tool, e: None, lambda tool: ""])
def test_a_text_that_cannot_be_made_leaves_the_id(errors, log):
    result = call(raising(Mute()), errors=errors)
    assert result.text == f"tool failed (id {log.records[0].args[1]})"
    assert len(log.records) == 2


def test_the_log_says_how_to_give_the_model_more(log):
    call(raising(ValueError("told")))
    assert 'Satchel(errors="message")' in log.text


def test_middleware_sees_the_exception_and_the_result_keeps_no_traceback():
    problem, seen = ValueError("told"), []

    async def look(call, handler):
        async for item in handler(call):
            seen.append(item.exception)
            yield item

    result = call(raising(problem), layers=[look])
    assert seen == [problem]
    assert result.exception is None
    assert result.error_code == "tool_failed"
