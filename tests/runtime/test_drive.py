import asyncio
import contextlib
import sys
import threading
import types

import pytest
from runs import forever, ignoring, now, play, play_for_real, turns

from satchel.runtime.drive import Drive, End, EndedError, LeftBehind


def drive(seconds=None, grace=1.0):
    return Drive(seconds, grace)


async def outcome(work):
    """Return what became of something awaited, and how often the task is then to be cancelled."""
    task = asyncio.current_task()
    try:
        told = await work
    except BaseException as problem:
        told = type(problem), str(problem)
    return told, task.cancelling()


# ---- what a tool may do in its own coroutine -------------------------------------------------


async def quick():
    return "quick"


async def raising():
    raise ValueError("mine")


async def raising_later():
    await asyncio.sleep(0.01)
    raise ValueError("mine")


async def turning():
    for _ in range(5):
        await asyncio.sleep(0)
    return "turned"


@types.coroutine
def _bare():
    yield


async def yielding_bare():
    await _bare()
    return "once"


async def timing_out():
    async with asyncio.timeout(0.01):
        await forever()


async def catching_its_timeout():
    try:
        async with asyncio.timeout(0.01):
            await forever()
    except TimeoutError:
        await asyncio.sleep(0.01)
        return "in time"


async def nesting_timeouts():
    try:
        async with asyncio.timeout(10), asyncio.timeout(0.01):
            await forever()
    except TimeoutError:
        return "the inner one"


async def cleaning_up_for_long_after_a_timeout():
    try:
        async with asyncio.timeout(0.01):
            try:
                await forever()
            finally:
                await asyncio.sleep(0.05)
    except TimeoutError:
        return "clean"


async def waiting_for():
    try:
        await asyncio.wait_for(forever(), 0.01)
    except TimeoutError:
        return "too late"


async def grouping():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0.01, number)) for number in range(3)]
    return [task.result() for task in tasks]


async def grouping_with_one_that_fails():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(raising_later())
            group.create_task(forever())
            await forever()
    except* ValueError:
        pass
    await asyncio.sleep(0)
    return "went on"


async def gathering():
    return await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0, 2), quick())


async def gathering_with_one_that_fails():
    return await asyncio.gather(asyncio.sleep(0), raising_later())


async def shielding():
    return await asyncio.shield(asyncio.sleep(0.01, "safe"))


async def using_a_thread():
    return await asyncio.to_thread(threading.get_native_id) != threading.get_native_id()


async def using_a_process():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('hello')", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.strip(), process.returncode


async def using_a_lock():
    lock, order = asyncio.Lock(), []

    async def one(number):
        async with lock:
            await asyncio.sleep(0)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(one(number))
        await one(9)
    return sorted(order)


async def using_a_queue():
    queue = asyncio.Queue(1)

    async def put():
        for number in range(4):
            await queue.put(number)

    task = asyncio.create_task(put())
    got = [await queue.get() for _ in range(4)]
    await task
    return got


async def using_a_condition():
    condition, ready = asyncio.Condition(), []

    async def tell():
        async with condition:
            ready.append(1)
            condition.notify_all()

    async with condition:
        task = asyncio.create_task(tell())
        await condition.wait_for(lambda: ready)
    await task
    return "told"


async def waiting_for_the_first():
    tasks = [asyncio.create_task(asyncio.sleep(delay)) for delay in (0.01, 10)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.wait(pending)
    return len(done), len(pending)


async def waiting_for_a_future():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, future.set_result, "a result")
    return await future


async def waiting_for_a_future_that_fails():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, future.set_exception, ValueError("mine"))
    return await future


async def waiting_for_a_task_that_is_cancelled():
    task = asyncio.create_task(forever())
    asyncio.get_running_loop().call_later(0.01, task.cancel, "no")
    await task


async def waiting_for_what_is_done():
    task = asyncio.create_task(quick())
    await asyncio.sleep(0)
    return await task, await task


async def yielding_no_future():
    class Odd:
        def __await__(self):
            yield 42

    await Odd()


async def yielding_a_future():
    @types.coroutine
    def odd():
        yield asyncio.get_running_loop().create_future()

    try:
        await odd()
    except RuntimeError as problem:
        return str(problem).startswith("yield was used instead of yield from")


