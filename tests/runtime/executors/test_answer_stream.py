import asyncio
import subprocess
import sys
from contextlib import aclosing, suppress
from contextvars import ContextVar

import pytest
from stage import FINE, Stage, now, play, some_calls

from satchel.errors import DefinitionError
from satchel.runtime.executors import Concurrent, Sequential
from satchel.tools import ToolCall

FOR_EVER = None

color = ContextVar("color", default="none")


async def read(stream):
    return [item async for item in stream]


def indices(executor, calls, stage):
    return [index for index, _ in play(read(executor.stream(calls, stage.run)))]


def test_results_come_as_they_are_complete():
    assert indices(Concurrent(), some_calls(3, 1, 2), Stage()) == [1, 2, 0]


def test_no_more_run_at_once_than_the_limit_allows():
    stage = Stage()
    assert sorted(indices(Concurrent(3), some_calls(*range(9)), stage)) == list(range(9))
    assert stage.most == 3


def test_calls_begin_in_their_order():
    stage = Stage()
    indices(Concurrent(2), some_calls(2, 1, 3, 0, 1), stage)
    assert stage.begun == list("01234")


def test_sequential_runs_one_after_another():
    stage = Stage()
    assert indices(Sequential(), some_calls(3, 1, 2), stage) == [0, 1, 2]
    assert stage.most == 1


def test_no_calls_give_no_answers():
    assert indices(Concurrent(), [], Stage()) == indices(Sequential(), [], Stage()) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_would_run_nothing_is_refused(limit):
    with pytest.raises(DefinitionError, match="must be at least 1"):
        Concurrent(limit)


def test_nothing_begins_before_the_first_answer_is_asked_for():
    async def main():
        stage = Stage()
        stream = Concurrent().stream(some_calls(1), stage.run)
        await asyncio.sleep(10)
        assert stage.begun == []
        await stream.aclose()

    play(main())


def test_a_caller_that_stops_asking_starts_nothing_more():
    async def main():
        stage = Stage()
        async with aclosing(Sequential().stream(some_calls(1, 1, 1), stage.run)) as stream:
            async for _ in stream:
                await asyncio.sleep(10)
                break
        assert stage.begun == ["0"]

    play(main())


def test_a_slow_reader_gets_all_free_places_filled_when_it_asks():
    async def main():
        stage = Stage()
        async with aclosing(Concurrent(2).stream(some_calls(1, 1, 1, 1), stage.run)) as stream:
            await anext(stream)
            await asyncio.sleep(10)
            await anext(stream)  # of the two that were complete long ago
            await asyncio.sleep(0)  # a task begins with the next turn of the loop
            assert stage.begun == list("0123")
            await read(stream)

    play(main())


def test_calls_that_the_host_adds_meanwhile_do_not_count():
    async def main():
        calls = some_calls(1)
        async for _ in Concurrent().stream(calls, Stage().run):
            calls.extend(some_calls(1))
        assert len(calls) == 2

    play(main())


def test_a_call_that_raises_fails_alone(caplog):
    calls = some_calls(1, {"problem": ValueError("secret")}, 1)
    answers = dict(play(read(Concurrent().stream(calls, Stage().run))))
    assert answers[0] == answers[2] == FINE
    failed = answers[1]
    assert (failed.error_code, failed.text, failed.call_id) == ("tool_failed", "tool failed", "1")
    assert caplog.records[0].exc_info[0] is ValueError


def test_the_result_of_a_call_without_id_has_none(caplog):
    async def run(_):
        raise ValueError

    assert play(read(Sequential().stream([ToolCall(name="probe")], run)))[0][1].call_id is None
    assert caplog.messages == ["running 'probe' failed"]


class Alarm(BaseException):
    """More than an exception."""


def test_more_than_an_exception_passes_through_and_ends_the_others():
    stage = Stage()
    calls = some_calls(FOR_EVER, {"problem": Alarm()}, {"problem": Alarm()})
    with pytest.raises(Alarm):
        play(read(Concurrent().stream(calls, stage.run)))
    assert sorted(stage.ended) == list("012")


