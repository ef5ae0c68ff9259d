import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import (
    Unraisable,
    a_run,
    begun,
    each_item,
    forever,
    ignoring,
    now,
    play,
    play_for_real,
    turns,
)

from satchel.errors import ToolError
from satchel.runtime.middleware import limit_time
from satchel.settings import Limits
from satchel.tools import Image, Text, ToolChunk, ToolResult, failure

QUICK = Limits(tool_call=0.01, cancel_grace=0.01)


def call(fn, arguments=None, **options):
    return play_for_real(a_run(fn, arguments, **options).result())


async def items_of(run):
    return [item async for item in each_item(run)]


# ---- one call -------------------------------------------------------------------------------


def forecast(city: str, days: int = 3):
    return {"city": city, "days": days}


async def forecast_async(city: str, days: int = 3):
    return {"city": city, "days": days}


async def forecast_later(city: str, days: int = 3):
    await asyncio.sleep(0)
    return {"city": city, "days": days}


@pytest.mark.parametrize("fn", [forecast, forecast_async, forecast_later])
@pytest.mark.parametrize("arguments", [{"city": "Oslo"}, '{"city": "Oslo"}'])
def test_a_call_gives_what_the_tool_returned_under_the_id_of_the_call(fn, arguments):
    assert call(fn, arguments) == ToolResult(
        content=(Text('{"city":"Oslo","days":3}'),),
        structured={"city": "Oslo", "days": 3},
        call_id="call-1",
    )


async def reading_with_a_default(call, inner):
    items = inner(call)
    while (item := await anext(items, None)) is not None:
        yield item


@pytest.mark.parametrize("layer", [reading_with_a_default, limit_time(60)])
def test_middleware_may_read_with_a_default_for_the_end(layer):
    # Python crashes here if the end is not raised by a coroutine.
    assert "Oslo" in call(forecast_async, {"city": "Oslo"}, layers=[layer]).text


def test_a_call_without_id_has_none():
    assert call(forecast, {"city": "Oslo"}, id="").call_id is None


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {"a": object()}, "\ud800", range(3)])
def test_a_result_that_cannot_be_sent_is_an_error_no_exception(value):
    async def fn():
        return value

    assert call(lambda: value).error_code == "invalid_result"
    assert call(fn).error_code == "invalid_result"


def test_a_long_result_is_cut():
    result = call(lambda: "a" * 100, limits=Limits(result_text=10))
    assert result.text == "a" * 10 + "\n[cut: 90 of 100 bytes left out, limit result_text]"
    assert result.call_id == "call-1"


def test_a_big_file_is_left_out():
    result = call(lambda: Image(b"x" * 100), limits=Limits(resource=10))
    assert result.text == "[left out: image of 100 bytes, limit resource]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


async def typed(a: int, b: list[str] | None = None, *, c: bool = True):
    return [a, b, c]


@given(st.dictionaries(st.sampled_from("abc") | st.text(), JSON) | st.text())
def test_whatever_a_model_sends_gives_a_result(arguments):
    result = asyncio.run(a_run(typed, arguments).result())
    assert result.error_code in {None, "invalid_arguments"}
    result.text.encode()


def test_arguments_that_break_when_they_are_read_give_a_result():
    class Broken(Mapping):
        def __getitem__(self, key):
            raise SystemExit

        def __iter__(self):
            raise SystemExit

        __len__ = __iter__

    assert call(typed, Broken()).error_code == "tool_failed"


# ---- threads --------------------------------------------------------------------------------

WHO = ContextVar("who", default="nobody")


def who():
    return WHO.get(), threading.current_thread() is not threading.main_thread()


def who_by_and_by():
    yield WHO.get()
    yield threading.current_thread() is not threading.main_thread()


def test_a_plain_function_runs_in_a_thread_and_sees_the_context_variables_of_the_caller():
    async def main():
        WHO.set("me")
        assert (await a_run(who).result()).structured == ["me", True]
        assert (await a_run(who_by_and_by).result()).text == "me\ntrue"

    play_for_real(main())


def test_what_a_tool_sets_in_the_context_stays_its_own():
    async def fn():
        WHO.set("tool")
        await asyncio.sleep(0)
        return WHO.get()

    async def main():
        WHO.set("host")
        assert (await a_run(fn).result()).text == "tool"
        assert WHO.get() == "host"

    play(main())


def test_the_loop_continues_while_a_plain_function_works():
    release = threading.Event()

    async def main():
        asyncio.get_running_loop().call_soon(release.set)
        return await a_run(release.wait).result()

    assert play_for_real(main()).structured is True


