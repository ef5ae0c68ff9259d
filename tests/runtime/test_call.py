import asyncio
import json
import logging
import subprocess
import sys
import threading
from typing import Annotated

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.errors import ToolError
from satchel.runtime import run_call
from satchel.settings import Limits
from satchel.tools import (
    ArgumentError,
    ArgumentFault,
    FunctionTool,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

QUICK = Limits(tool_call=0.01)


def call(fn, arguments=None, *, limits=None, **options):
    made = fn if isinstance(fn, Tool) else FunctionTool(fn, name="probe", **options)
    wish = ToolCall("probe", {} if arguments is None else arguments, id="call-1")
    return asyncio.run(run_call(made, wish, limits or Limits()))


def forecast(city: str, days: int = 3):
    return {"city": city, "days": days}


def test_a_call_gives_what_the_tool_returned_under_the_id_of_the_call():
    assert call(forecast, {"city": "Oslo"}) == ToolResult(
        (Text('{"city":"Oslo","days":3}'),),
        structured={"city": "Oslo", "days": 3},
        call_id="call-1",
    )


def test_a_call_without_id_has_none():
    result = asyncio.run(run_call(FunctionTool(forecast), ToolCall("forecast"), Limits()))
    assert result.call_id is None


def test_arguments_may_be_json_text():
    assert call(forecast, '{"city": "Oslo", "days": 1}').structured == {"city": "Oslo", "days": 1}


@pytest.mark.parametrize("nothing", ["", " \n", "{}", "null", {}])
def test_nothing_is_a_way_to_send_no_arguments(nothing):
    assert call(lambda: "now", nothing).text == "now"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("{", "they are not valid JSON"),
        ('{"city": NaN}', "they are not valid JSON"),
        ("[" * 200_000, "they are not valid JSON"),
        ('["secret"]', "they must be one JSON object"),
        ('"secret"', "they must be one JSON object"),
        (["secret"], "they must be one JSON object"),
        ({1: "secret"}, "they must be one JSON object"),
        ({}, "city: is required"),
        ({"city": ["secret"]}, "city: should be a valid string"),
        ({"city": "a", "days": "secret"}, "days: should be a valid integer"),
        ({"city": "a", "town": "secret"}, "town: there is no such argument"),
    ],
)
def test_wrong_arguments_are_told_in_one_line_without_their_values(sent, said):
    result = call(forecast, sent)
    assert result.is_error
    assert result.error_code == "invalid_arguments"
    assert said in result.text
    assert result.text.endswith("It takes: city (string, required), days (integer)")
    assert "secret" not in result.text
    assert "http" not in result.text
    assert result.text.isprintable()


def test_the_text_of_a_tool_error_reaches_the_model_as_written(caplog):
    def fn():
        raise ToolError("no such city: Atlantis;\ntry another")

    result = call(fn)
    assert result.text == "no such city: Atlantis;\ntry another"
    assert (result.is_error, result.error_code) == (True, "tool_error")
    assert caplog.records == []


def test_a_tool_error_that_cannot_be_sent_is_mended():
    def fn():
        raise ToolError("a\ud800b")

    assert call(fn).text == "a?b"


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