async def waiting_for_itself():
    await asyncio.sleep(0)
    try:
        await asyncio.current_task()
    except RuntimeError as problem:
        asyncio.current_task()._asyncio_future_blocking = False  # asyncio forgets to do that
        return str(problem).startswith("Task cannot await on itself")


async def waiting_for_another_loop():
    loop = asyncio.new_event_loop()
    try:
        await loop.create_future()
    except RuntimeError as problem:
        return "attached to a different loop" in str(problem)
    finally:
        loop.close()


async def knowing_its_task():
    before = asyncio.current_task()
    await asyncio.sleep(0)
    return before is asyncio.current_task()


INSIDE = [
    *(quick, raising, raising_later, turning, yielding_bare, timing_out, catching_its_timeout),
    *(nesting_timeouts, cleaning_up_for_long_after_a_timeout, waiting_for, grouping),
    *(grouping_with_one_that_fails, gathering, gathering_with_one_that_fails, shielding),
    *(using_a_thread, using_a_process, using_a_lock, using_a_queue, using_a_condition),
    *(waiting_for_the_first, waiting_for_a_future, waiting_for_a_future_that_fails),
    *(waiting_for_a_task_that_is_cancelled, waiting_for_what_is_done, yielding_no_future),
    *(yielding_a_future, waiting_for_itself, waiting_for_another_loop, knowing_its_task),
]


@pytest.mark.parametrize("fn", INSIDE)
def test_a_coroutine_does_what_it_does_under_a_plain_await(fn):
    async def main():
        plain = await outcome(fn())
        assert await outcome(drive(grace=0.02).through(fn())) == plain
        nested = drive(10, grace=0.02).through(drive(grace=0.02).through(fn()))
        assert await outcome(nested) == plain

    play_for_real(main())


def test_a_small_grace_takes_nothing_from_what_ends_parts_of_itself():
    async def slow_group():
        async def slow_to_end():
            try:
                await forever()
            finally:
                await asyncio.sleep(100)

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(slow_to_end())
                await asyncio.sleep(0)
                group.create_task(raising())
                await forever()
        except* ValueError:
            pass
        return "went on"

    assert play(drive().through(slow_group())) == "went on"


@pytest.mark.parametrize("first", [0, 0.01])
def test_who_cancels_itself_and_takes_it_leaves_nothing_with_the_host(first):
    async def as_old_libraries_do():
        await asyncio.sleep(first)
        asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)
        try:
            await forever()
        except asyncio.CancelledError:
            return "no uncancel()"

    assert play(drive().through(as_old_libraries_do())) == "no uncancel()"


def test_a_coroutine_that_cancels_its_task_cancels_the_task_as_ever():
    async def main():
        async def fn():
            await asyncio.sleep(0)
            asyncio.current_task().cancel("mine")
            await forever()

        assert await outcome(fn()) == ((asyncio.CancelledError, "mine"), 1)
        asyncio.current_task().uncancel()
        assert await outcome(drive().through(fn())) == ((asyncio.CancelledError, "mine"), 1)
        asyncio.current_task().uncancel()

    play(main())


def test_what_the_last_step_asks_for_is_still_to_come():
    async def main():
        async def fn():
            await asyncio.sleep(0)
            asyncio.current_task().cancel("later")
            return "first"

        assert await outcome(drive().through(fn())) == ("first", 1)
        assert await outcome(asyncio.sleep(0)) == ((asyncio.CancelledError, "later"), 1)
        asyncio.current_task().uncancel()

    play(main())


# ---- the host ends it ------------------------------------------------------------------------


async def cleaning_up(noted, seconds=0.5):
    try:
        await forever()
    finally:
        await asyncio.sleep(seconds)
        noted.append("clean")


async def returning_instead():
    try:
        await forever()
    except asyncio.CancelledError:
        return "I go on"


async def failing_instead():
    try:
        await forever()
    finally:
        raise ValueError


async def looping():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


async def in_a_group(task):
    async def wait():
        await task

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())


async def waiting_again_and_again(task):
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])