def test_the_loop_continues_while_a_plain_generator_works():
    steps = [threading.Event(), threading.Event()]

    def fn():
        for step in steps:
            yield step.wait(5)

    async def main():
        run = a_run(fn)
        for step in steps:
            task = await begun(run.next())
            assert not task.done()
            step.set()
            assert (await task).structured is True
        assert (await run.next()).structured == [True, True]

    play_for_real(main())


def test_a_plain_function_that_never_returns_does_not_keep_the_process_alive():
    code = (
        "import asyncio, threading\n"
        "from satchel.runtime.call_task import prepare_call\n"
        "from satchel.settings import Limits\n"
        "from satchel.tools import FunctionTool, ToolCall\n"
        "tool = FunctionTool(lambda: threading.Event().wait(), name='block')\n"
        "call = ToolCall(name='block')\n"
        "result = asyncio.run(prepare_call(call, tool, Limits(tool_call=0.01)).result())\n"
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


def block():
    threading.Event().wait()


def test_a_plain_function_that_is_left_is_logged(log):
    result = call(block, limits=QUICK)
    assert (result.error_code, result.metadata) == ("timeout", {"leaked": True})
    assert "tool probe leaked" in log.text


def test_a_plain_function_that_never_began_is_not_left_behind(log):
    run = a_run(block)
    run.interrupt()
    result = play_for_real(run.result())
    assert (result.is_interrupted, result.metadata) == (True, {})
    assert log.text == ""


def test_a_plain_generator_ends_at_its_next_item_and_is_not_left_behind(log):
    release, noted = threading.Event(), []
    closed = threading.Event()

    def fn():
        try:
            yield "a"
            release.wait(5)
            yield "b"
            noted.append("went on")
        finally:
            closed.set()

    async def main():
        run = a_run(fn)
        assert (await run.next()).text == "a"
        task = await begun(run.next())
        run.interrupt()
        assert (await task).is_interrupted
        release.set()
        assert await asyncio.to_thread(closed.wait, 5)

    play_for_real(main())
    assert noted == []
    assert log.text == ""


# ---- time -----------------------------------------------------------------------------------


def test_a_call_that_takes_too_long_is_given_up():
    result = play(a_run(forever).result())
    assert (result.is_error, result.error_code) == (True, "timeout")
    assert "within 60 s (limit tool_call)" in result.text
    assert result.metadata == {}


def test_the_timeout_of_a_tool_goes_before_the_limit():
    result = play(a_run(forever, timeout=5).result())
    assert "within 5 s (the tool's own timeout)" in result.text


def test_a_background_tool_has_all_the_time():
    async def fn():
        await asyncio.sleep(10_000)
        return "at last"

    assert play(a_run(fn, background=True).result()).text == "at last"
    assert play(a_run(fn, background=True, timeout=5).result()).error_code == "timeout"


async def failing_in_the_end():
    try:
        await forever()
    finally:
        raise ValueError


async def answering_in_the_end():
    try:
        await forever()
    except asyncio.CancelledError:
        return "late"


@pytest.mark.parametrize("fn", [failing_in_the_end, answering_in_the_end])
def test_whatever_a_tool_makes_of_its_end_it_has_timed_out(fn, log):
    assert play(a_run(fn).result()).error_code == "timeout"
    assert log.records == []


def test_the_time_that_a_reader_takes_between_chunks_is_the_readers():
    async def fn():
        for number in range(4):
            await asyncio.sleep(10)
            yield number

    async def main():
        run = a_run(fn, timeout=35)
        got = []
        async for item in each_item(run):
            got.append(item.structured)
            await asyncio.sleep(100)
        assert got[:-1] == [0, 1, 2]
        assert item.error_code == "timeout"
        assert item.structured == [0, 1, 2]

    play(main())


# ---- streams --------------------------------------------------------------------------------


async def counting():
    yield "one "
    await asyncio.sleep(1)
    yield "two"


def test_chunks_are_deltas_and_the_last_item_is_all_of_it():
    first, second, result = play(items_of(a_run(counting)))
    assert first == ToolChunk(content=(Text("one "),), call_id="call-1")
    assert second == ToolChunk(content=(Text("two"),), call_id="call-1")
    assert result == ToolResult(content=(Text("one two"),), call_id="call-1")


def test_the_result_of_a_stream_may_be_asked_for_alone():
    assert play(a_run(counting).result()).text == "one two"


def test_the_rest_of_a_stream_may_be_asked_for_as_a_result():
    async def main():
        run = a_run(counting)
        assert (await run.next()).text == "one "
        assert (await run.result()).text == "one two"

    play(main())


def test_a_stream_without_chunks_has_an_empty_result():
    async def fn():
        for nothing in (None, "", ToolChunk()):
            yield nothing

    assert play(items_of(a_run(fn))) == [ToolResult(call_id="call-1")]


def test_an_awaitable_stream_of_a_class_is_a_stream():
    class Stream:
        def __init__(self):
            self.left = [1, 2]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    async def fn():
        return Stream()

    assert [item.structured for item in play(items_of(a_run(fn)))] == [2, 1, [2, 1]]
    run = a_run(fn)

    async def main():
        await run.next()
        await run.aclose()

    play(main())


@pytest.mark.parametrize("value", [b"bytes", float("nan"), object(), "\ud800"])
def test_a_chunk_that_cannot_be_sent_ends_the_stream_after_its_chunks(value):
    closed = []

    async def fn():
        try:
            yield "one"
            yield value
            yield "three"
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    chunk, result = play(items_of(a_run(fn)))
    assert chunk.text == "one"
    assert result.error_code == "invalid_result"
    assert result.call_id == "call-1"
    assert result.text.startswith("one\nthe tool ran, but its result contains")
    assert closed == [True]


@pytest.mark.parametrize(
    ("problem", "code"), [(ToolError("no"), "tool_error"), (ValueError, "tool_failed")]
)
@pytest.mark.parametrize("wait", [0, 1])
def test_a_stream_that_fails_keeps_its_chunks(problem, code, wait):
    async def fn():
        yield "one"
        if wait:
            await asyncio.sleep(wait)
        raise problem

    result = play(a_run(fn).result())
    assert result.text.startswith("one\n")
    assert result.error_code == code


def test_a_plain_generator_that_fails_keeps_its_chunks():
    def fn():
        yield "one"
        raise ToolError("no")

    assert call(fn).text == "one\nno"


async def by_aclose(run):
    async with aclosing(each_item(run)) as items:
        await anext(items)


async def by_close(run):
    await run.next()
    await run.aclose()


async def by_cancelling_between(run):
    async def read():
        async with aclosing(each_item(run)) as items:
            async for _ in items:
                await forever()

    task = await begun(read())
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def by_cancelling_inside(run):
    task = await begun(run.result())
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def by_an_exception(run):
    with pytest.raises(ZeroDivisionError):
        async with aclosing(each_item(run)) as items:
            async for _ in items:
                raise ZeroDivisionError


async def by_interrupting(run):
    task = await begun(run.result())
    run.interrupt()
    result = await task
    assert result.is_interrupted
    assert result.text.startswith("one")


LEAVING = [
    by_aclose,
    by_close,
    by_cancelling_between,
    by_cancelling_inside,
    by_an_exception,
    by_interrupting,
]


@pytest.mark.parametrize("leave", LEAVING)
@pytest.mark.parametrize("layered", [False, True])
def test_nothing_is_left_suspended_when_the_reader_leaves(leave, layered):
    noted = []

    async def fn():
        try:
            yield "one"
            await forever()
        finally:
            await asyncio.sleep(0.5)
            noted.append("closed")

    async def careless(call, inner):
        async for item in inner(call):
            yield item

    run = a_run(fn, layers=[careless, careless] if layered else ())
    play(leave(run))
    assert noted == ["closed"]


async def swallowing_and_yielding():
    yield "one"
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            yield "still here"


async def ignoring_stream():
    yield "one"
    await ignoring()


async def ignoring_everything():
    yield "one"
    for _ in range(5):
        with suppress(BaseException):
            await asyncio.sleep(1000)


async def slow_to_close():
    try:
        yield "one"
        await forever()
    finally:
        await asyncio.sleep(1000)


@pytest.mark.parametrize("fn", [swallowing_and_yielding, ignoring_stream, ignoring_everything])
@pytest.mark.parametrize("leave", LEAVING)
def test_a_stream_that_continues_delays_nothing(fn, leave, log):
    async def main():
        await leave(a_run(fn))
        assert now() <= 5

    with Unraisable():
        play(main())
        gc.collect()


@pytest.mark.parametrize("fn", [ignoring_stream, ignoring_everything, slow_to_close])
def test_a_stream_that_continues_is_logged_and_reported_to_the_host(fn, log):
    async def main():
        result = await a_run(fn, timeout=5).result()
        assert result.metadata == {"leaked": True}
        assert result.text.startswith("one\nprobe gave no answer")
        assert now() == 6

    with Unraisable():
        play(main())
        gc.collect()
    assert "tool probe leaked" in log.text


def test_a_stream_that_continues_when_it_is_closed_is_logged(log):
    async def fn():
        try:
            yield "one"
        finally:
            await ignoring()

    async def main():
        await by_close(a_run(fn))
        assert now() == 1

    with Unraisable():
        play(main())
        gc.collect()
    assert "tool probe leaked" in log.text


def test_a_stream_that_fails_when_it_is_closed_is_closed():
    async def fn():
        try:
            yield "one"
        finally:
            raise ValueError

    play(by_close(a_run(fn)))


def test_who_is_cancelled_while_a_stream_is_closed_is_cancelled():
    async def main():
        run = a_run(slow_to_close)
        await run.next()
        task = await begun(run.aclose())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    play(main())


def test_the_chunks_until_now_can_be_seen():
    async def main():
        run = a_run(counting)
        assert run.partial_result == ToolResult()
        await run.next()
        assert run.partial_result == ToolResult(content=(Text("one "),), call_id="call-1")
        await run.aclose()

    play(main())


def test_a_coroutine_that_is_dropped_takes_its_tool_with_it():
    noted = []

    async def fn():
        try:
            await forever()
        finally:
            noted.append("closed")

    async def main():
        work = a_run(fn).result()
        work.send(None)
        await asyncio.sleep(0)
        work.close()

    play(main())
    assert noted == ["closed"]


# ---- cancellation ----------------------------------------------------------------------------


def patient(reached):
    async def fn():
        try:
            await forever()
        finally:
            reached.append(True)

    return fn


def swallowing(reached):
    async def fn():
        try:
            await forever()
        except asyncio.CancelledError:
            reached.append(True)
            return "I go on"

    return fn


def failing(reached):
    async def fn():
        try:
            await forever()
        finally:
            reached.append(True)
            raise ValueError

    return fn


def streaming(reached):
    async def fn():
        yield "one"
        try:
            await forever()
        finally:
            reached.append(True)

    return fn


@pytest.mark.parametrize("make", [patient, swallowing, failing, streaming])
@pytest.mark.parametrize("layers", [0, 2])
def test_cancellation_by_the_host_reaches_the_tool_at_once_and_always_passes_through(
    make, layers, log
):
    async def layer(call, inner):
        async for item in inner(call):
            yield item

    async def main():
        reached = []
        task = await begun(a_run(make(reached), layers=[layer] * layers).result())
        task.cancel()
        await asyncio.wait([task])
        assert reached == [True]
        assert task.cancelled()
        assert now() == 0

    play(main())
    assert log.records == []


def test_a_plain_function_is_left_when_the_host_cancels(log):
    async def main():
        task = await begun(a_run(block).result())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    play_for_real(main())
    assert "tool probe leaked" in log.text


def test_a_timeout_around_the_call_of_a_plain_function_fires():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await a_run(block).result()
        assert asyncio.current_task().cancelling() == 0

    play_for_real(main())


def test_timeouts_and_groups_continue_after_a_call():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await a_run(ignoring).result()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            tasks = [group.create_task(a_run(counting).result()) for _ in range(3)]
        assert [task.result().text for task in tasks] == ["one two"] * 3
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(a_run(forever).result())
                await asyncio.sleep(0)
                raise ValueError
        assert asyncio.current_task().cancelling() == 0

    play(main())


@pytest.mark.parametrize(
    "problem", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit]
)
@pytest.mark.parametrize("wait", [0, 1])
def test_nothing_that_a_tool_raises_ends_the_host(problem, wait):
    async def fn():
        if wait:
            await asyncio.sleep(wait)
        raise problem

    async def stream():
        yield "one"
        if wait:
            await asyncio.sleep(wait)
        raise problem

    assert play(a_run(fn).result()).error_code == "tool_failed"
    assert play(a_run(stream).result()).text.startswith("one\ntool failed")


