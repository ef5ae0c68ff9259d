"""Measure what a call costs, as ratios to floors measured in the same run.

    python benchmarks/calling.py [CALLS]

The floor of an async tool is the minimum cost of isolation and validation: the bare function in a
task, with its arguments validated by a pydantic `TypeAdapter`. On Python 3.12 and later the task
starts eagerly; on 3.11 it runs within `asyncio.timeout`. A blocking function has two floors:
`asyncio.to_thread`, and a single reused thread.

Each round measures the floor and Satchel for a few calls in turn, and the table shows the lower
quartile of the rounds: other work on the machine delays some of them, and makes none faster.
Where a task starts eagerly, a second table shows what the parts of a call cost by themselves.
"""

import asyncio
import json
import queue
import statistics
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from satchel import Satchel, ToolCall
from satchel.runtime.call_pipeline import MiddlewareRun
from satchel.runtime.call_task import CallTask
from satchel.runtime.result_limits import limit_result
from satchel.runtime.tool_run import FunctionRun
from satchel.tools import to_result
from satchel.tools.argument_reading import checked_arguments, read_arguments

AT_ONCE = 5
"""The calls of one round."""
ARGUMENTS = {"city": "Oslo", "days": 5}
TEXT = json.dumps(ARGUMENTS)
EAGER = sys.version_info >= (3, 12)
LIMIT = 60.0
RESULT = to_result("Oslo 5 C")


class Arguments(TypedDict, total=False):
    """The arguments of all functions below."""

    city: str
    days: int
    unit: str


validate = TypeAdapter(Arguments).validate_python


async def text(city: str, days: int = 3, unit: str = "C") -> str:
    """Return text."""
    return f"{city} {days} {unit}"


async def data(city: str, days: int = 3, unit: str = "C") -> dict[str, Any]:
    """Return data, which is also serialized to JSON."""
    return {"city": city, "days": days, "unit": unit}


async def waiting(city: str, days: int = 3, unit: str = "C") -> str:
    """Wait for one iteration of the loop, as a tool does that calls a server."""
    await asyncio.sleep(0)
    return f"{city} {days} {unit}"


def blocking(city: str, days: int = 3, unit: str = "C") -> str:
    """Return text from a thread."""
    return f"{city} {days} {unit}"


async def counting(city: str, days: int = 3, unit: str = "C") -> AsyncIterator[str]:
    """Yield ten chunks."""
    for _ in range(10):
        yield f"{city} {days} {unit}"


async def passing(call: Any, next: Any) -> AsyncIterator[Any]:  # noqa: A002 - its name everywhere
    """Pass every item on, as the smallest middleware."""
    async for item in next(call):
        yield item


Call = Callable[[], Awaitable[object]]


async def in_task(work: Any) -> object:
    """Run a coroutine with the minimum isolation of a call."""
    if EAGER:
        task: Any = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        if task.done():
            return task.result()
        async with asyncio.timeout(LIMIT):
            return await task
    async with asyncio.timeout(LIMIT):
        return await asyncio.create_task(work)


class Thread:
    """A single reused thread: the floor of a blocking call."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self) -> None:
        while True:
            loop, future, fn, arguments = self._work.get()
            loop.call_soon_threadsafe(future.set_result, fn(**arguments))

    async def run(self, fn: Any, arguments: Any) -> object:
        """Run a function in the thread."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._work.put((loop, future, fn, arguments))
        return await future


async def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    satchel = Satchel()
    for tool in (text, data, waiting, blocking, counting):
        satchel.register_tool(tool)
    session = satchel.session()
    thread = Thread()

    def floor(fn: Any) -> Call:
        return lambda: in_task(fn(**validate(ARGUMENTS)))

    async def stream() -> object:
        return [chunk async for chunk in counting(**validate(ARGUMENTS))]

    async def many() -> object:
        return await asyncio.gather(*(in_task(waiting(**validate(ARGUMENTS))) for _ in range(10)))

    calls = [ToolCall(name="waiting", arguments=ARGUMENTS) for _ in range(10)]
    rows: list[tuple[str, Call, Call]] = [
        ("returns text", lambda: session.call("text", ARGUMENTS), floor(text)),
        (
            "returns text, arguments as JSON",
            lambda: session.call("text", TEXT),
            lambda: in_task(text(**validate(json.loads(TEXT)))),
        ),
        ("returns data", lambda: session.call("data", ARGUMENTS), floor(data)),
        ("waits once", lambda: session.call("waiting", ARGUMENTS), floor(waiting)),
        (
            "blocks, against to_thread",
            lambda: session.call("blocking", ARGUMENTS),
            lambda: asyncio.to_thread(blocking, **validate(ARGUMENTS)),
        ),
        (
            "blocks, against a reused thread",
            lambda: session.call("blocking", ARGUMENTS),
            lambda: thread.run(blocking, validate(ARGUMENTS)),
        ),
        (
            "yields ten chunks",
            lambda: session.call("counting", ARGUMENTS),
            lambda: in_task(stream()),
        ),
        ("ten at once", lambda: session.execute(calls), many),
    ]
    print(f"Python {sys.version.split()[0]}, {count} calls, microseconds each")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for name, ours, theirs in rows:
        await show(name, count, ours, theirs)
    await show_middleware(count)
    if EAGER:
        await show_parts(count)


