import asyncio
import os
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from functools import partial

import pytest

from satchel.tools import FunctionTool, ToolCall, callables
from satchel.tools.callables import MAX_AHEAD, in_thread, is_stream, iterate_in_thread, runs_on_loop
from satchel.tools.runner import resolved

WHO = ContextVar("WHO", default="nobody")

SECONDS = 30
"""How long a test waits for what comes at once, before it gives up."""


async def run(fn, *args):
    tool = FunctionTool(partial(fn, *args), name="probe")
    return await resolved(tool.runner.run(ToolCall(name="probe", arguments={}, tool=tool)))


def run_it(fn, *args):
    return asyncio.run(run(fn, *args))


def all_of(fn, *args):
    async def main():
        stream = await run(fn, *args)
        assert is_stream(stream)
        return [item async for item in stream]

    return asyncio.run(main())


def join(threads):
    """Wait until threads rest, ready for the next call."""
    until = time.monotonic() + SECONDS
    for thread in threads:
        while thread not in callables._THREADS._idle and thread.is_alive():
            assert time.monotonic() < until
            time.sleep(0.001)


def test_a_plain_function_runs_in_another_thread():
    assert run_it(threading.current_thread) is not threading.main_thread()


def test_a_plain_function_sees_the_context_variables_of_its_caller():
    async def main():
        WHO.set("me")
        return await in_thread(WHO.get)

    assert asyncio.run(main()) == "me"


def test_what_a_plain_function_sets_is_not_seen_by_its_caller():
    async def main():
        await in_thread(partial(WHO.set, "me"))
        return WHO.get()

    assert asyncio.run(main()) == "nobody"


def test_a_coroutine_function_runs_on_the_loop():
    async def where():
        return threading.current_thread()

    assert run_it(where) is threading.main_thread()
    assert run_it(partial(lambda fn: fn(), where)) is threading.main_thread()


def test_awaitables_are_awaited_until_there_is_a_value():
    async def give():
        return 3

    async def give_later():
        return give()

    assert run_it(give_later) == 3
    assert run_it(lambda: give_later()) == 3  # noqa: PLW0108 - a plain function


def test_a_generator_is_a_stream_and_runs_off_the_loop():
    def count():
        yield 1
        yield threading.current_thread()

    async def give():
        return count()

    for fn in [count, give, lambda: count()]:  # noqa: PLW0108 - a plain function
        one, thread = all_of(fn)
        assert one == 1
        assert thread is not threading.main_thread()


def test_an_async_generator_is_a_stream():
    async def count():
        yield 1
        yield 2

    assert all_of(count) == [1, 2]
    assert all_of(lambda: count()) == [1, 2]  # noqa: PLW0108 - a plain function


def test_a_generator_that_yields_nothing_is_an_empty_stream():
    def empty():
        yield from ()

    async def empty_async():
        for item in ():
            yield item

    assert all_of(empty) == []
    assert all_of(empty_async) == []


class Chunks:
    def __aiter__(self):
        return self

    async def __anext__(self):
        raise StopAsyncIteration


class Callable:
    async def __call__(self): ...


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Chunks(), True), (Callable(), False), (iter([]), False), ("text", False)],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_an_async_iterator_is_a_stream(value, expected):
    assert is_stream(value) is expected


def generates():
    yield


async def generates_async():
    yield


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (len, False),
        (Callable(), True),
        (partial(Callable()), True),
        (Callable().__call__, True),
        (partial(len, []), False),
        (generates, True),
        (partial(generates_async), True),
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
        release.wait(SECONDS)
        ended.set()

    async def main():
        task = asyncio.create_task(in_thread(stubborn))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        # A second thread's answer comes after the first one's, which nobody takes.
        await in_thread(partial(ended.wait, SECONDS))
        await in_thread(int)

    asyncio.run(main())


def test_a_thread_that_outlives_the_loop_ends_quietly():
    release, threads = threading.Event(), []

    def stubborn():
        threads.append(threading.current_thread())
        release.wait(SECONDS)

    async def main():
        task = asyncio.create_task(in_thread(stubborn))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    release.set()
    join(threads)


