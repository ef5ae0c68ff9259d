import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from functools import partial

import pytest

from satchel.tools.calling import in_thread, run, runs_on_loop

WHO = ContextVar("WHO", default="nobody")


def run_it(fn, *args):
    return asyncio.run(run(partial(fn, *args), on_loop=runs_on_loop(fn)))


def test_a_plain_function_runs_in_another_thread():
    assert run_it(threading.current_thread) is not threading.main_thread()


def test_a_plain_function_sees_the_context_variables_of_its_caller():
    async def main():
        WHO.set("me")
        return await in_thread(WHO.get)

    assert asyncio.run(main()) == "me"


def test_a_coroutine_function_runs_on_the_loop():
    async def where():
        return threading.current_thread()

    assert run_it(where) is threading.main_thread()
    assert run_it(partial(lambda fn: fn(), where)) is threading.main_thread()


def test_of_a_generator_the_last_item_is_the_value_and_it_runs_off_the_loop():
    def count():
        yield 1
        yield threading.current_thread()

    async def give():
        return count()

    assert run_it(count) is not threading.main_thread()
    assert run_it(give) is not threading.main_thread()


def test_of_an_async_generator_the_last_item_is_the_value():
    async def count():
        yield 1
        yield 2

    assert run_it(count) == 2


def test_a_generator_that_yields_nothing_has_no_value():
    def empty():
        yield from ()

    async def empty_async():
        for item in ():
            yield item

    assert run_it(empty) is None
    assert run_it(empty_async) is None


def test_an_async_generator_is_closed_when_the_call_is_cancelled():
    closed = []

    async def main():
        started = asyncio.Event()

        async def wait():
            try:
                yield 1
                started.set()
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        task = asyncio.create_task(run(wait, on_loop=True))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert closed == [True]


class Callable:
    async def __call__(self): ...


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (len, False),
        (Callable(), True),
        (partial(Callable()), True),
        (Callable().__call__, True),
        (partial(len, []), False),
    ],
)
def test_what_runs_on_the_loop_is_seen_through_partials_and_objects(fn, expected):
    assert runs_on_loop(fn) is expected


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_a_thread_raises_reaches_the_caller(kind):
    def fail():
        raise kind("why")

    async def main():
        with pytest.raises(kind, match="why"):
            await in_thread(fail)

    asyncio.run(main())


def test_a_thread_that_raises_stop_iteration_does_not_leave_its_caller_waiting():
    with pytest.raises(RuntimeError):
        asyncio.run(in_thread(iter([]).__next__))


def test_a_cancelled_caller_does_not_wait_for_the_thread():
    release, ended = threading.Event(), threading.Event()

    def stubborn():
        release.wait()
        ended.set()

    async def main():
        task = asyncio.create_task(in_thread(stubborn))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        # A second thread's answer comes after the first one's, which nobody takes.
        await in_thread(ended.wait)
        await in_thread(int)

    asyncio.run(main())


def test_a_thread_that_outlives_the_loop_ends_quietly():
    release, threads = threading.Event(), []

    def stubborn():
        threads.append(threading.current_thread())
        release.wait()

    async def main():
        task = asyncio.create_task(in_thread(stubborn))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    release.set()
    for thread in threads:
        thread.join()


def test_a_function_that_never_returns_does_not_keep_the_process_alive():
    code = (
        "import asyncio, threading\n"
        "from satchel.tools.calling import in_thread\n"
        "async def main():\n"
        "    try:\n"
        "        async with asyncio.timeout(0.01): await in_thread(threading.Event().wait)\n"
        "    except TimeoutError: print('timeout')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "timeout\n"