async def show_middleware(count: int) -> None:
    """Measure the same call with no to three middleware in turn, and print what each adds."""

    def with_layers(number: int) -> Call:
        satchel = Satchel()
        satchel.register_tool(text)
        for _ in range(number):
            satchel.register_middleware(passing)
        session = satchel.session()
        return lambda: session.call("text", ARGUMENTS)

    none, one, _, three = await quartiles(count, *(with_layers(number) for number in range(4)))
    print(f"{'the first middleware adds':34}{one - none:9.2f}")
    print(f"{'each further middleware adds':34}{(three - one) / 2:9.2f}")


class EmptyCall(CallTask):
    """A call without a function, in a task as every call."""

    async def _main(self) -> None:
        self.finish(RESULT)


async def show_parts(count: int) -> None:
    """Print what the parts of a call that returns text cost, each measured by itself."""
    satchel = Satchel()
    satchel.register_tool(text)
    session = satchel.session()
    (whole,) = await quartiles(count, lambda: session.call("text", ARGUMENTS))
    calls, view = session._calls, session._shared_view()  # noqa: SLF001
    call = calls.call_of("text", ARGUMENTS, "", None)
    run: Any = calls.prepare(view, call)
    run.loop, prepared, tool = asyncio.get_running_loop(), run.prepared, run.prepared.tool
    arguments = checked_arguments(tool, ARGUMENTS)
    record = cost(lambda: EmptyCall(call, prepared))
    parts = {
        "view of the session, ToolCall": cost(session._shared_view)  # noqa: SLF001
        + cost(lambda: calls.call_of("text", ARGUMENTS, "", None)),
        "prepared tool, CallTask": cost(lambda: calls.prepare(view, call)),
        "task, with its start and end": cost(lambda: EmptyCall(call, prepared).start()) - record,
        "FunctionRun": cost(lambda: FunctionRun(run, call, tool)),
        "arguments are read": cost(lambda: read_arguments("text", ARGUMENTS)),
        "arguments are validated": cost(lambda: tool.check(ARGUMENTS)),
        "arguments are bound": cost(lambda: tool.bind(arguments, call.context)),
        "the function": cost(lambda: text(**arguments).close()),
        "result, and its limit": cost(lambda: limit_result(to_result("a"), prepared.limits)),
    }
    parts["coroutines and checks between"] = whole - sum(parts.values())
    validated = parts["arguments are read"] + parts["arguments are validated"]
    with_middleware = {
        "context with values of the session": cost(lambda: calls._full_context(call)),  # noqa: SLF001
        "ToolCall for middleware": cost(run.validated_call) - validated,
        "MiddlewareRun": cost(lambda: MiddlewareRun(run, call)),
    }
    print("parts of a call that returns text")
    for name, microseconds in parts.items():
        print(f"  {name:36}{microseconds:5.2f}")
    print("parts of what the first middleware adds")
    for name, microseconds in with_middleware.items():
        print(f"  {name:36}{microseconds:5.2f}")


def cost(fn: Callable[[], object]) -> float:
    """Return the microseconds of a function that does not wait."""
    rounds = []
    for _ in range(400):
        start = time.perf_counter()
        for _ in range(50):
            fn()
        rounds.append((time.perf_counter() - start) / 50 * 1e6)
    return statistics.quantiles(rounds, n=4)[0]


async def show(name: str, count: int, ours: Call, theirs: Call) -> None:
    """Measure both in turn, and print the quartiles and their ratio."""
    floor, mine = await quartiles(count, theirs, ours)
    print(f"{name:34}{mine:9.2f}{floor:9.2f}{mine / floor:8.2f}")


async def quartiles(count: int, *calls: Call) -> list[float]:
    """Return the microseconds of each call, in the lower quartile of many short rounds."""
    rounds: list[list[float]] = [[] for _ in calls]
    for _ in range(max(2, count // AT_ONCE)):
        for call, times in zip(calls, rounds, strict=True):
            times.append(await each(AT_ONCE, call) * 1e6)
    return [statistics.quantiles(times, n=4)[0] for times in rounds]


async def each(count: int, call: Call) -> float:
    """Return the seconds for one call."""
    start = time.perf_counter()
    for _ in range(count):
        await call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    asyncio.run(main())