def test_a_child_that_is_cancelled_is_a_failure_of_the_tool():
    async def fn():
        task = asyncio.create_task(forever())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task

    assert play(a_run(fn).result()).error_code == "tool_failed"


def test_a_tool_that_cancels_its_own_task_has_failed():
    async def fn():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    assert play(a_run(fn).result()).error_code == "tool_failed"
    assert play(a_run(fn, layers=[passing]).result()).error_code == "tool_failed"


# ---- interruption ----------------------------------------------------------------------------


def is_interrupted(result):
    return (result.is_interrupted, result.is_error, result.error_code, result.call_id) == (
        *(True, True),
        *("interrupted", "call-1"),
    ) and result.text.endswith("the result above, if any, is incomplete]")


def test_an_interrupted_call_says_so_and_keeps_the_chunks_so_far():
    async def main():
        run = a_run(counting)
        task = await begun(run.result())
        run.interrupt()
        return await task

    result = play(main())
    assert is_interrupted(result)
    assert result.text.startswith("one \n[probe was interrupted by the user")


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("fn", [forecast_async, counting, block, forever])
def test_a_call_that_is_interrupted_before_it_begins_never_does(fn, layers):
    async def layer(call, inner):
        raise AssertionError
        yield

    run = a_run(fn, layers=[layer] * layers)
    run.interrupt()
    assert is_interrupted(play_for_real(run.result()))