async def ignoring_in_the_end():
    try:
        await forever()
    finally:
        await ignoring()


async def slow_in_the_end():
    try:
        await forever()
    finally:
        await asyncio.sleep(1000)


async def ignoring_timeout_of_its_own():
    while True:
        try:
            async with asyncio.timeout(0.1):
                await asyncio.sleep(1000)
        except (TimeoutError, asyncio.CancelledError):
            pass


STUBBORN = [*(ignoring, ignoring_in_the_end, slow_in_the_end, ignoring_timeout_of_its_own)]
OBEDIENT = [forever, returning_instead, failing_instead]


async def cancelled(work, message=None):
    """Cancel something that waits; return what became of it, and how long that took."""
    task = asyncio.create_task(work)
    await turns()
    begun = now()
    task.cancel(message)
    await asyncio.wait([task])
    assert task.cancelled()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value.args, round(now() - begun, 6)


@pytest.mark.parametrize("fn", OBEDIENT)
def test_a_cancellation_by_the_host_passes_through_at_once_and_with_its_message(fn):
    told = play(cancelled(drive().through(fn()), "the host says so"))
    assert told == (("the host says so",), 0)


def test_what_is_cancelled_may_clean_up():
    noted = []
    assert play(cancelled(drive().through(cleaning_up(noted)))) == ((), 0.5)
    assert noted == ["clean"]


@pytest.mark.parametrize("fn", STUBBORN)
def test_what_ignores_the_host_is_left_behind_after_the_grace(fn):
    made = drive()
    assert play(cancelled(made.through(fn()))) == ((), 1.0)
    assert made.left_behind
    assert made.is_torn


def test_a_second_cancellation_reaches_what_cleans_up():
    async def main():
        task = asyncio.create_task(drive().through(slow_in_the_end()))
        await turns()
        task.cancel()
        await turns()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert now() == 0

    play(main())


@pytest.mark.parametrize("fn", [*OBEDIENT, *STUBBORN])
def test_a_timeout_around_it_fires_and_what_comes_after_it_goes_on(fn):
    async def main():
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2):
                    await drive().through(fn())
            assert asyncio.current_task().cancelling() == 0
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1))

    play(main())


@pytest.mark.parametrize("fn", [*OBEDIENT, *STUBBORN])
def test_a_group_around_several_ends_them_all_when_one_fails(fn):
    async def main():
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(drive().through(fn()))
                group.create_task(drive().through(raising_later()))
                await drive().through(fn())
        assert len(caught.value.exceptions) == 1
        assert asyncio.current_task().cancelling() == 0

    play(main())


def test_a_timeout_around_and_one_inside_are_told_apart():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1) as around:
                await drive().through(ignoring_timeout_of_its_own())
        assert around.expired()

    play(main())


def test_who_cancels_a_scope_of_the_inside_from_outside_ends_only_that():
    async def main():
        opened = []

        async def fn():
            async with asyncio.timeout(None) as own:
                opened.append(own)
                await forever()

        async def patient():
            try:
                await fn()
            except TimeoutError:
                await asyncio.sleep(100)
                return "went on"

        task = asyncio.create_task(drive().through(patient()))
        await turns()
        opened[0].reschedule(now())
        assert await task == "went on"

    play(main())


def test_a_cancellation_from_another_task_inside_is_for_the_inside():
    async def main():
        async def fn():
            task = asyncio.current_task()

            async def end():
                task.cancel()

            other = asyncio.create_task(drive().through(end()))
            try:
                await forever()
            except asyncio.CancelledError:
                await other
                return "mine"

        return await drive().through(fn())

    assert play(main()) == "mine"


def test_what_is_closed_from_outside_is_thrown_out():
    async def main():
        noted = []

        async def fn():
            try:
                await forever()
            except BaseException as problem:
                noted.append(type(problem))
                raise

        made = drive()
        outer = drive()
        work = outer.through(made.through(fn()))
        work.send(None)
        work.close()
        assert noted == [LeftBehind]
        assert made.is_torn
        assert outer.is_torn

    play(main())


# ---- it is ended ----------------------------------------------------------------------------