def endless():
    return endless()


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
        Mute(),
        MuteToolError("secret"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_any_other_exception_is_an_id_for_the_model_and_a_traceback_for_the_log(
    make, problem, caplog
):
    result = call(make(problem))
    assert (result.is_error, result.error_code) == (True, "tool_failed")
    [record] = caplog.records
    assert record.name == "satchel.runtime"
    mark = record.args[1]
    assert result.text == f"tool failed (id {mark})"
    assert f"tool probe failed (id {mark})" in caplog.text
    assert "Traceback" in caplog.text


def test_a_tool_without_bottom_is_a_failure():
    assert call(endless).error_code == "tool_failed"


def test_a_validator_that_breaks_is_a_failure():
    def broken(value):
        raise SystemExit

    def fn(x: Annotated[int, pydantic.AfterValidator(broken)]): ...

    assert call(fn, {"x": 1}).error_code == "tool_failed"


def test_a_result_that_cannot_be_sent_is_an_error():
    assert call(lambda: float("nan")).error_code == "invalid_result"


def test_a_long_result_is_cut():
    result = call(lambda: "a" * 100, limits=Limits(result_text=10))
    assert result.text == "a" * 10 + "\n[cut: 90 of 100 bytes left out, limit result_text]"
    assert result.call_id == "call-1"


async def forever():
    await asyncio.Event().wait()


def block():
    threading.Event().wait()


@pytest.mark.parametrize("fn", [forever, block])
def test_a_call_that_takes_too_long_is_given_up(fn):
    result = call(fn, limits=QUICK)
    assert (result.is_error, result.error_code) == (True, "timeout")
    assert "within 0.01 s (limit tool_call)" in result.text


def test_the_timeout_of_a_tool_goes_before_the_limit():
    assert "within 0.02 s (the tool's own timeout)" in call(forever, timeout=0.02).text


def test_a_tool_that_fails_while_it_is_stopped_has_timed_out(caplog):
    async def fn():
        try:
            await forever()
        finally:
            raise ValueError

    assert call(fn, limits=QUICK).error_code == "timeout"
    assert caplog.records == []


def test_a_tool_that_answers_only_when_it_is_stopped_has_timed_out():
    async def fn():
        try:
            await forever()
        except asyncio.CancelledError:
            return "late"

    assert call(fn, limits=QUICK).error_code == "timeout"


def cancelled_by_the_host(fn):
    """Cancel a call from outside once its tool has begun; return what the call did."""

    async def main():
        began = asyncio.Event()
        task = asyncio.create_task(
            run_call(FunctionTool(fn(began), name="probe"), ToolCall("probe"), Limits())
        )
        await began.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    return asyncio.run(main())


def patient(began):
    async def fn():
        began.set()
        await forever()

    return fn


def swallowing(began):
    async def fn():
        began.set()
        try:
            await forever()
        except asyncio.CancelledError:
            return "I go on"

    return fn


def failing(began):
    async def fn():
        began.set()
        try:
            await forever()
        finally:
            raise ValueError

    return fn


def blocking(began):
    loop = asyncio.get_running_loop()

    def fn():
        loop.call_soon_threadsafe(began.set)
        block()

    return fn


@pytest.mark.parametrize("fn", [patient, swallowing, failing, blocking])
def test_cancellation_by_the_host_always_passes_through(fn, caplog):
    assert cancelled_by_the_host(fn)
    assert caplog.records == []


def test_a_timeout_around_the_call_fires():
    async def main():
        async with asyncio.timeout(0.01):
            await run_call(FunctionTool(block), ToolCall("block"), Limits())

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_the_loop_goes_on_while_a_plain_function_works():
    release = threading.Event()

    async def main():
        asyncio.get_running_loop().call_soon(release.set)
        return await run_call(FunctionTool(release.wait), ToolCall("wait"), Limits())

    assert asyncio.run(main()).structured is True


def test_a_plain_function_that_never_returns_does_not_keep_the_process_alive():
    code = (
        "import asyncio, threading\n"
        "from satchel.runtime import run_call\n"
        "from satchel.settings import Limits\n"
        "from satchel.tools import FunctionTool, ToolCall\n"
        "tool = FunctionTool(lambda: threading.Event().wait(), name='block')\n"
        "result = asyncio.run(run_call(tool, ToolCall('block'), Limits(tool_call=0.01)))\n"
        "print(result.error_code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.stdout == "timeout\n"


class Handmade(Tool):
    name = "handmade"
    description = "Made by hand."

    def __init__(self, parameters):
        self.parameters = parameters

    async def execute(self, /, city):
        if city == "Atlantis":
            raise TypeError("secret")
        return city


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_tool_of_a_class_is_called_with_its_arguments():
    assert call(Handmade(CITY), {"city": "Oslo"}).text == "Oslo"


def test_arguments_that_miss_the_signature_of_a_class_are_told_to_the_model():
    result = call(Handmade(CITY), {"town": "Oslo"})
    assert result.error_code == "invalid_arguments"
    assert "missing a required argument: 'city'. It takes: city (string, required)" in result.text


def test_a_type_error_inside_a_tool_is_a_failure_of_the_tool():
    assert call(Handmade(CITY), {"city": "Atlantis"}).error_code == "tool_failed"


def test_a_tool_whose_own_schema_is_broken_still_gives_a_result():
    assert call(Handmade(None), {}).error_code == "tool_failed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


async def typed(a: int, b: list[str] | None = None, *, c: bool = True):
    return [a, b, c]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abc") | st.text(), JSON) | st.text() | JSON.map(json.dumps))
def test_whatever_a_model_sends_gives_a_result(arguments):
    result = call(typed, arguments)
    assert result.error_code in {None, "invalid_arguments"}
    result.text.encode()


def test_importing_the_room_imports_nothing_heavy():
    code = (
        "import sys, satchel.runtime\n"
        "print({'pydantic', 'pydantic_core', 'griffe'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.stdout == "set()\n"


@pytest.fixture(autouse=True)
def _log(caplog):
    caplog.set_level(logging.DEBUG, logger="satchel")