def test_a_call_that_another_task_cancels_is_interrupted_alone():
    async def run(call):
        if call.id == "1":
            asyncio.current_task().cancel()
        await asyncio.sleep(1)
        return FINE

    answers = dict(play(read(Concurrent().stream(some_calls(0, 0, 0), run))))
    assert answers[0] == answers[2] == FINE
    ended = answers[1]
    assert (ended.is_error, ended.is_interrupted) == (True, True)
    assert (ended.error_code, ended.call_id) == ("interrupted", "1")


async def leave_by_break(stream):
    async with aclosing(stream):
        async for _ in stream:
            break


async def leave_by_raising(stream):
    with suppress(ValueError):
        async with aclosing(stream):
            async for _ in stream:
                raise ValueError


async def leave_by_closing(stream):
    await anext(stream)
    await stream.aclose()


async def leave_by_cancellation(stream):
    reader = asyncio.create_task(read(stream))
    await asyncio.sleep(2)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def leave_by_timeout(stream):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await read(stream)


LEAVING = [
    leave_by_break,
    leave_by_raising,
    leave_by_closing,
    leave_by_cancellation,
    leave_by_timeout,
]


@pytest.mark.parametrize("leave", LEAVING)
def test_a_caller_that_leaves_early_finds_that_every_call_has_ended(leave):
    async def main():
        stage = Stage()
        slow = {"seconds": FOR_EVER, "cleanup": 7}
        await leave(Concurrent(3).stream(some_calls(1, slow, slow, slow, slow), stage.run))
        assert len(stage.begun) > 2
        assert stage.running == 0
        assert now() >= 8
        await asyncio.sleep(10)
        assert len(stage.begun) < 5

    play(main())


@pytest.mark.parametrize("leave", LEAVING)
def test_calls_that_end_badly_when_cancelled_leave_no_complaint(leave):
    async def run(call):
        if call.id == "0":
            return FINE
        try:
            await asyncio.sleep(1000)
        finally:
            raise ValueError if call.id == "1" else Alarm  # the worst of manners

    play(leave(Concurrent().stream(some_calls(0, 0, 0), run)))


def test_a_call_that_makes_nothing_of_its_cancellation_is_waited_for():
    async def main():
        async def run(_):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)
            await asyncio.sleep(5)
            return FINE

        await leave_by_cancellation(Concurrent().stream(some_calls(0), run))
        assert now() == 7

    play(main())


def test_cancelling_again_leaves_no_orphans_and_does_not_shorten_the_cleanup():
    async def main():
        stage = Stage()
        slow = {"seconds": FOR_EVER, "cleanup": 7}
        reader = asyncio.create_task(read(Concurrent().stream(some_calls(slow, slow), stage.run)))
        for _ in range(5):
            await asyncio.sleep(1)
            reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert now() == 8
        assert stage.running == 0

    play(main())


def test_a_cancellation_while_the_stream_closes_comes_when_all_has_ended():
    async def main():
        stage = Stage()
        stream = Concurrent().stream(some_calls(1, {"seconds": FOR_EVER, "cleanup": 7}), stage.run)
        closing = asyncio.create_task(leave_by_closing(stream))
        await asyncio.sleep(3)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert now() == 8
        assert stage.running == 0

    play(main())


def test_a_loop_that_is_left_without_closing_ends_its_calls_all_the_same():
    async def main():
        ended = asyncio.Event()

        async def run(call):
            try:
                await asyncio.sleep(int(call.id) * 1000)
            finally:
                if call.id == "1":
                    ended.set()
            return FINE

        async for _ in Concurrent().stream(some_calls(0, 0), run):
            break
        await ended.wait()
        assert now() == 0

    play(main())


def test_an_error_in_a_loop_that_is_not_closed_ends_its_calls_all_the_same():
    async def main():
        stage = Stage()
        with pytest.raises(ValueError, match="enough"):
            async for _ in Concurrent().stream(some_calls(0, FOR_EVER), stage.run):
                raise ValueError("enough")
        await asyncio.sleep(1)
        assert stage.running == 0

    play(main())