def test_a_call_may_be_interrupted_between_two_chunks():
    async def main():
        run = a_run(counting)
        assert (await run.next()).text == "one "
        await asyncio.sleep(100)
        run.interrupt()
        await asyncio.sleep(100)
        assert is_interrupted(await run.next())

    play(main())


@pytest.mark.parametrize("layers", [0, 1])
def test_a_call_that_has_ended_stays_as_it_is(layers):
    async def layer(call, inner):
        async for item in inner(call):
            yield item

    async def main():
        run = a_run(counting, layers=[layer] * layers)
        result = await run.result()
        run.interrupt()
        await turns()
        assert result.text == "one two"

    play(main())
    run = a_run(counting, layers=[layer] * layers)
    asyncio.run(run.result())
    run.interrupt()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("after", [0, 1, None])
@pytest.mark.parametrize("layers", [0, 1])
def test_a_tool_may_interrupt_itself(first, after, layers):
    async def layer(call, inner):
        async for item in inner(call):
            yield item

    async def fn():
        if first:
            await asyncio.sleep(first)
        run.interrupt()
        if after is None:
            await ignoring()
        elif after:
            await asyncio.sleep(after)
        return "done"

    run = a_run(fn, layers=[layer] * layers)
    result = play(run.result())
    assert is_interrupted(result)
    assert result.metadata == ({"leaked": True} if after is None else {})