def test_a_function_that_never_returns_does_not_keep_the_process_alive():
    code = (
        "import asyncio, threading\n"
        "from satchel.tools.callables import in_thread\n"
        "async def main():\n"
        "    try:\n"
        "        async with asyncio.timeout(0.01): await in_thread(threading.Event().wait)\n"
        "    except TimeoutError: print('timeout')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout == "timeout\n"


def test_a_generator_is_drawn_in_one_thread_with_the_context_variables_of_the_caller():
    def items():
        for _ in range(MAX_AHEAD * 3):
            yield threading.current_thread(), WHO.get()

    async def main():
        WHO.set("me")
        return {item async for item in iterate_in_thread(items())}

    ((thread, who),) = asyncio.run(main())
    assert thread is not threading.main_thread()
    assert who == "me"


def test_what_a_generator_raises_comes_after_its_items():
    def items():
        yield 1
        raise LookupError("why")

    seen = []

    async def main():
        stream = iterate_in_thread(items())
        seen.append(await anext(stream))
        await anext(stream)

    with pytest.raises(LookupError, match="why"):
        asyncio.run(main())
    assert seen == [1]


class Watched:
    """A generator without end whose steps are told to the test."""

    def __init__(self):
        self.drawn, self.closed, self.threads = 0, threading.Event(), []
        self.full = threading.Event()

    def items(self):
        self.threads.append(threading.current_thread())
        try:
            while True:
                self.drawn += 1
                if self.drawn == MAX_AHEAD:
                    self.full.set()
                yield self.drawn
        finally:
            self.closed.set()


async def happens(event):
    """Wait for an event of a thread without holding up the loop."""
    assert await in_thread(partial(event.wait, SECONDS))


def test_a_generator_is_never_further_ahead_than_it_may_be():
    watched = Watched()

    async def main():
        stream = iterate_in_thread(watched.items())
        for taken in range(1, MAX_AHEAD * 4):
            assert await anext(stream) == taken
            # The one that was taken just now is still being worked on.
            assert watched.drawn < taken + MAX_AHEAD
        await stream.aclose()
        await happens(watched.closed)

    asyncio.run(main())
    join(watched.threads)


def test_a_generator_that_waits_for_room_is_closed_when_no_one_takes_items_any_more():
    watched = Watched()

    async def main():
        stream = iterate_in_thread(watched.items())
        await anext(stream)
        await happens(watched.full)
        await stream.aclose()
        await happens(watched.closed)

    asyncio.run(main())
    join(watched.threads)
    assert watched.drawn == MAX_AHEAD


def test_a_generator_is_closed_when_its_reader_is_cancelled():
    watched, waits = Watched(), threading.Event()

    def items():
        yield from ()
        waits.set()
        release.wait(SECONDS)
        yield from watched.items()

    release = threading.Event()

    async def main():
        stream = iterate_in_thread(items())
        task = asyncio.ensure_future(anext(stream))
        await happens(waits)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await happens(watched.closed)

    asyncio.run(main())
    join(watched.threads)


def test_a_generator_that_outlives_the_loop_ends_quietly():
    waits, release, watched = threading.Event(), threading.Event(), Watched()

    def items():
        yield 0
        waits.set()
        release.wait(SECONDS)
        yield from watched.items()

    async def main():
        stream = iterate_in_thread(items())
        await anext(stream)
        await happens(waits)
        await stream.aclose()

    asyncio.run(main())
    release.set()
    assert watched.closed.wait(SECONDS)
    join(watched.threads)


def test_a_generator_that_is_not_read_is_not_begun():
    watched = Watched()

    async def main():
        await iterate_in_thread(watched.items()).aclose()

    asyncio.run(main())
    assert watched.drawn == 0


def test_a_thread_is_used_again():
    async def main():
        return [await in_thread(threading.get_ident) for _ in range(20)]

    assert len(set(asyncio.run(main()))) == 1


def test_a_function_that_hangs_keeps_only_its_own_thread():
    release = threading.Event()

    async def main():
        hanging = [asyncio.create_task(in_thread(release.wait)) for _ in range(50)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(in_thread(lambda: "done"), SECONDS) == "done"
        release.set()
        assert await asyncio.gather(*hanging) == [True] * 50

    asyncio.run(main())


def test_only_a_few_idle_threads_are_kept():
    everybody = threading.Barrier(callables.MAX_IDLE_THREADS * 2)

    async def main():
        await asyncio.gather(*(in_thread(everybody.wait) for _ in range(everybody.parties)))

    asyncio.run(main())
    assert len(callables._THREADS._idle) <= callables.MAX_IDLE_THREADS + 1


def test_a_thread_that_raised_is_used_again():
    def fail():
        raise SystemExit(threading.get_ident())

    async def main():
        with pytest.raises(SystemExit) as raised:
            await in_thread(fail)
        assert await in_thread(threading.get_ident) == raised.value.code

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only Unix forks")
def test_a_forked_child_makes_threads_of_its_own():
    code = (
        "import asyncio, os\n"
        "from satchel.tools.callables import in_thread\n"
        "asyncio.run(in_thread(os.getpid))\n"
        "if child := os.fork():\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "assert asyncio.run(in_thread(os.getpid)) == os.getpid()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=SECONDS)


def test_a_quick_function_may_run_on_the_loop():
    def where():
        return threading.get_ident()

    assert run_it(where) != threading.get_ident()
    tool = FunctionTool(where, name="probe", blocking=False)
    assert asyncio.run(tool.execute()) == threading.get_ident()