async def ended(made, work, at=1.0, reason=End.INTERRUPTED):
    """End a drive after some time; return why it says it ended, and when."""
    asyncio.get_running_loop().call_later(at, made.end, reason)
    with pytest.raises(EndedError) as caught:
        await made.through(work)
    return caught.value.reason, round(now(), 6)


@pytest.mark.parametrize("fn", OBEDIENT)
def test_a_drive_that_is_ended_says_why(fn):
    assert play(ended(drive(), fn())) == (End.INTERRUPTED, 1.0)


@pytest.mark.parametrize("fn", STUBBORN)
def test_what_goes_on_after_it_was_ended_is_left_behind_after_the_grace(fn):
    made = drive()
    assert play(ended(made, fn())) == (End.INTERRUPTED, 2.0)
    assert made.left_behind
    assert not made.is_torn


@pytest.mark.parametrize("waits", [asyncio.gather, asyncio.wait_for, in_a_group, asyncio.wait])
def test_nobody_waits_for_a_child_that_ignores_its_end(waits):
    async def main():
        release, children = asyncio.Event(), []

        async def child():
            children.append(asyncio.current_task())
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()

        async def fn():
            task = asyncio.create_task(child())
            await {
                asyncio.gather: lambda: asyncio.gather(task),
                asyncio.wait_for: lambda: asyncio.wait_for(task, 1000),
                asyncio.wait: lambda: waiting_again_and_again(task),
                in_a_group: lambda: in_a_group(task),
            }[waits]()

        made = drive()
        assert await ended(made, fn()) == (End.INTERRUPTED, 2.0)
        assert made.left_behind
        release.set()
        await asyncio.wait(children)
        await turns()

    play(main())


def test_what_needs_a_moment_to_end_gets_it():
    noted, made = [], drive()
    assert play(ended(made, cleaning_up(noted, 0.9))) == (End.INTERRUPTED, 1.9)
    assert noted == ["clean"]
    assert not made.left_behind


@pytest.mark.parametrize("fn", [*OBEDIENT, *STUBBORN])
def test_the_time_inside_is_bounded(fn):
    async def main():
        with pytest.raises(EndedError) as caught:
            await drive(5.0).through(fn())
        assert caught.value.reason is End.TIMEOUT
        assert now() == pytest.approx(5 if fn in OBEDIENT else 6)

    play(main())


def test_the_time_between_is_not_counted():
    async def main():
        made = drive(5.0)
        for _ in range(2):
            await made.through(asyncio.sleep(2))
            await asyncio.sleep(100)
        with pytest.raises(EndedError):
            await made.through(asyncio.sleep(2))
        assert now() == 205

    play(main())


def test_the_first_reason_stays():
    async def main():
        made = drive(1.0)
        loop = asyncio.get_running_loop()
        loop.call_later(0.5, made.end, End.INTERRUPTED)
        loop.call_later(0.6, made.end, End.INTERRUPTED)
        with pytest.raises(EndedError) as caught:
            await made.through(cleaning_up([], 0.7))
        assert caught.value.reason is End.INTERRUPTED
        assert now() == 1.2

    play(main())


def test_what_was_ended_before_never_begins():
    async def main():
        made = drive()
        made.end(End.INTERRUPTED)
        with pytest.raises(EndedError):
            await made.through(raising())

    play(main())


async def one_step():
    return 1


@pytest.mark.parametrize("rest", [one_step, raising, turning, forever, ignoring])
def test_what_ends_itself_in_its_first_step_is_ended(rest):
    async def main():
        made = drive()

        async def fn():
            made.end(End.INTERRUPTED)
            return await rest()

        with pytest.raises(EndedError):
            await made.through(fn())
        assert made.left_behind == (rest is ignoring)

    play(main())


def test_what_ends_itself_later_is_ended():
    async def main():
        made = drive()

        async def fn():
            await asyncio.sleep(1)
            made.end(End.INTERRUPTED)
            await asyncio.sleep(1)
            await forever()

        with pytest.raises(EndedError):
            await made.through(fn())
        assert now() == 1

    play(main())