LEFT_OPEN = """
import asyncio, gc, sys, warnings
from satchel.runtime.executors import Concurrent
from satchel.tools import ToolCall, ToolResult

ended = []

async def run(call):
    try:
        await asyncio.sleep(int(call.name) * 1000)
    finally:
        ended.append(call.name)
    return ToolResult()

kept = []

async def main():
    stream = Concurrent(2).stream([ToolCall(name="0"), ToolCall(name="1"), ToolCall(name="2")], run)
    async for _ in stream:
        {leave}

try:
    asyncio.run(main(), debug={debug})
except ValueError:
    pass
del kept
gc.collect()
print(sorted(ended))
"""


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    "leave",
    ["break", "return", "raise ValueError", "kept.append(stream); break", "await stream.aclose()"],
)
def test_a_program_that_ends_with_a_stream_left_open_ends_quietly(leave, debug):
    code = LEFT_OPEN.format(leave=leave, debug=debug)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout.strip() in {"['0', '1']", "['0']"}  # '1' may not have begun


def test_a_reader_that_is_torn_down_from_outside_does_not_complain():
    async def main():
        stage = Stage()
        reader = read(Concurrent().stream(some_calls(FOR_EVER), stage.run))
        reader.send(None)
        await asyncio.sleep(1)
        reader.close()
        await asyncio.sleep(1)
        assert stage.ended == ["0"]

    play(main())


def test_a_reader_that_is_torn_down_while_the_stream_closes_does_not_complain():
    async def main():
        stage = Stage()
        stream = Concurrent().stream(some_calls(0, {"seconds": FOR_EVER, "cleanup": 5}), stage.run)
        await anext(stream)
        closing = stream.aclose()
        closing.send(None)
        closing.close()
        await asyncio.sleep(6)
        assert sorted(stage.ended) == ["0", "1"]

    play(main())


def test_only_one_reads_at_a_time():
    async def main():
        stream = Concurrent().stream(some_calls(3), Stage().run)
        reader = asyncio.create_task(read(stream))
        await asyncio.sleep(1)
        with pytest.raises(RuntimeError, match="being read already"):
            await anext(stream)
        with pytest.raises(RuntimeError, match="being read already"):
            await stream.aclose()
        assert await reader == [(0, FINE)]
        assert await read(stream) == []

    play(main())


def test_a_stream_that_was_closed_is_at_its_end():
    async def main():
        stage = Stage()
        stream = Concurrent().stream(some_calls(0, 0), stage.run)
        await stream.aclose()
        await stream.aclose()
        assert await read(stream) == stage.begun == []

    play(main())


def test_a_stream_that_outlives_its_loop_does_not_complain():
    async def main():
        stream = Concurrent().stream(some_calls(0, FOR_EVER), Stage().run)
        await anext(stream)
        return stream

    with asyncio.Runner() as runner:
        stream = runner.run(main())
    del stream


def test_an_interrupt_from_the_keyboard_ends_everything():
    stage = Stage()
    calls = some_calls(FOR_EVER, {"problem": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        play(read(Concurrent().stream(calls, stage.run)))
    assert sorted(stage.ended) == ["0", "1"]


def test_context_variables_of_the_reader_reach_each_call_and_stay_its_own():
    async def main():
        seen = []

        async def run(call):
            seen.append(color.get())
            color.set(call.id)
            return FINE

        color.set("blue")
        async for _ in Sequential().stream(some_calls(0, 0, 0), run):
            assert color.get() in {"blue", "red"}
            color.set("red")
        assert seen == ["blue"] * 3

    play(main())


def test_ten_thousand_calls_are_never_ten_thousand_tasks():
    most = 0

    async def run(_):
        nonlocal most
        await asyncio.sleep(0)
        most = max(most, len(asyncio.all_tasks()))
        return FINE

    answers = play(read(Concurrent(20).stream(some_calls(*[0] * 10_000), run)))
    assert len(answers) == 10_000
    assert most <= 22


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_tasks_may_begin_eagerly():
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        stage = Stage()
        answers = await read(Concurrent(2).stream(some_calls(0, 2, 1, 0), stage.run))
        assert sorted(index for index, _ in answers) == [0, 1, 2, 3]
        assert stage.most == 2

    play(main())