def test_a_stream_may_interrupt_itself():
    async def fn():
        yield "one"
        run.interrupt()
        yield "two"

    run = a_run(fn)
    result = play(run.result())
    assert is_interrupted(result)
    assert result.text.startswith("onetwo\n[")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("early", [False, True])
def test_a_tool_that_interrupts_itself_and_fails_is_interrupted(first, early):
    async def fn():
        if first:
            await asyncio.sleep(first)
        run.interrupt()
        raise ValueError

    run = a_run(fn)

    async def main():
        if early:
            return await run.result()
        return await run.next()

    assert is_interrupted(play(main()))


def test_a_call_may_be_interrupted_from_any_thread():
    async def main(fn):
        run = a_run(fn)
        threading.Timer(0.01, run.interrupt).start()
        return await run.result()

    assert is_interrupted(play_for_real(main(forever)))
    assert is_interrupted(play_for_real(main(block)))


def test_a_plain_function_may_interrupt_its_own_call():
    def fn():
        run.interrupt()
        block()

    run = a_run(fn)
    assert is_interrupted(play_for_real(run.result()))


# ---- layers ----------------------------------------------------------------------------------


def layered(fn, *layers, **options):
    return a_run(fn, layers=layers, **options)


async def done():
    return "done"


async def passing(call, inner):
    async for item in inner(call):
        yield item


async def stream():
    yield "a"
    yield "b"


async def changing_the_call(call, inner):
    async for item in inner(replace(call, arguments={"city": "Bergen"})):
        yield item


async def changing_each_chunk(call, inner):
    async for item in inner(call):
        if isinstance(item, ToolChunk):
            yield replace(item, content=(Text(item.text.upper()),))
        else:
            yield replace(item, content=(Text("all of it"),))


async def answering(call, inner):
    yield ToolResult(content=(Text("cached"),))


async def yielding_only_chunks(call, inner):
    async for item in inner(call):
        if isinstance(item, ToolChunk):
            yield item


async def yielding_after_the_result(call, inner):
    yield ToolResult(content=(Text("first"),))
    yield ToolChunk(content=(Text("and more"),))


async def yielding_two_results(call, inner):
    yield ToolResult(content=(Text("first"),))
    yield ToolResult(content=(Text("second"),))


async def yielding_text(call, inner):
    yield "just text"