def test_an_end_that_comes_too_late_changes_nothing():
    async def main():
        made = drive()
        assert await made.through(asyncio.sleep(1, "done")) == "done"
        made.end(End.INTERRUPTED)
        await turns()
        assert made.reason is End.INTERRUPTED

    play(main())


def test_an_end_that_is_underway_when_the_step_ends_changes_nothing():
    async def main():
        made, future = drive(), asyncio.get_running_loop().create_future()

        async def fn():
            return await future

        task = asyncio.create_task(made.through(fn()))
        await turns()
        future.set_result("done")
        await asyncio.sleep(0)
        made._loop.call_soon(made._end, End.INTERRUPTED)
        assert await task == "done"
        await turns()

    play(main())


def test_it_may_be_ended_from_any_thread():
    async def main():
        made = drive()

        async def fn():
            threading.Thread(target=made.end, args=(End.INTERRUPTED,)).start()
            await forever()

        with pytest.raises(EndedError):
            await made.through(fn())

    play_for_real(main())


def test_to_end_what_stands_on_a_closed_loop_is_no_error():
    made = drive()
    loop = asyncio.new_event_loop()
    task = loop.create_task(made.through(forever()))
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))
    made._loop = loop
    loop.close()
    made.end(End.INTERRUPTED)
    assert made.reason is End.INTERRUPTED


def test_what_runs_may_get_some_time_to_end_by_itself():
    async def main(work, until):
        made = drive()
        asyncio.get_running_loop().call_later(1, made.end, End.INTERRUPTED, 3.0)
        told, _ = await outcome(made.through(work))
        assert now() == until
        return told

    assert play(main(asyncio.sleep(3, "by itself"), 3)) == "by itself"
    assert play(main(forever(), 4)) == (EndedError, "interrupted")


def test_the_time_to_end_takes_the_place_of_the_time_there_was():
    async def main():
        made = drive(100.0)
        asyncio.get_running_loop().call_later(1, made.end, End.INTERRUPTED, 3.0)
        with pytest.raises(EndedError) as caught:
            await made.through(forever())
        assert caught.value.reason is End.INTERRUPTED
        assert now() == 4
        later = drive(100.0)
        later.end(End.INTERRUPTED, 3.0)
        with pytest.raises(EndedError) as caught:
            await later.through(forever())
        assert caught.value.reason is End.INTERRUPTED
        assert now() == 7

    play(main())


def test_one_that_ignores_its_end_in_ever_new_turns_is_left_behind():
    async def main():
        made = drive(0.01, grace=0.01)
        with pytest.raises(EndedError):
            await made.through(looping())
        assert made.left_behind

    play_for_real(main())


def test_an_end_does_not_disturb_what_is_shielded():
    async def main():
        inner = asyncio.create_task(asyncio.sleep(10, "safe"))

        async def fn():
            return await asyncio.shield(inner)

        await ended(drive(), fn())
        assert await inner == "safe"

    play(main())


def test_an_end_of_what_is_around_is_the_end_of_what_is_inside():
    async def main():
        inner = drive()
        assert await ended(drive(), inner.through(forever())) == (End.INTERRUPTED, 1.0)
        assert inner.is_torn

    play(main())


def test_what_is_inside_is_thrown_out_with_what_is_around():
    noted = []

    async def stubborn():
        try:
            await ignoring()
        except LeftBehind:
            noted.append("out")
            raise

    async def main():
        inner = drive(grace=50)
        await ended(drive(), inner.through(stubborn()))

    play(main())
    assert noted == ["out"]


def test_what_catches_even_that_is_dropped():
    noted = []

    async def never_ends():
        while True:
            try:
                await forever()
            except (asyncio.CancelledError, LeftBehind) as problem:
                noted.append(type(problem))

    made = drive()
    assert play(ended(made, never_ends())) == (End.INTERRUPTED, 2.0)
    assert noted == [asyncio.CancelledError, LeftBehind]
    assert made.left_behind


def test_one_that_returns_when_it_is_thrown_out_is_left_all_the_same():
    async def returning_at_last():
        try:
            await ignoring()
        except LeftBehind:
            return "too late"

    assert play(ended(drive(), returning_at_last())) == (End.INTERRUPTED, 2.0)