def test_a_middleware_may_change_the_call():
    run = layered(forecast_async, changing_the_call, arguments={"city": "Oslo"})
    result = play(run.result())
    assert result.structured == {"city": "Bergen", "days": 3}


def test_a_middleware_may_change_each_chunk_and_the_result():
    items = play(items_of(layered(stream, changing_each_chunk)))
    assert [item.text for item in items] == ["A", "B", "all of it"]
    assert {item.call_id for item in items} == {"call-1"}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (answering, "cached"),
        (yielding_only_chunks, "ab"),
        (yielding_after_the_result, "first"),
        (yielding_two_results, "second"),
        (yielding_text, "just text"),
    ],
)
def test_a_middleware_may_answer_as_it_likes(layer, message):
    items = play(items_of(layered(stream, layer)))
    assert [isinstance(item, ToolResult) for item in items].count(True) == 1
    assert items[-1].text == message
    assert items[-1].call_id == "call-1"


def test_a_long_answer_of_a_middleware_is_cut():
    async def long(call, inner):
        yield "x" * 100

    result = play(layered(done, long, limits=Limits(result_text=10)).result())
    assert "[cut: 90 of 100 bytes" in result.text


def test_a_middleware_that_sends_the_call_nowhere_hears_so():
    async def elsewhere(call, inner):
        async for item in inner(replace(call, name="nowhere")):
            yield item

    result = play(layered(done, elsewhere, passing).result())
    assert (result.error_code, result.call_id) == ("tool_not_found", "call-1")


async def raising_before(call, inner):
    raise ValueError
    yield


async def raising_after(call, inner):
    async for item in inner(call):
        yield item
    raise ValueError


async def raising_later(call, inner):
    async for item in inner(call):
        yield item
        await asyncio.sleep(1)
        raise ValueError


async def yielding_nothing(call, inner):
    async for _ in inner(call):
        pass
    return
    yield


async def yielding_a_broken_chunk(call, inner):
    yield ToolChunk(content="no blocks")
    await forever()


async def sending_no_call(call, inner):
    async for item in inner("probe"):
        yield item


def no_generator(call, inner):
    return [1]


def a_coroutine(call, inner):
    return done()


def raising_at_once(call, inner):
    raise SystemExit


@pytest.mark.parametrize(
    "layer",
    [
        *(raising_before, raising_after, raising_later, yielding_nothing, yielding_a_broken_chunk),
        *(sending_no_call, no_generator, a_coroutine, raising_at_once),
    ],
)
@pytest.mark.parametrize("outside", [(), (passing,)])
def test_a_middleware_that_breaks_is_a_failure_of_the_tool(layer, outside, log):
    result = play(layered(done, *outside, layer).result())
    assert result.error_code == "tool_failed"
    assert len(log.records) == 1


def test_a_middleware_that_yields_no_items_at_all_is_logged(log):
    assert play(layered(done, yielding_nothing).result()).error_code == "tool_failed"
    assert "the middleware yielded nothing" in log.text


def test_a_middleware_that_breaks_later_keeps_its_chunks():
    assert play(layered(stream, raising_later).result()).text.startswith("a\ntool failed")


def test_a_middleware_that_breaks_off_leaves_nothing_open():
    noted = []

    async def fn():
        try:
            yield "a"
            yield "b"
        finally:
            noted.append("tool")

    async def keeping(call, inner):
        try:
            async for item in inner(call):
                yield item
        finally:
            await asyncio.sleep(1)
            noted.append("inside")

    async def breaking_off(call, inner):
        async for item in inner(call):
            yield item
            break

    run = layered(fn, breaking_off, keeping)
    assert play(run.result()).text == "a"
    assert noted == ["inside", "tool"]


def test_a_middleware_that_breaks_off_before_the_tool_began_leaves_nothing_open():
    async def only_looking(call, inner):
        inner(call)
        yield "enough"

    assert play(layered(done, only_looking, passing).result()).text == "enough"


def test_a_middleware_may_run_the_tool_again_and_side_by_side():
    count = []

    async def fn():
        count.append(1)
        await asyncio.sleep(1)
        return "done"

    async def twice(call, inner):
        async def one():
            return [item async for item in inner(call)]

        results = await asyncio.gather(one(), one())
        yield results[0][-1]

    assert play(layered(fn, twice).result()).text == "done"
    assert len(count) == 2


def test_an_interruption_reaches_all_that_a_middleware_runs_side_by_side():
    async def twice(call, inner):
        async def one():
            return [item async for item in inner(call)]

        results = await asyncio.gather(one(), one())
        yield results[1][-1]

    async def main():
        run = layered(forever, twice)
        task = await begun(run.result())
        run.interrupt()
        assert is_interrupted(await task)
        assert now() == 0

    play(main())


async def interrupted_at(run, seconds=1.0):
    task = await begun(run.result())
    await asyncio.sleep(seconds)
    run.interrupt()
    result = await task
    assert result.is_interrupted
    assert result.is_error
    assert result.error_code == "interrupted"
    assert "interrupted by the user" in result.text
    return result


def test_the_middleware_sees_that_the_tool_was_interrupted():
    seen = []

    async def noting(call, inner):
        async for item in inner(call):
            seen.append(item.is_interrupted if isinstance(item, ToolResult) else item.text)
            yield item

    async def fn():
        yield "one"
        await forever()

    assert is_interrupted(play(interrupted_at(layered(fn, noting, passing))))
    assert seen == ["one", True]


def test_a_middleware_that_waits_is_interrupted_itself():
    closed = []

    async def waiting(call, inner):
        try:
            await forever()
            yield
        finally:
            closed.append(True)

    assert is_interrupted(play(interrupted_at(layered(done, waiting))))
    assert closed == [True]


def test_a_middleware_that_tries_again_does_not_undo_an_interruption():
    count = []

    async def fn():
        count.append(1)
        await forever()

    async def again(call, inner):
        for _ in range(3):
            async for item in inner(call):
                result = item
        yield result

    play(interrupted_at(layered(fn, again)))
    assert len(count) == 1


async def hanging_after(call, inner):
    async for item in inner(call):
        await forever()
        yield item


async def ignoring_after(call, inner):
    async for item in inner(call):
        await ignoring()
        yield item


@pytest.mark.parametrize(("layer", "until"), [(hanging_after, 3), (ignoring_after, 5)])
def test_middleware_that_continues_after_an_interruption_are_given_up(layer, until):
    async def main():
        await interrupted_at(layered(forever, layer))
        assert now() == until

    play(main())


def test_middleware_that_continues_when_the_host_cancels_are_left_behind(log):
    async def main():
        task = await begun(layered(done, ignoring_after).result())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert now() == 2

    play(main())
    assert "leaked" in log.text


def test_a_middleware_that_swallows_a_cancellation_does_not_swallow_it():
    async def swallowing(call, inner):
        try:
            async for item in inner(call):
                yield item
        except asyncio.CancelledError:
            yield "I go on"

    async def main():
        task = await begun(layered(forever, swallowing).result())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    play(main())


def test_a_middleware_may_limit_the_time_of_what_is_inside():
    async def limited(call, inner):
        try:
            async with asyncio.timeout(1):
                async for item in inner(call):
                    yield item
        except TimeoutError:
            yield failure("timeout", "the layer says so")

    result = play(layered(forever, limited).result())
    assert result.text == "the layer says so"


def test_a_middleware_that_continues_after_a_timeout_is_not_cancelled_any_more():
    counts = []

    async def continuing(call, inner):
        async for item in inner(call):
            counts.append(asyncio.current_task().cancelling())
            yield item

    assert play(layered(forever, continuing).result()).error_code == "timeout"
    assert counts == [0]


def test_a_middleware_may_make_of_an_interruption_what_it_likes_but_it_stays_marked():
    async def hiding(call, inner):
        async for _item in inner(call):
            yield ToolResult(content=(Text("all is well"),), structured=[1], metadata={"a": 1})

    result = play(interrupted_at(layered(forever, hiding)))
    assert result.text.startswith("all is well\n[probe was interrupted by the user")
    assert (result.structured, result.metadata) == ([1], {"a": 1})


def test_a_tool_that_calls_another_is_ended_as_a_whole():
    async def main():
        inside = a_run(forever)

        async def fn():
            return (await inside.result()).text

        run = a_run(fn)
        task = await begun(run.result())
        run.interrupt()
        assert is_interrupted(await task)
        inside = a_run(forever)
        task = await begun(a_run(fn, timeout=5).result())
        assert (await task).error_code == "timeout"
        assert now() == 5

    play(main())


def test_a_tool_hears_how_a_call_of_its_own_was_interrupted():
    async def main():
        inside = a_run(forever)

        async def fn():
            return (await inside.result()).is_interrupted

        task = await begun(a_run(fn).result())
        inside.interrupt()
        assert (await task).structured is True

    play(main())


# ---- whatever happens ------------------------------------------------------------------------


class Fault(Exception):  # noqa: N818 - it is one of a tool's
    pass


async def step_timeout(seconds):
    try:
        async with asyncio.timeout(seconds):
            await forever()
    except TimeoutError:
        pass


async def step_group(seconds):
    async def fail():
        await asyncio.sleep(seconds)
        raise Fault

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await forever()
    except* Fault:
        pass


async def step_stubborn(seconds):
    until = now() + seconds
    while now() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(until - now())


async def step_clean_up(seconds):
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.sleep(0.25)


async def step_gather(seconds):
    await asyncio.gather(asyncio.sleep(seconds), asyncio.sleep(seconds / 2))


WAITS = {
    "sleep": asyncio.sleep,
    "turn": lambda _: asyncio.sleep(0),
    "timeout": step_timeout,
    "group": step_group,
    "stubborn": step_stubborn,
    "clean up": step_clean_up,
    "gather": step_gather,
}
SECONDS = st.sampled_from([0, 0.5, 1.0, 3.0])
STEPS = st.lists(
    st.tuples(st.sampled_from([*WAITS, "yield", "interrupt"]), SECONDS)
    | st.just(("raise", ValueError))
    | st.just(("raise", ToolError("no")))
    | st.just(("raise", asyncio.CancelledError))
    | st.just(("junk", b"bytes")),
    max_size=5,
)
ENDINGS = ["complete", "interrupt", "cancel", "around", "timeout", "aclose", "close"]
ALLOWED = {
    "complete": {"result"},
    "interrupt": {"result", "interrupted"},
    "cancel": {"result", "cancelled"},
    "around": {"result", "cancelled"},
    "timeout": {"result", "timeout"},
    "aclose": {"result", "left"},
    "close": {"result", "left"},
}


def scripted(steps, *, streams):
    async def play_step(kind, about):
        if kind in WAITS:
            await WAITS[kind](about)
        elif kind == "raise":
            raise about
        elif kind == "interrupt":
            holder.run.interrupt()

    async def plain():
        for kind, about in steps:
            await play_step(kind, about)
        return "done"

    async def stream():
        for kind, about in steps:
            if kind in {"yield", "junk"}:
                yield about if kind == "junk" else f"<{about}>"
            else:
                await play_step(kind, about)

    holder = SimpleNamespace(fn=stream if streams else plain)
    return holder


def kind_of(result):
    if result.is_interrupted:
        assert (result.is_error, result.error_code) == (True, "interrupted")
        return "interrupted"
    return "timeout" if result.error_code == "timeout" else "result"


async def read(run, message, most=None):
    async with aclosing(each_item(run)) as items:
        async for item in items:
            assert not any(isinstance(old, ToolResult) for old in message)
            message.append(item)
            if most is not None and len(message) > most:
                return


async def performed(run, ending, at, message):
    """Run to an end of some kind; return which it was."""
    if ending in {"aclose", "close"}:
        await read(run, message, most=int(at * 2))
        return "result" if isinstance(message[-1], ToolResult) else "left"
    if ending == "around":
        try:
            async with asyncio.timeout(at):
                await read(run, message)
        except TimeoutError:
            return "cancelled"
        return kind_of(message[-1])
    task = asyncio.create_task(read(run, message))
    if ending in {"interrupt", "cancel"}:
        if at:
            await asyncio.sleep(at)
        {"interrupt": run.interrupt, "cancel": task.cancel}[ending]()
    await asyncio.wait([task])
    if task.cancelled():
        return "cancelled"
    await task
    return kind_of(message[-1])


@given(
    STEPS,
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from(ENDINGS),
    st.sampled_from([0, 0.25, 0.5, 1.0, 2.0]),
)
def test_whatever_a_tool_does_and_however_it_ends_there_is_one_outcome(
    steps, streams, layers, ending, at
):
    script = scripted(steps, streams=streams)
    limits = Limits(tool_call=max(at, 0.25) if ending == "timeout" else 600, cancel_grace=1.0)
    script.run = run = a_run(script.fn, limits=limits, layers=[passing] * layers)
    messages = []

    async def main():
        kind = await performed(run, ending, at, messages)
        itself = {"interrupted"} if any(action == "interrupt" for action, _ in steps) else set()
        assert kind in ALLOWED[ending] | itself
        results = [item for item in messages if isinstance(item, ToolResult)]
        assert len(results) == (kind in {"result", "interrupted", "timeout"} or len(results))
        if results:
            message = "".join(item.text for item in messages[:-1])
            assert results[0].text.startswith(message)
            assert results[0].call_id == "call-1"
        assert asyncio.current_task().cancelling() == 0
        async with asyncio.timeout(1), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.5))

    play(main())
